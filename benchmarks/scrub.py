"""How long a frame of scrubbing takes: 24 pictures of 224 x 224, three seconds, in a real browser.

    python -m benchmarks.scrub

drives the slider once a frame from within the page, up and down over the whole range, with one
column and with four, and prints as JSON how long repainting took (milliseconds a frame) and how
many frames a second were drawn. The same file is the page that is measured: it tells by
``MEASURED`` in its environment, which says how many columns.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from playwright.sync_api import CDPSession

from app.shared.scrubber import Column, Sheet, encode, scrubber
from benchmarks.browser import chromium, serving
from masktune.heat.keep import heat_statistics
from masktune.heat.xgradcam import stretch_, upsample

MEASURED = "MASKTUNE_BENCHMARK_PAGE"
COUNT, SIDE, COARSE = 24, 224, 7
SECONDS = 3.0
SWEEP = 1.5
"""Seconds from one end of the slider to the other, at 60 frames a second: a quick hand."""

CLOCKS = {"ScriptDuration": "script_cpu_ms", "TaskDuration": "main_thread_cpu_ms"}
"""Chromium's sums of CPU time, and what they are called here, a frame on average: of repainting,
and of all that the page does, layout included. They stand still while other processes compute."""

SCRUB = """(slider, [seconds, sweep]) => new Promise((resolve) => {
    const milliseconds = [];
    const root = slider.closest(".scrubber");
    root.addEventListener("painted", (event) => milliseconds.push(event.detail.milliseconds));
    const start = performance.now();
    let frames = 0;
    // By frames, not by the clock: on a busy machine the steps would grow with the time they take.
    const step = () => {
        const at = frames / 60;
        const took = (performance.now() - start) / 1000;
        if (at > seconds) return resolve({ milliseconds, frames, seconds: took });
        frames++;
        slider.value = 1.5 - 1.5 * Math.cos((Math.PI * at) / sweep);
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""


def make_sheet(columns: int) -> Sheet:
    """Draw photographs of noise with heat in a few places, as a trained network's is."""
    draw = torch.Generator().manual_seed(0)
    pictures = torch.randint(0, 256, (COUNT, SIDE, SIDE, 3), generator=draw, dtype=torch.uint8)
    return Sheet(
        pictures=pictures.numpy(),
        columns=tuple(_column(draw, f"way {number}") for number in range(1, columns + 1)),
        names=tuple(f"picture {n}" for n in range(1, COUNT + 1)),
        groups=("all",) * COUNT,
    )


def _column(draw: torch.Generator, title: str) -> Column:
    heat = stretch_((torch.rand(COUNT, COARSE, COARSE, generator=draw) - 0.3).relu())
    mu, sigma = heat_statistics(upsample(heat, (SIDE, SIDE)))
    return Column(
        heat=heat.numpy(),
        mu=mu.numpy(),
        sigma=sigma.numpy(),
        answers=("bird",) * COUNT,
        confidences=np.full(COUNT, 0.9),
        title=title,
    )


def measure(columns: int) -> dict[str, float]:
    """Serve the page, scrub it, and say how long frames took."""
    with serving(Path(__file__), environment={MEASURED: str(columns)}) as server:
        found = _scrub(server.url)
    milliseconds = np.array(found["milliseconds"])
    return {
        "pictures": COUNT,
        "columns": columns,
        "side": SIDE,
        "frames": len(milliseconds),
        "median_ms": round(float(np.median(milliseconds)), 2),
        "p95_ms": round(float(np.quantile(milliseconds, 0.95)), 2),
        "max_ms": round(float(milliseconds.max()), 2),
        "frames_per_second": round(found["frames"] / found["seconds"], 1),
        **{name: round(found["cpu"][metric], 2) for metric, name in CLOCKS.items()},
    }


def _scrub(url: str) -> dict[str, Any]:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 1200})
        page.goto(url)
        page.wait_for_selector(".scrubber.ready", timeout=60_000)
        page.wait_for_timeout(1000)
        slider = page.get_by_role("slider", name="Threshold")
        slider.evaluate(SCRUB, [0.5, SWEEP])  # lets the browser compile what it will run
        clock = page.context.new_cdp_session(page)
        clock.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = _ticks(clock)
        found: dict[str, Any] = slider.evaluate(SCRUB, [SECONDS, SWEEP])
        after = _ticks(clock)
    spent = {name: (after[name] - before[name]) * 1000 / found["frames"] for name in after}
    return {**found, "cpu": spent}


def _ticks(clock: CDPSession) -> dict[str, float]:
    """Return the seconds of CPU time that the page's main thread has had, by what for."""
    metrics = clock.send("Performance.getMetrics")["metrics"]
    return {each["name"]: each["value"] for each in metrics if each["name"] in CLOCKS}


if __name__ == "__main__":
    if asked := os.environ.get(MEASURED):
        scrubber(encode(make_sheet(int(asked))), k=2.0, key="scrub")
    else:
        found = [measure(columns) for columns in (1, 4)]
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
