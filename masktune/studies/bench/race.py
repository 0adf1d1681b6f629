"""Time things against each other so that a busy machine favours neither.

Seconds on a shared machine say more about its other users than about the code. What is compared
therefore takes turns in one process, each turn on one thread by that process's CPU clock, which
stands still while others compute; and of several laps the best counts, because disturbances (a
cold cache, a core at a lower clock) only ever add time.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from masktune.progress import Progress, Watcher, unwatched

Side = Callable[[], object]
"""One thing to time; what it returns is dropped."""

SETTLED = 0.005
"""A best time that falls by less than this share of itself has settled."""

PATIENCE = 15
"""A race ends after so many laps without a better time."""


Laps = Mapping[str, Sequence[float]]
"""CPU seconds by side, one for each lap; all sides have the same number of laps."""


def best_ratio(laps: Laps, side: str, base: str) -> float:
    """Return the best time of one side over the best time of another.

    >>> best_ratio({"a": (2.0, 3.0, 9.0), "b": (1.0, 4.0, 2.0)}, "a", "b")
    2.0
    """
    return min(laps[side]) / min(laps[base])


def median_ratio(laps: Laps, side: str, base: str) -> float:
    """Return the median over laps of one side's time over another's, a check on ``best_ratio``.

    >>> median_ratio({"a": (2.0, 3.0, 9.0), "b": (1.0, 4.0, 2.0)}, "a", "b")
    2.0
    """
    return statistics.median(x / y for x, y in zip(laps[side], laps[base], strict=True))


def race(
    sides: Mapping[str, Side],
    *,
    laps: int,
    stage: str,
    watcher: Watcher = unwatched,
    clock: Callable[[], float] = time.process_time,
) -> Laps:
    """Let every side run once in each lap, after one lap that does not count.

    A lap's order is the reverse of the lap before, so that no side always runs in the wake of the
    same other one. The race ends before ``laps`` when the best times of all sides have settled.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    with _one_thread(), _no_collection():
        for side in sides.values():
            side()
        last_gain = 0
        for lap in range(1, laps + 1):
            gc.collect()  # a peer leaves cycles that hold whole batches
            for name in order:
                if _run(sides[name], times[name], clock):
                    last_gain = lap
            order.reverse()
            watcher(Progress(stage=stage, done=lap, total=laps))
            if lap - last_gain >= PATIENCE:
                break
    return times


def _run(side: Side, taken: list[float], clock: Callable[[], float]) -> bool:
    """Time one turn; tell whether it is clearly the best so far."""
    best = min(taken, default=float("inf"))
    start = clock()
    side()
    seconds = clock() - start
    taken.append(seconds)
    return seconds < best * (1 - SETTLED)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread: two that wait for each other count CPU time while they wait."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep one side's garbage from being collected in the other's time."""
    collecting = gc.isenabled()
    gc.disable()
    gc.freeze()  # what was there before need not be looked through after every lap
    try:
        yield
    finally:
        gc.unfreeze()
        if collecting:
            gc.enable()
