"""Try a model at several thresholds, with a finetune at each or as a quick look."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import MaskingConfig
from masktune.data.preprocess import Keeper
from masktune.data.splits import part
from masktune.data.types import Split
from masktune.errors import ConfigError
from masktune.heat.store import HeatStore
from masktune.heat.strategies import hidden_area, keeper, strategy_of
from masktune.progress import Progress, Watcher
from masktune.scores.predictions import Predictions
from masktune.seeds import stream
from masktune.studies.advice import Trial, Tuned
from masktune.training.context import Context
from masktune.training.masktune import layer_of, learn, look

KS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""The thresholds that are tried unless others are named."""

SAMPLE = 1000
"""Training pictures that a quick look takes at most."""


def sweep(
    context: Context,
    before: Checkpoint,
    *,
    ks: Sequence[float] = KS,
    store: HeatStore | None = None,
) -> tuple[Trial, ...]:
    """Finetune a model once at every threshold and say what each comes to.

    Heat is computed once. Attributes and test sets are not read.

    Args:
        context: settings, of which k and rounds do not count, pictures and device; its watcher is
            told how far the whole sweep is, as the stage "sweep".
        before: the model before; it is not changed.
        ks: thresholds, in any order.
        store: heat of all training pictures where it is known, its first round; None computes it.

    Returns:
        One trial for each k, ascending, with ``tuned``.
    """
    bundle, trials = context.bundle, []
    check_heat(store, bundle.train)
    bench = _Bench.of(context, before.model, ks, store, steps_a_k=4)
    for trial, keep in bench.trials():
        after = learn(replace(context, watcher=bench.watch.next()), before, keep)
        validation = bench.ask(after, bundle.validation)
        tuned = Tuned(
            train=_accuracy(bench.ask(after, bundle.train, keep=keep)),
            validation=_accuracy(validation),
            worst_class=_worst_class(validation),
        )
        trials.append(replace(trial, tuned=tuned))
    return tuple(trials)


def quick_look(
    context: Context,
    model: nn.Module,
    *,
    ks: Sequence[float] = KS,
    store: HeatStore | None = None,
) -> tuple[Trial, ...]:
    """Look at every threshold without finetuning, on at most ``SAMPLE`` training pictures.

    The seed of the settings draws the sample; the other arguments are as for ``sweep``.

    Returns:
        One trial for each k, ascending, without ``tuned``.
    """
    train = context.bundle.train
    check_heat(store, train)
    chosen = _drawn(len(train), context.config.seed)
    few = replace(context, bundle=replace(context.bundle, train=part(train, chosen)))
    if store is not None:
        store = replace(store, rounds=(store.rounds[0][chosen],))
    return tuple(trial for trial, _ in _Bench.of(few, model, ks, store, steps_a_k=1).trials())


def rules(masking: MaskingConfig, ks: Sequence[float]) -> list[MaskingConfig]:
    """Return the masking at each threshold, ascending; what cannot be tried is refused."""
    if not strategy_of(masking).uses_k:
        raise ConfigError(
            f"The strategy '{masking.strategy}' has no threshold k.",
            "Choose the strategy heat to look for a k.",
        )
    if not ks:
        raise ConfigError("There is no k to try.", "Give at least one, such as 2.")
    return sorted({replace(masking, k=k, rounds=1) for k in ks}, key=lambda rule: rule.k)


def check_heat(store: HeatStore | None, train: Split) -> None:
    """Refuse heat of other pictures than those to hide."""
    if store is not None and len(store) != len(train):
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

    context: Context
    model: nn.Module
    rules: list[MaskingConfig]
    store: HeatStore | None
    watch: _Steps

    @classmethod
    def of(
        cls,
        context: Context,
        model: nn.Module,
        ks: Sequence[float],
        store: HeatStore | None,
        *,
        steps_a_k: int,
    ) -> "_Bench":
        """Make one ready for the heat, unless it is known, the whole pictures, and each k."""
        tried = rules(context.config.masking, ks)
        watch = _Steps(context.watcher, total=(store is None) + 1 + steps_a_k * len(tried))
        return cls(context=context, model=model, rules=tried, store=store, watch=watch)

    def ask(self, model: nn.Module, split: Split, *, keep: Keeper | None = None) -> Predictions:
        return self.context.ask(model, split, keep=keep, watcher=self.watch.next())

    def heat(self) -> HeatStore:
        watched = replace(self.context, watcher=self.watch.next())
        return look(watched, self.model, str(layer_of(self.context, self.model)))

    def trials(self) -> Iterator[tuple[Trial, Keeper | None]]:
        """Give what each threshold hides, and what the model before still answers."""
        store, train = self.store or self.heat(), self.context.bundle.train
        count = len(train)
        seen = _accuracy(self.ask(self.model, train))
        largest = float(torch.bincount(train.labels).max()) / count
        for rule in self.rules:
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
                    hidden=_accuracy(self.ask(self.model, train, keep=keep)),
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
