"""How long a frame of painting takes: a brush of 112 pixels over a picture of 224, in a browser.

    python -m benchmarks.paint

moves the pointer once a frame from within the page, in circles over the whole picture with the
widest brush and the dearest paint, and prints as JSON how long a frame's work took (milliseconds).
The same file is the page that is measured: it tells by ``MEASURED`` in its environment.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from app.picture.easel import Board, Painted, easel, encode, identity
from benchmarks.browser import chromium, serving

MEASURED = "MASKTUNE_BENCHMARK_PAGE"
SIDE = 224
SECONDS = 3.0

PAINT = """(canvas, seconds) => new Promise((resolve) => {
    const milliseconds = [];
    const root = canvas.closest(".easel");
    root.querySelector("[name=fill][value=blur]").click();
    const size = root.querySelector(".size");
    size.value = size.max;
    root.addEventListener("painted", (event) => milliseconds.push(event.detail.milliseconds));
    const box = canvas.getBoundingClientRect();
    const point = (name, at) => canvas.dispatchEvent(new PointerEvent(name, {
        bubbles: true, button: 0, pointerId: 1,
        clientX: box.left + box.width * (0.5 + 0.45 * Math.cos(7 * at)),
        clientY: box.top + box.height * (0.5 + 0.45 * Math.sin(5 * at)),
    }));
    canvas.setPointerCapture = () => {};
    const start = performance.now();
    let frames = 0;
    point("pointerdown", 0);
    const step = (now) => {
        const at = (now - start) / 1000;
        if (at > seconds) {
            point("pointerup", at);
            return resolve({ milliseconds, frames, seconds: at });
        }
        frames++;
        point("pointermove", at);
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""


def make_board() -> Board:
    """Draw a photograph of noise."""
    draw = np.random.default_rng(0)
    picture, blurred = draw.integers(0, 256, (2, SIDE, SIDE, 3), dtype=np.uint8)
    return Board(picture=picture, blurred=blurred, name="noise")


def measure() -> dict[str, float]:
    """Serve the page, paint on it, and say how long frames took."""
    with serving(Path(__file__), environment={MEASURED: "1"}) as server:
        found = _paint(server.url)
    milliseconds = np.array(found["milliseconds"])
    return {
        "side": SIDE,
        "frames": len(milliseconds),
        "median_ms": round(float(np.median(milliseconds)), 2),
        "p95_ms": round(float(np.quantile(milliseconds, 0.95)), 2),
        "max_ms": round(float(milliseconds.max()), 2),
        "frames_per_second": round(found["frames"] / found["seconds"], 1),
    }


def _paint(url: str) -> dict[str, Any]:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 1200})
        page.goto(url)
        page.wait_for_selector(".easel.ready", timeout=60_000)
        page.wait_for_timeout(1000)
        canvas = page.locator(".board.main canvas").first
        canvas.evaluate(PAINT, 0.5)  # lets the browser compile what it will run
        found: dict[str, Any] = canvas.evaluate(PAINT, SECONDS)
    return found


def show() -> None:
    """Draw the page that is measured."""
    board = make_board()
    easel(
        encode(board),
        Painted(id=identity(board.picture), picture=board.picture),
        key="easel",
        on_paint=lambda _: None,
        on_open=lambda *_: None,
        on_file=lambda _: None,
    )


if __name__ == "__main__":
    if os.environ.get(MEASURED):
        show()
    else:
        sys.stdout.write(json.dumps(measure(), indent=2) + "\n")
