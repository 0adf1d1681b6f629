"""Try a model at several thresholds, with a finetune at each or as a quick look."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import MaskingConfig, RunConfig
from masktune.data.preprocess import Keeper
from masktune.data.splits import part
from masktune.data.types import Split
from masktune.errors import ConfigError
from masktune.heat.hiding import clues_of, look_at_hiding
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Round, hidden_area, keeper, strategy_of
from masktune.progress import Steps
from masktune.scores.evidence import tells_apart
from masktune.scores.predictions import Predictions
from masktune.seeds import stream
from masktune.studies.advice import Trial, TunedScores
from masktune.training.by_recipe import layer_of
from masktune.training.context import Context
from masktune.training.masktune import learn, look
from masktune.training.rates import FinetuneRate

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
    """Finetune a model once at every threshold; return a trial for each k, ascending.

    Heat is computed once, unless ``store`` has that of all training pictures, its first round.
    Test sets are not read, and attributes only for the verdict on what hiding takes away; nor do k
    and rounds of the settings count. The model before is not changed. The watcher is told how far
    all of it is, as the stage "sweep".
    """
    bundle, trials = context.bundle, []
    check_heat(store, bundle.train)
    tried = rules(context.config.masking, ks)
    steps = Steps(context.watcher, "sweep", total=(store is None) + 1 + 4 * len(tried))
    for trial, keep in _trials(context, before.model, tried, store, steps):
        after = learn(replace(context, watcher=steps.next()), before, keep)
        validation = context.ask(after, bundle.validation, watcher=steps.next())
        correct, labels = validation.correct(), validation.labels
        fitted = context.ask(after, bundle.train, keep=keep, watcher=steps.next())
        tuned = TunedScores(
            train=_accuracy(fitted),
            validation=_accuracy(validation),
            worst_class=min(float(correct[labels == n].mean()) for n in np.unique(labels)),
        )
        trials.append(replace(trial, tuned=tuned))
    return tuple(trials)


def quick_look(
    context: Context,
    model: nn.Module,
    *,
    ks: Sequence[float] = KS,
    store: HeatStore | None = None,
    most: int | None = None,
) -> tuple[Trial, ...]:
    """Look at every threshold without finetuning, on ``most`` training pictures, else ``SAMPLE``.

    The seed of the settings draws the sample; everything else is as for ``sweep``.
    """
    train = context.bundle.train
    check_heat(store, train)
    # So many positions at most, ascending, (n,) int64.
    drawn = torch.randperm(len(train), generator=stream(context.config.seed, "advice"))
    chosen = drawn[: SAMPLE if most is None else most].sort().values
    few = replace(context, bundle=replace(context.bundle, train=part(train, chosen)))
    if store is not None:
        store = replace(store, rounds=(store.rounds[0][chosen],))
    tried = rules(context.config.masking, ks)
    steps = Steps(context.watcher, "sweep", total=(store is None) + 1 + len(tried))
    return tuple(trial for trial, _ in _trials(few, model, tried, store, steps, of=len(train)))


def with_rate(
    trials: Sequence[Trial], config: RunConfig, before: Checkpoint, *, pictures: int
) -> tuple[Trial, ...]:
    """Return trials that know the usual rate of a finetune and its steps on so many pictures."""
    rate = FinetuneRate.of(config, before, pictures=pictures)
    lr = rate.lr if rate.steps else None
    return tuple(replace(trial, lr=lr, steps=rate.steps) for trial in trials)


def rules(masking: MaskingConfig, ks: Sequence[float]) -> list[MaskingConfig]:
    """Return the masking at each threshold, ascending; what cannot be tried is refused."""
    if not strategy_of(masking).advised:
        raise ConfigError(
            f"No k is suggested for the strategy '{masking.strategy}': the rule is about small "
            "masks over what is hot.",
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


def _trials(
    context: Context,
    model: nn.Module,
    tried: Sequence[MaskingConfig],
    store: HeatStore | None,
    steps: Steps,
    *,
    of: int | None = None,
) -> Iterator[tuple[Trial, Keeper | None]]:
    """Yield what each threshold hides, and what the model before still answers."""
    train = context.bundle.train
    count = len(train)
    if store is None:
        watched = replace(context, watcher=steps.next())
        store = look(watched, model, str(layer_of(context, model)))
    before = context.ask(model, train, watcher=steps.next())
    card = context.bundle.card
    clues = clues_of(store, card, seed=context.config.seed)
    learnt = tells_apart(before)
    largest = float(torch.bincount(train.labels).max()) / count
    for rule in tried:
        now = Round(
            masking=rule,
            store=store,
            size=store.size,
            count=count,
            number=1,
            seed=context.config.seed,
            split=train,
        )
        keep = keeper(now)
        after = context.ask(model, train, keep=keep, watcher=steps.next())
        trial = Trial(
            k=rule.k,
            pictures=count,
            **hidden_area(keep, count)._asdict(),
            largest_class=largest,
            seen=_accuracy(before),
            hidden=_accuracy(after),
            learnt=learnt,
            hiding=look_at_hiding(
                before, after, keep=keep, split=train, card=card, of=of, clues=clues
            ),
        )
        yield trial, keep


def _accuracy(predictions: Predictions) -> float:
    return float(predictions.correct().mean())
