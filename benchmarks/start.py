"""Where the time from a command to the first step goes, and what a busy neighbour costs.

    python -m benchmarks.start [--times 5] [--json]

prints (1) CPU time of ``masktune --help`` over that of ``python -c "import argparse, rich"``, which
take turns; (2) wall time of the demo run on the command line stage by stage, and CPU time of its
imports by package; (3) the same run beside one busy process over the run alone, with threads that
wait passively for a core, as MaskTune Studio sets them, and as OpenMP has them by itself.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DEMO = ("run", "--dataset", "biased-mnist-5k", "--model", "bundled", "--device", "cpu")
LIGHT = ("-c", "import argparse, rich")
HELP = ("-m", "masktune", "--help")
HELP_GOAL, BUSY_GOAL = 10.0, 2.2
"""At most so many times the other."""

PACKAGES = 8
"""The packages that take most of the imports, beside the rest."""

_IMPORT = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)$")
_STAGE = re.compile(r"^(\w+) (\d+)/(\d+)")


def cpu_seconds(words: Sequence[str]) -> float:
    """Run Python with some words; return the CPU seconds of its process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports(lines: Iterable[str]) -> dict[str, float]:
    """Return seconds by package from what ``python -X importtime`` says, the slowest first.

    >>> imports(["import time:    500000 |    900000 |   torch._C", "load 1/1",
    ...          "import time:    250000 |    250000 | torch"])
    {'torch': 0.75}
    """
    taken: Counter[str] = Counter()
    for line in lines:
        if found := _IMPORT.match(line):
            taken[found[2].partition(".")[0]] += int(found[1])
    return {name: own / 1e6 for name, own in taken.most_common()}


def stages(lines: Iterable[tuple[float, str]]) -> dict[str, float]:
    """Return when each stage of a run was first and last heard of.

    Args:
        lines: seconds since the start of the command, and a line of its progress.

    Returns:
        Seconds by "load", "heat, first step", "heat, last step" and so on, ascending.

    >>> stages([(2.0, "load 1/1"), (2.5, "heat 1/7"), (3.0, "heat 3/7, 1 s left")])
    {'load': 2.0, 'heat, first step': 2.5, 'heat, last step': 3.0}
    """
    heard: dict[str, float] = {}
    for moment, line in lines:
        if found := _STAGE.match(line):
            stage, total = found[1], int(found[3])
            if total == 1:
                heard[stage] = moment
            else:
                heard.setdefault(f"{stage}, first step", moment)
                heard[f"{stage}, last step"] = moment
    return heard


def demo(
    *options: str, environment: Mapping[str, str] | None = None
) -> tuple[float, list[str], dict[str, float]]:
    """Do the demo run; return its wall seconds, what it said and its stages.

    Args:
        options: of Python.
        environment: variables beside those of this process; an empty one is taken out.
    """
    variables = {**os.environ, **(environment or {})}
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, *options, "-m", "masktune", *DEMO, "--out", f"{folder}/run"]
        start = time.monotonic()
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            env={name: value for name, value in variables.items() if value},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        said = [(time.monotonic() - start, line.rstrip("\n")) for line in process.stderr]
        if process.wait() != 0:
            raise RuntimeError("\n".join(line for _, line in said[-5:]))
        return time.monotonic() - start, [line for _, line in said], stages(said)


@contextmanager
def busy() -> Iterator[None]:
    """Keep one core busy meanwhile."""
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.wait()


def beside_busy(policy: str, *, times: int) -> dict[str, float]:
    """Return the median wall seconds of the demo run alone and beside a busy process."""
    # All threads: one alone would not wait for another.
    environment = {"OMP_NUM_THREADS": "", "OMP_WAIT_POLICY": policy}
    alone, beside = [], []
    for _ in range(times):
        alone.append(demo(environment=environment)[0])
        with busy():
            beside.append(demo(environment=environment)[0])
    idle, loaded = statistics.median(alone), statistics.median(beside)
    return {"idle": idle, "busy": loaded, "ratio": loaded / idle}


def measure(*, times: int) -> dict[str, Any]:
    """Measure everything; seconds."""
    laps = [(cpu_seconds(HELP), cpu_seconds(LIGHT)) for _ in range(times)]
    help_, light = (min(side) for side in zip(*laps, strict=True))
    runs = [demo() for _ in range(times)]
    return {
        "help": {"help": help_, "argparse and rich": light, "ratio": help_ / light},
        "stages": {
            stage: statistics.median(heard[stage] for _, _, heard in runs) for stage in runs[0][2]
        }
        | {"end": statistics.median(wall for wall, _, _ in runs)},
        "imports": imports(demo("-X", "importtime")[1]),
        "neighbour": {
            "waiting passively": beside_busy("PASSIVE", times=times),
            "as OpenMP has it": beside_busy("ACTIVE", times=times),
        },
    }


def text(found: Mapping[str, Any]) -> str:
    """Return what was measured as a table."""
    said = found["help"]
    taken = found["imports"]
    most = dict(list(taken.items())[:PACKAGES])
    rest = sum(taken.values()) - sum(most.values())
    lines = [
        "masktune --help, CPU",
        f"  {said['help']:.3f} s, {said['ratio']:.1f} times 'import argparse, rich' "
        f"({said['argparse and rich']:.3f} s); goal <= {HELP_GOAL:g}: "
        f"{_met(said['ratio'], HELP_GOAL)}",
        "the demo run, seconds since the command",
        *(f"  {moment:8.2f}  {stage}" for stage, moment in found["stages"].items()),
        "its imports, seconds by package",
        *(f"  {seconds:8.2f}  {name}" for name, seconds in {**most, "all others": rest}.items()),
        "the demo run beside one busy process, wall",
    ]
    for name, taken in found["neighbour"].items():
        goal = f"; goal <= {BUSY_GOAL:g}: {_met(taken['ratio'], BUSY_GOAL)}"
        lines.append(
            f"  {name:18} {taken['idle']:6.1f} s alone, {taken['busy']:6.1f} s beside it, "
            f"{taken['ratio']:.2f} times" + (goal if name == "waiting passively" else "")
        )
    return "\n".join(lines)


def _met(value: float, limit: float) -> str:
    return "met" if value <= limit else "missed"


def main() -> None:
    """Carry out the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=5, help="how often each thing is done")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    chosen = parser.parse_args()
    found = measure(times=chosen.times)
    sys.stdout.write((json.dumps(found, indent=1) if chosen.json else text(found)) + "\n")


if __name__ == "__main__":
    main()
