"""What all parts of one run share, and what a method makes of the model before."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import RunConfig
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import DatasetBundle, Split
from masktune.heat.store import HeatStore
from masktune.models.predict import over_split, predict
from masktune.progress import Steps, Watcher, unwatched
from masktune.scores.class_order import OtherOrder
from masktune.scores.hiding import Hiding
from masktune.scores.predictions import Predictions
from masktune.scores.result import VALIDATION, Pair, RunPredictions
from masktune.scores.selective import Floats
from masktune.training.fit import Resume
from masktune.training.rates import FinetuneRate

PARTS = ("load", "train", "heat", "finetune", "evaluate")
"""What ``result.json`` always says the seconds of; a part that was not done took none."""


OwnScores = Mapping[str, Floats]
"""How sure a method is by a score of its own, (N,) higher is surer, by split: validation or the
name of a test set."""


Foretold = FinetuneRate | OtherOrder | Hiding
"""What somebody hears before the first epoch of a finetune."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What a method has made of the model before, so far or in the end."""

    after: Checkpoint
    records: tuple[dict[str, Any], ...] = ()  # of each finished round, as in ``result.json``
    store: HeatStore | None = None  # heat of the finished rounds
    layer: str | None = None  # that heat is read at; None where the network has no maps
    own: OwnScores | None = None  # of a rival that learns when to abstain
    facts: Mapping[str, Any] = field(default_factory=dict)  # what a rival found out on the way

    @property
    def stopped(self) -> bool:
        """Whether the last round could not be fitted, so that no further one makes sense."""
        return bool(self.records) and not self.records[-1]["fitted"]

    def document(self) -> dict[str, Any]:
        """Return the "masking" part of ``result.json``."""
        return {"rounds": list(self.records), "layer": self.layer, "stopped_early": self.stopped}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What another run has found out about the same model before and the same pictures.

    Attributes:
        fingerprint: of those pictures; a run about others must not take it.
        said: what the model before says, by split: validation or the name of a test set.
        heat: where it looks in the training pictures; None where nobody asked.
    """

    fingerprint: str
    said: Mapping[str, Predictions] = field(default_factory=dict)
    heat: HeatStore | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One run under way."""

    config: RunConfig
    bundle: DatasetBundle
    compute: Accelerator
    watcher: Watcher = unwatched
    saved: Tuned | None = None  # what an interrupted run has tuned already
    save: Callable[[Tuned], None] = lambda _: None  # called after every finished round
    # Where a rival's training of some name reads and saves its state:
    resume: Callable[[str], Resume] = lambda _: Resume(state=None, save=lambda _: None)
    tell: Callable[[Foretold], None] = lambda _: None
    known: Known | None = None  # about the model before, from another run
    said: Mapping[str, Predictions] = field(default_factory=dict)  # by the model before, so far
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

    def known_heat(self, layer: str) -> HeatStore | None:
        """Return the heat of the model before in all training pictures, if another run has it.

        None where that run read another layer, or asked another explainer.
        """
        heat = None if self.known is None else self.known.heat
        if heat is None or (heat.layer, heat.method) != (layer, self.config.masking.method):
            return None
        return replace(heat, rounds=heat.rounds[:1])

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

    @property
    def asked(self) -> dict[str, Split]:
        """The splits that models are asked about, by name: validation and every test set."""
        return {VALIDATION: self.bundle.validation, **self.bundle.tests}

    def ask_all(self, before: Checkpoint) -> dict[str, Predictions]:
        """Ask the model before about validation and every test set, under one progress."""
        steps = Steps(self.watcher, "predict", total=len(self.asked))
        return {
            name: self.ask(before.model, split, watcher=steps.next())
            for name, split in self.asked.items()
        }

    def ask_both(
        self, before: Checkpoint, after: Checkpoint, own: OwnScores | None = None
    ) -> RunPredictions:
        """Ask both models about validation and every test set, under one progress.

        What the model before says is not asked again where it is known.
        """
        said = self.said
        steps = Steps(self.watcher, "predict", total=2 * len(self.asked) - len(said))
        pairs = {
            name: Pair(
                said[name] if name in said else self.ask(before.model, split, watcher=steps.next()),
                self.ask(after.model, split, watcher=steps.next()),
                None if own is None else own[name],
            )
            for name, split in self.asked.items()
        }
        return RunPredictions(validation=pairs.pop(VALIDATION), tests=pairs)

    def own_scores(self, score: Callable[[Tensor], Tensor]) -> dict[str, Floats]:
        """Score the pictures of every split that models are asked about.

        ``score`` is from the network's input (B, C, H, W) on the device to (B,), higher is surer.
        """
        return {
            name: over_split(
                score,
                split,
                preprocess=self.preprocess,
                keep=None,
                compute=self.compute,
                watcher=unwatched,
            )
            .numpy()
            .astype(np.float64)
            for name, split in self.asked.items()
        }
