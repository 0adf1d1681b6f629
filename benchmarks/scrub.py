"""How long a frame of scrubbing takes: 24 pictures of 224 x 224, three seconds, in a real browser.

    python -m benchmarks.scrub

drives the slider once a frame from within the page, up and down over the whole range, and prints as
JSON how long repainting took (milliseconds a frame) and how many frames a second were drawn. The
same file is the page that is measured: it tells by ``MEASURED`` in its environment.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from app.shared.scrubber import Sheet, encode, scrubber
from benchmarks.browser import chromium, serving
from masktune.heat.keep import heat_statistics
from masktune.heat.xgradcam import stretch_, upsample

MEASURED = "MASKTUNE_BENCHMARK_PAGE"
COUNT, SIDE, COARSE = 24, 224, 7
SECONDS = 3.0
SWEEP = 1.5
"""Seconds from one end of the slider to the other: a quick hand."""

SCRUB = """(slider, [seconds, sweep]) => new Promise((resolve) => {
    const milliseconds = [];
    const root = slider.closest(".scrubber");
    root.addEventListener("painted", (event) => milliseconds.push(event.detail.milliseconds));
    const start = performance.now();
    let frames = 0;
    const step = (now) => {
        const at = (now - start) / 1000;
        if (at > seconds) return resolve({ milliseconds, frames, seconds: at });
        frames++;
        slider.value = 1.5 - 1.5 * Math.cos((Math.PI * at) / sweep);
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""


def make_sheet() -> Sheet:
    """Draw photographs of noise with heat in a few places, as a trained network's is."""
    draw = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (COUNT, SIDE, SIDE, 3), generator=draw, dtype=torch.uint8)
    heat = stretch_((torch.rand(COUNT, COARSE, COARSE, generator=draw) - 0.3).relu())
    mu, sigma = heat_statistics(upsample(heat, (SIDE, SIDE)))
    names = tuple(f"picture {n}" for n in range(1, COUNT + 1))
    return Sheet(
        pictures=pictures.numpy(),
        heat=heat.numpy(),
        mu=mu.numpy(),
        sigma=sigma.numpy(),
        names=names,
        groups=("all",) * COUNT,
        answers=("bird",) * COUNT,
        confidences=np.full(COUNT, 0.9),
    )


def measure() -> dict[str, float]:
    """Serve the page, scrub it, and say how long frames took."""
    with serving(Path(__file__), environment={MEASURED: "1"}) as server:
        found = _scrub(server.url)
    milliseconds = np.array(found["milliseconds"])
    return {
        "pictures": COUNT,
        "side": SIDE,
        "frames": len(milliseconds),
        "median_ms": round(float(np.median(milliseconds)), 2),
        "p95_ms": round(float(np.quantile(milliseconds, 0.95)), 2),
        "max_ms": round(float(milliseconds.max()), 2),
        "frames_per_second": round(found["frames"] / found["seconds"], 1),
    }


def _scrub(url: str) -> dict[str, Any]:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 1200})
        page.goto(url)
        page.wait_for_selector(".scrubber.ready", timeout=60_000)
        page.wait_for_timeout(1000)
        slider = page.get_by_role("slider", name="Threshold")
        slider.evaluate(SCRUB, [0.5, SWEEP])  # lets the browser compile what it will run
        found: dict[str, Any] = slider.evaluate(SCRUB, [SECONDS, SWEEP])
    return found


if __name__ == "__main__":
    if os.environ.get(MEASURED):
        scrubber(encode(make_sheet()), k=2.0, key="scrub")
    else:
        sys.stdout.write(json.dumps(measure(), indent=2) + "\n")
