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

SETTLED = 0.005
"""A best time that falls by less than this share of itself has settled."""

PATIENCE = 15
"""A race ends after so many laps without a better time."""

Laps = Mapping[str, Sequence[float]]
"""CPU seconds by side, one for each lap; all sides have the same number of laps."""


def compare(laps: Laps, side: str, base: str) -> tuple[float, float]:
    """Return the best time of one side over that of another, and the median over laps as a check.

    >>> compare({"a": (2.0, 3.0, 9.0), "b": (1.0, 4.0, 2.0)}, "a", "b")
    (2.0, 2.0)
    """
    each = (x / y for x, y in zip(laps[side], laps[base], strict=True))
    return min(laps[side]) / min(laps[base]), statistics.median(each)


def race(
    sides: Mapping[str, Callable[[], object]],
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
    with _undisturbed():
        for side in sides.values():
            side()
        last_gain = 0
        for lap in range(1, laps + 1):
            gc.collect()  # a peer leaves cycles that hold whole batches
            for name in order:
                best = min(times[name], default=float("inf"))
                start = clock()
                sides[name]()
                times[name].append(clock() - start)
                if times[name][-1] < best * (1 - SETTLED):
                    last_gain = lap
            order.reverse()
            watcher(Progress(stage=stage, done=lap, total=laps))
            if lap - last_gain >= PATIENCE:
                break
    return times


@contextmanager
def _undisturbed() -> Iterator[None]:
    threads, collecting = torch.get_num_threads(), gc.isenabled()
    torch.set_num_threads(1)  # two that wait for each other count CPU time while they wait
    gc.disable()  # or one side's garbage would be collected in the other's time
    gc.freeze()  # what was there before need not be looked through after every lap
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        gc.unfreeze()
        if collecting:
            gc.enable()
