"""What all parts of one run share."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from accelerate import Accelerator
from torch import nn

from masktune.config import RunConfig
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import DatasetBundle, Split
from masktune.models.predict import predict
from masktune.progress import Watcher, unwatched
from masktune.runs.folder import RunFolder
from masktune.scores.predictions import Predictions


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One run under way.

    Attributes:
        config: its settings.
        bundle: its dataset.
        folder: where it writes.
        compute: device, precision and processes.
        watcher: told after every step.
        seconds: how long each part took so far.
    """

    config: RunConfig
    bundle: DatasetBundle
    folder: RunFolder
    compute: Accelerator
    watcher: Watcher
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("train", "heat", "finetune", "evaluate"), 0.0)
    )

    @property
    def preprocess(self) -> Preprocess:
        """From the dataset's bytes to the network's input."""
        return Preprocess(mean=self.bundle.card.mean, std=self.bundle.card.std)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add how long something took to a part's seconds."""
        start = time.monotonic()
        yield
        self.seconds[part] += time.monotonic() - start

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
