"""Long work that outlives the script run that began it: the next run joins it."""

import math
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Generic, NamedTuple

from masktune.cache import Cache, Made
from masktune.progress import Progress, Watcher

LEFT = 10.0
"""Seconds without anybody waiting after which work is given up: its page was left."""

LOOK = 0.1
"""Seconds between two looks at how far it is."""


class Work(NamedTuple, Generic[Made]):
    """A value that takes long to make: where it is kept, its key, and what makes it."""

    kept: Cache
    key: Hashable
    make: Callable[[Watcher], Made]

    @property
    def done(self) -> bool:
        """Whether the value is there already."""
        return self.key in self.kept


class _Left(BaseException):
    """Nobody waits any more."""


@dataclass(slots=True)
class _Work:
    thread: Thread | None = None
    progress: Progress | None = None
    error: BaseException | None = None
    waiters: int = 0
    wanted: float = field(default_factory=time.monotonic)

    def watch(self, progress: Progress) -> None:
        self.progress = progress
        if time.monotonic() - self.wanted > LEFT:
            raise _Left


_under_way: dict[tuple[int, Hashable], _Work] = {}
_lock = Lock()


def joined(
    kept: Cache, key: Hashable, make: Callable[[Watcher], Made], *, watcher: Watcher
) -> Made:
    """Return a key's value; whoever asks while it is being made waits for the same work.

    Args:
        kept: where the value is kept.
        key: of the value.
        make: called in a thread of its own, so it draws nothing.
        watcher: told how far the work is, in the caller's thread. What it raises ends the waiting,
            not the work.
    """
    while key not in kept:
        work = _begin(kept, key, make)
        try:
            with _waits_for(work):
                while work.thread is not None and work.thread.is_alive():
                    work.wanted = time.monotonic()
                    if work.progress is not None:
                        watcher(work.progress)
                    work.thread.join(LOOK)
        except _Left:  # it was work itself that waited here, and that is given up
            leave(kept, key)
            raise
        if work.error is not None and not isinstance(work.error, _Left):
            raise work.error
    return kept.get(key, lambda: make(watcher))


def leave(kept: Cache, key: Hashable) -> None:
    """Give up the work on a value now, unless somebody else waits for it too."""
    with _lock:
        work = _under_way.get((id(kept), key))
        if work is not None and not work.waiters:
            work.wanted = -math.inf


@contextmanager
def _waits_for(work: _Work) -> Iterator[None]:
    with _lock:
        work.waiters += 1
    try:
        yield
    finally:
        with _lock:
            work.waiters -= 1


def _begin(kept: Cache, key: Hashable, make: Callable[[Watcher], Made]) -> _Work:
    with _lock:
        if (found := _under_way.get((id(kept), key))) is not None:
            return found
        work = _under_way[id(kept), key] = _Work()

        def run() -> None:
            try:
                kept.get(key, lambda: make(work.watch))
            except BaseException as error:  # noqa: BLE001  raised again where somebody waits
                work.error = error
            finally:
                with _lock:
                    del _under_way[id(kept), key]

        work.thread = Thread(target=run, name="work", daemon=True)
        work.thread.start()
        return work
