"""How much longer the page Runs takes to open with 1,000 run folders than with 10.

    python -m benchmarks.runs [--times 9] [--json]

Two homes are filled with copies of one finished run of the demo at other k and seeds, without its
models. Runs is opened in each by turns, in this process, by the process's CPU clock; the best turn
of each counts. *Opened* has nothing in memory but the index on the disk, as a server that was
started anew; *again* is a rerun of the same session. The goal is a ratio of 3 at most.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from streamlit.components.v2 import manifest_scanner  # noqa: TID251 (the page is measured)
from streamlit.testing.v1 import AppTest  # noqa: TID251 (the page is measured)
from streamlit.util import calc_hash  # noqa: TID251 (the page is measured)

from app.runs import table
from app.warm import warm
from benchmarks.browser import ROOT
from benchmarks.pages import finished_run
from masktune.runs import index

FEW, MANY = 10, 1000
"""Run folders in the two homes."""

FILES = ("config.json", "about.json", "status.json", "data.json", "result.json")
"""What a list of runs reads of one."""

OPENED, AGAIN = "opened", "again"


def measure(times: int) -> dict[str, dict[int, list[float]]]:
    """Return CPU seconds by what was done and the number of run folders, each ``times`` long."""
    with tempfile.TemporaryDirectory() as folder:
        made = finished_run(ROOT, Path(folder) / "made")
        homes = {
            number: _filled(Path(folder) / str(number), made, number) for number in (FEW, MANY)
        }
        found: dict[str, dict[int, list[float]]] = {
            what: {number: [] for number in homes} for what in (OPENED, AGAIN)
        }
        # A server reads the notes of all installed packages for components once, AppTest each time.
        scan = manifest_scanner.scan_component_manifests
        manifest_scanner.scan_component_manifests = cache(scan)
        warm().join()  # what the first page of a server imports in a thread
        for turn in range(times + 1):
            for number, home in homes.items():
                os.environ["MASKTUNE_HOME"] = str(home)
                _forget()
                page = _page()
                first, second = _taken(page.run), _taken(page.run)
                if page.exception:
                    raise RuntimeError(page.exception[0].message)
                if turn:  # the first reads every folder
                    found[OPENED][number].append(first)
                    found[AGAIN][number].append(second)
        return found


def _filled(home: Path, made: Path, number: int) -> Path:
    config = json.loads((made / "config.json").read_text("utf-8"))
    for own in range(number):
        path = home / "runs" / f"20261101-{own:06d}-biased-mnist-5k-{own:08x}"
        path.mkdir(parents=True)
        for name in FILES:
            if (made / name).is_file():
                shutil.copy(made / name, path)
        masking = {**config["masking"], "k": own % 31 / 10}
        told = {**config, "masking": masking, "seed": own // 31}
        (path / "config.json").write_text(json.dumps(told))
    return home


def _forget() -> None:
    """Do as a server that was started anew."""
    index._known.clear()
    table._told.cache_clear()
    table._settings_in.cache_clear()


def _page() -> AppTest:
    page = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=600)
    # Before its first run AppTest knows a page by its file's name, and all are page.py.
    page._page_hash = calc_hash("runs")
    return page


def _taken(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def words(found: dict[str, dict[int, list[float]]]) -> str:
    """Return the best turns in milliseconds, and their ratio."""
    lines = [f"{'Runs, CPU ms':16}{FEW:>8}{MANY:>8}{'ratio':>8}"]
    for what, taken in found.items():
        few, many = min(taken[FEW]), min(taken[MANY])
        lines.append(f"{what:16}{1000 * few:8.0f}{1000 * many:8.0f}{many / few:8.2f}")
    return "\n".join(lines)


def main(arguments: Iterable[str] | None = None) -> None:
    """Carry out the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=9, help="how often the page is opened in each")
    parser.add_argument("--json", action="store_true", help="print every value, in seconds")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    found = measure(chosen.times)
    sys.stdout.write((json.dumps(found, indent=1) if chosen.json else words(found)) + "\n")


if __name__ == "__main__":
    main()
