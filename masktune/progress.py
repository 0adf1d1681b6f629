"""What the core tells its caller after each step."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of the line.

    Attributes:
        stage: load (before it unpack, download or check where files are read), train, heat,
            finetune, predict or report; rounds after the first say which ("heat 2").
        done: steps finished in this stage, 1 .. total.
        total: steps of this stage.
        loss: training loss of this step's batch, where there is one.
        accuracy: share of this step's batch answered right while training, in [0, 1].
    """

    stage: str
    done: int
    total: int
    loss: float | None = None
    accuracy: float | None = None


Watcher = Callable[[Progress], None]
"""Called after each step. To stop the work, it raises; what it raises reaches the caller."""


def unwatched(_: Progress) -> None:
    """Let the work run without looking."""


@dataclass(slots=True)
class Clock:
    """Estimates how long the current stage still takes from its speed so far."""

    now: Callable[[], float] = time.monotonic
    _stage: str = ""
    _start: float = 0.0
    _first: int = 0

    def seconds_left(self, progress: Progress) -> float | None:
        """Seconds until the stage ends; None until a second step shows the speed."""
        moment = self.now()
        if progress.stage != self._stage:
            self._stage, self._start, self._first = progress.stage, moment, progress.done
            return None
        steps = progress.done - self._first
        if steps <= 0:
            return None
        return (moment - self._start) / steps * (progress.total - progress.done)


@dataclass(slots=True)
class Steps:
    """Tells a watcher how far ``total`` parts of a stage together are, in hundredths of a part."""

    watcher: Watcher
    stage: str
    total: int
    begun: int = 0

    def next(self) -> Watcher:
        """Return what hears of the next part."""
        number = self.begun
        self.begun += 1

        def watch(progress: Progress) -> None:
            share = round(100 * (number + progress.done / progress.total))
            self.watcher(Progress(stage=self.stage, done=share, total=100 * self.total))

        return watch
