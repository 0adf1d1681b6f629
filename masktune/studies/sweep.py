"""Try a model at several thresholds, with a finetune at each or as a quick look."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.compute import accelerator
from masktune.config import MaskingConfig, TrainConfig
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.splits import part
from masktune.data.types import DatasetBundle, Split
from masktune.errors import ConfigError
from masktune.heat.explain import explain
from masktune.heat.layers import heat_layer
from masktune.heat.store import HeatStore
from masktune.heat.strategies import hidden_area, keeper, strategy_of
from masktune.models.predict import predict
from masktune.progress import Progress, Watcher, unwatched
from masktune.scores.predictions import Predictions
from masktune.seeds import stream
from masktune.studies.advice import Trial, Tuned
from masktune.training.fit import finetune

KS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""The thresholds that are tried unless others are named."""

SAMPLE = 1000
"""Training pictures that a quick look takes at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What to try, and how.

    Attributes:
        masking: statistics, method and layer; its strategy is "heat". One round is tried.
        ks: thresholds, in any order.
        preprocess: from bytes to the network's input.
        store: heat of all training pictures where it is known, its first round; None computes it.
        compute: device, precision and processes; None takes what the machine offers.
        seed: decides the order of the examples and dropout, the same for every k; in a quick look
            it draws the sample.
    """

    masking: MaskingConfig
    ks: Sequence[float] = KS
    preprocess: Preprocess = field(default_factory=Preprocess)
    store: HeatStore | None = None
    compute: Accelerator | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not strategy_of(self.masking).uses_k:
            raise ConfigError(
                f"The strategy '{self.masking.strategy}' has no threshold k.",
                "Choose the strategy heat to look for a k.",
            )
        if not self.rules():
            raise ConfigError("There is no k to try.", "Give at least one, such as 2.")

    def rules(self) -> list[MaskingConfig]:
        """Give the masking at each threshold, ascending; a k that makes no sense is refused."""
        every = [replace(self.masking, k=k, rounds=1) for k in self.ks]
        return sorted(set(every), key=lambda rule: rule.k)


def sweep(
    model: nn.Module,
    bundle: DatasetBundle,
    *,
    thresholds: Thresholds,
    lr: float,
    training: TrainConfig,
    watcher: Watcher = unwatched,
) -> tuple[Trial, ...]:
    """Finetune a model once at every threshold and say what each comes to.

    Heat is computed once. Attributes and test sets are not read.

    Args:
        model: the model before; it is not changed.
        bundle: training pictures, and validation pictures for the tuned models.
        thresholds: what to try.
        lr: rate of the finetunes.
        training: optimiser and batch size of the ERM.
        watcher: told how far the whole sweep is, as the stage "sweep".

    Returns:
        One trial for each k, ascending, with ``tuned``.
    """
    bench = _Bench.of(model, bundle.train, thresholds=thresholds, watcher=watcher, steps_a_k=4)
    store = bench.heat(bundle.card.size) if thresholds.store is None else thresholds.store
    _check(store, bundle.train)
    trials = []
    for trial, keep in bench.trials(store):
        after = finetune(
            model,
            bundle.train,
            keep=keep,
            lr=lr,
            config=training,
            preprocess=thresholds.preprocess,
            seed=thresholds.seed,
            compute=bench.compute,
            watcher=bench.watch.next(),
        )
        validation = bench.ask(after, bundle.validation)
        tuned = Tuned(
            train=_accuracy(bench.ask(after, bundle.train, keep=keep)),
            validation=_accuracy(validation),
            worst_class=_worst_class(validation),
        )
        trials.append(replace(trial, tuned=tuned))
    return tuple(trials)


