"""How much server CPU a page takes, beside another clone of the project.

    python -m benchmarks.pages [--against DIR] [--times 20] [--json]

drives a Streamlit server of this clone, and one of the clone in DIR, from outside: Chromium does
what a person would, and the clock is that of the server's process. Each server has a home of its
own with one finished run of the demo, made by its own clone, and has shown every page once. Printed
are medians in milliseconds: a rerun of every page, and on Compare, for a run that the server has
not opened yet, what it has done when it sends the first number after the click.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.browser import PATIENCE, ROOT, Server, chromium, door, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAGES = ("start", "load", "mask", "finetune", "compare", "abstain", "picture", "runs")
LATER = ("picture", "runs")
"""Pages that earlier clones may not have."""

DEMO = ("--dataset", "biased-mnist-5k", "--model", "bundled", "--device", "cpu")
QUIET = 0.3
"""Seconds without work after which a page counts as done."""

IDLE = 0.02
"""CPU seconds of a quiet server in ``QUIET``, at most: it listens and polls."""

NUMBER = re.compile(rb"\d\.\d\s?%")
NAVIGATION, STYLE = b":small[", b"<style>"
"""What the steps above a page and the look are written with: their numbers are not the page's."""

FIRST, SETTLED = "compare, first number of a run not opened yet", "compare, the same run complete"


def measure(root: Path, *, times: int) -> dict[str, list[float]]:
    """Return CPU seconds by what was done, each ``times`` long.

    Args:
        root: the clone that is measured.
        times: how often each thing is done.
    """
    with tempfile.TemporaryDirectory() as home:
        run = finished_run(root, Path(home))
        script = root / "app" / "main.py"
        environment = {"MASKTUNE_HOME": home, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
        sent: list[float] = []

        def see(message: bytes) -> None:
            if NUMBER.search(message) and NAVIGATION not in message and STYLE not in message:
                sent.append(inside.cpu())

        with (
            serving(script, root=root, environment=environment) as inside,
            door(inside, see) as server,
            chromium() as browser,
        ):
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            page.set_default_timeout(1000 * PATIENCE)
            names = [n for n in PAGES if n not in LATER or (root / "app" / n).is_dir()]
            for name in names:
                _open(page, server, name, run)
            taken = {f"{name}, a rerun": _reruns(page, server, name, run, times) for name in names}
            return {**taken, **_first_numbers(page, server, run, sent, times)}


def finished_run(root: Path, home: Path) -> Path:
    """Make a finished run of the demo in a home, by the command of a clone; return its folder."""
    run = home / "runs" / "measured-0"
    subprocess.run(
        [sys.executable, "-m", "masktune", "run", *DEMO, "--out", str(run)],
        cwd=root,
        env={**os.environ, "MASKTUNE_HOME": str(home), "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    return run


def _open(page: "Page", server: Server, name: str, run: Path) -> None:
    page.goto(f"{server.url}/{'' if name == 'start' else name}?run={run.name}")
    page.wait_for_selector("[data-testid=stApp]")
    _settle(page, server)


def _settle(page: "Page", server: Server) -> None:
    """Wait until the script has run and the server has nothing more to do."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        before = server.cpu()
        page.wait_for_timeout(1000 * QUIET)  # lets the browser answer meanwhile
        state = page.get_attribute("[data-testid=stApp]", "data-test-script-state")
        if state == "notRunning" and server.cpu() - before < IDLE:
            return
    raise TimeoutError(f"{page.url} is not done within {PATIENCE:.0f} s.")


def _reruns(page: "Page", server: Server, name: str, run: Path, times: int) -> list[float]:
    """Press R, Streamlit's key for running a page again."""
    _open(page, server, name, run)

    def rerun() -> None:
        page.keyboard.press("r")
        _settle(page, server)

    return [_taken(server, rerun) for _ in range(times)]


def _taken(server: Server, action: Callable[[], None]) -> float:
    start = server.cpu()
    action()
    return server.cpu() - start


def _first_numbers(
    page: "Page", server: Server, run: Path, sent: list[float], times: int
) -> dict[str, list[float]]:
    """Click Compare above a run that is under a new name each time, so that no cache knows it.

    ``sent`` grows by the server's clock with every number of a page that leaves it.
    """
    first, complete = [], []
    for number in range(1, times + 1):
        run = run.rename(run.with_name(f"measured-{number}"))  # one run in the home, a new one
        _open(page, server, "start", run)
        sent.clear()
        start = server.cpu()
        page.get_by_role("link", name=re.compile("Compare")).first.click()
        page.wait_for_url("**/compare*")
        _settle(page, server)
        if not sent:
            raise RuntimeError(f"{page.url} has shown no number.")
        first.append(sent[0] - start)
        complete.append(server.cpu() - start)
    return {FIRST: first, SETTLED: complete}


def table(columns: dict[str, dict[str, float]]) -> str:
    """Return medians in milliseconds side by side, and the ratio of the first to the second."""
    names = list(columns)
    lines = [f"{'server CPU, ms':52}" + "".join(f"{name:>12}" for name in names)]
    if len(names) == 2:
        lines[0] += f"{'ratio':>8}"
    for what in columns[names[0]]:
        values = [columns[name][what] for name in names if what in columns[name]]
        line = f"{what:52}" + "".join(f"{1000 * value:12.1f}" for value in values)
        lines.append(line + (f"{values[0] / values[1]:8.2f}" if len(values) == 2 else ""))
    return "\n".join(lines)


def main(arguments: Iterable[str] | None = None) -> None:
    """Carry out the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path, help="another clone, such as an earlier state")
    parser.add_argument("--times", type=int, default=20, help="how often each thing is done")
    parser.add_argument("--json", action="store_true", help="print every value, in seconds")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    clones = {"here": ROOT}
    if chosen.against is not None:
        clones["there"] = chosen.against.resolve()
    found = {name: measure(root, times=chosen.times) for name, root in clones.items()}
    medians = {
        name: {what: statistics.median(values) for what, values in taken.items()}
        for name, taken in found.items()
    }
    sys.stdout.write((json.dumps(found, indent=1) if chosen.json else table(medians)) + "\n")


if __name__ == "__main__":
    main()
