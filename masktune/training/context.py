"""What all parts of one run share, and what a method makes of the model before."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from accelerate import Accelerator
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import RunConfig
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import DatasetBundle, Split
from masktune.heat.store import HeatStore
from masktune.models.predict import predict
from masktune.progress import Steps, Watcher, unwatched
from masktune.scores.hiding import Hiding
from masktune.scores.predictions import Predictions
from masktune.scores.result import Pair, RunPredictions

PARTS = ("load", "train", "heat", "finetune", "evaluate")
"""What ``result.json`` always says the seconds of; a part that was not done took none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What a method has made of the model before, so far or in the end."""

    after: Checkpoint
    records: tuple[dict[str, Any], ...] = ()  # of each finished round, as in ``result.json``
    store: HeatStore | None = None  # heat of the finished rounds
    layer: str | None = None  # that heat is read at; None where the network has no maps

    @property
    def stopped(self) -> bool:
        """Whether the last round could not be fitted, so that no further one makes sense."""
        return bool(self.records) and not self.records[-1]["fitted"]

    def document(self) -> dict[str, Any]:
        """Return the "masking" part of ``result.json``."""
        return {"rounds": list(self.records), "layer": self.layer, "stopped_early": self.stopped}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One run under way."""

    config: RunConfig
    bundle: DatasetBundle
    compute: Accelerator
    watcher: Watcher = unwatched
    saved: Tuned | None = None  # what an interrupted run has tuned already
    save: Callable[[Tuned], None] = lambda _: None  # called after every finished round
    tell: Callable[[Hiding], None] = lambda _: None  # what hiding takes away, before the epoch
    # How long each part of this try took so far:
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    @property
    def preprocess(self) -> Preprocess:
        """From the dataset's bytes to the network's input."""
        return Preprocess(mean=self.bundle.card.mean, std=self.bundle.card.std)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add how long something took to a part's seconds."""
        start = time.monotonic()
        yield
        self.seconds[part] = self.seconds.get(part, 0.0) + time.monotonic() - start

    def ask(
        self,
        model: nn.Module,
        split: Split,
        *,
        keep: Keeper | None = None,
        watcher: Watcher = unwatched,
    ) -> Predictions:
        """Predict a split in this run's setting; its own progress is not this run's."""
        return predict(
            model,
            split,
            preprocess=self.preprocess,
            keep=keep,
            compute=self.compute,
            watcher=watcher,
        )

    def ask_both(self, before: Checkpoint, after: Checkpoint) -> RunPredictions:
        """Ask both models about validation and every test set, under one progress."""
        splits = [self.bundle.validation, *self.bundle.tests.values()]
        calls = [(split, which) for split in splits for which in (before, after)]
        steps = Steps(self.watcher, "predict", total=len(calls))
        answers = [self.ask(which.model, split, watcher=steps.next()) for split, which in calls]
        pairs = [Pair(*two) for two in zip(answers[::2], answers[1::2], strict=True)]
        tests = dict(zip(self.bundle.tests, pairs[1:], strict=True))
        return RunPredictions(validation=pairs[0], tests=tests)