def quick_look(
    model: nn.Module,
    bundle: DatasetBundle,
    *,
    thresholds: Thresholds,
    watcher: Watcher = unwatched,
) -> tuple[Trial, ...]:
    """Look at every threshold without finetuning, on at most ``SAMPLE`` training pictures.

    Arguments as for ``sweep``.

    Returns:
        One trial for each k, ascending, without ``tuned``.
    """
    chosen = _drawn(len(bundle.train), thresholds.seed)
    sample = part(bundle.train, chosen)
    bench = _Bench.of(model, sample, thresholds=thresholds, watcher=watcher, steps_a_k=1)
    if thresholds.store is None:
        store = bench.heat(bundle.card.size)
    else:
        _check(thresholds.store, bundle.train)
        store = replace(thresholds.store, rounds=(thresholds.store.rounds[0][chosen],))
    return tuple(trial for trial, _ in bench.trials(store))


def _check(store: HeatStore, train: Split) -> None:
    if len(store) != len(train):
        raise ConfigError(
            f"The heat is of {len(store)} pictures, but there are {len(train)} to hide.",
            "Leave the store out, so that the heat is computed anew.",
        )


@dataclass(slots=True)
class _Steps:
    """Tells a watcher how far all parts of a sweep together are."""

    watcher: Watcher
    total: int
    begun: int = 0

    def next(self) -> Watcher:
        number = self.begun
        self.begun += 1

        def watch(progress: Progress) -> None:
            share = round(100 * (number + progress.done / progress.total))
            self.watcher(Progress(stage="sweep", done=share, total=100 * self.total))

        return watch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """What all trials of a sweep share."""

    model: nn.Module
    train: Split
    thresholds: Thresholds
    compute: Accelerator
    watch: _Steps

    @classmethod
    def of(
        cls,
        model: nn.Module,
        train: Split,
        *,
        thresholds: Thresholds,
        watcher: Watcher,
        steps_a_k: int,
    ) -> "_Bench":
        """Make one ready for the heat, unless it is known, the whole pictures, and each k."""
        total = (thresholds.store is None) + 1 + steps_a_k * len(thresholds.rules())
        return cls(
            model=model,
            train=train,
            thresholds=thresholds,
            compute=thresholds.compute or accelerator(),
            watch=_Steps(watcher, total=total),
        )

    def ask(self, model: nn.Module, split: Split, *, keep: Keeper | None = None) -> Predictions:
        return predict(
            model,
            split,
            preprocess=self.thresholds.preprocess,
            keep=keep,
            compute=self.compute,
            watcher=self.watch.next(),
        )

    def heat(self, size: tuple[int, int]) -> HeatStore:
        masking = self.thresholds.masking
        return explain(
            self.model,
            self.train,
            layer=heat_layer(self.model, masking.layer, size=size),
            method=masking.method,
            preprocess=self.thresholds.preprocess,
            compute=self.compute,
            watcher=self.watch.next(),
        )

    def trials(self, store: HeatStore) -> Iterator[tuple[Trial, Keeper | None]]:
        """Give what each threshold hides, and what the model before still answers."""
        count = len(self.train)
        seen = _accuracy(self.ask(self.model, self.train))
        largest = float(torch.bincount(self.train.labels).max()) / count
        for rule in self.thresholds.rules():
            # Only windows of the strategy "random" are drawn by the seed.
            keep = keeper(rule, store, size=store.size, count=count, round_number=1, seed=0)
            area = hidden_area(keep, count)
            yield (
                Trial(
                    k=rule.k,
                    pictures=count,
                    hidden_fraction=area.hidden_fraction,
                    empty_fraction=area.empty_fraction,
                    largest_class=largest,
                    seen=seen,
                    hidden=_accuracy(self.ask(self.model, self.train, keep=keep)),
                ),
                keep,
            )


def _drawn(count: int, seed: int) -> Tensor:
    """Draw at most ``SAMPLE`` positions, ascending, (n,) int64."""
    return torch.randperm(count, generator=stream(seed, "advice"))[:SAMPLE].sort().values


def _accuracy(predictions: Predictions) -> float:
    return float(predictions.correct().mean())


def _worst_class(predictions: Predictions) -> float:
    correct, labels = predictions.correct(), predictions.labels
    return min(float(correct[labels == label].mean()) for label in np.unique(labels))
