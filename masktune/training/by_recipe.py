"""What is trained by the recipe: the model before, and the networks of rivals."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.checkpoints.start import given_model, start_model
from masktune.config import BY_HEAT, MASKTUNE, TrainConfig
from masktune.data.types import DatasetBundle
from masktune.errors import ConfigError, ModelError
from masktune.heat.layers import heat_layer
from masktune.heat.strategies import strategy_of
from masktune.scores.groups import ANY, GroupScore, group_name
from masktune.scores.result import scorer
from masktune.training.context import Context, OwnScores, Tuned
from masktune.training.fit import Best, Objective, Resume, fit, train
from masktune.training.last_layer import last_layer
from masktune.training.methods import RIVALS


def model_before(context: Context, *, resume: Resume | None = None) -> Checkpoint:
    """Load the model that a run starts from, or train it by ERM, interruptibly by ``resume``."""
    config, card = context.config, context.bundle.card
    if config.model is not None:
        return given_model(config.model, card, config=config)
    start = untrained(context)
    if not config.only_before:
        check_network(context, start)  # what cannot go on is refused here, not after its training
    best = best_of(context)
    model = train(
        start.model,
        context.bundle.train,
        config=config.training,
        preprocess=context.preprocess,
        best=best,
        seed=config.seed,
        compute=context.compute,
        watcher=context.watcher,
        resume=resume,
    )
    made = replace(start, model=model)
    return made if best is None else replace(made, epoch=best.epoch)


def untrained(context: Context) -> Checkpoint:
    """Return the network that becomes the model before of a run that trains it."""
    config = context.config
    fresh = start_model(config, context.bundle.card, watcher=context.watcher)
    return _checkpoint(context, fresh, arch=config.arch)


def check_network(context: Context, before: Checkpoint) -> None:
    """Refuse a model before, trained or not yet, that the method of a run cannot go on with."""
    layer_of(context, before.model)  # a network without maps
    rival = RIVALS[context.config.rival]
    if rival.reads_last_layer or rival.has_own_start_check:
        start = beginning(context, before) if rival.by_recipe else before
        rival.check_start(start)
        if rival.reads_last_layer:
            last_layer(context, start)


def _checkpoint(context: Context, model: nn.Module, *, arch: str) -> Checkpoint:
    """Return a model that is trained by the recipe of a run."""
    card = context.bundle.card
    return Checkpoint(
        model=model,
        arch=arch,
        classes=len(card.classes),
        lr=context.config.training.last_lr,
        mean=card.mean,
        std=card.std,
    )


def best_of(context: Context) -> Best | None:
    """Return what finds the best epoch of the ERM on validation; None where the last is taken."""
    training, bundle = context.config.training, context.bundle
    check_best(training, bundle)
    if training.best == "last":
        return None
    sum_up = scorer(bundle)

    def score(model: nn.Module) -> float:
        found = sum_up(context.ask(model, bundle.validation))
        worst = found.worst.accuracy
        return found.average if training.best == "average" or worst is None else worst

    return Best(score, patience=training.patience)


def check_best(training: TrainConfig, bundle: DatasetBundle) -> None:
    """Refuse to find the best epoch by groups that nobody knows."""
    if training.best == "worst-group" and not bundle.knows_groups(bundle.validation):
        raise ConfigError(
            f"The best epoch by worst group needs validation groups, and '{bundle.card.key}' does "
            "not know the attribute of every such picture.",
            "Take the best epoch on average (--best average), or a dataset with attributes.",
        )


def layer_of(context: Context, model: nn.Module) -> str | None:
    """Return the layer that heat is read at; None where there is none and no heat is needed."""
    masking, rival = context.config.masking, context.config.rival
    hides = strategy_of(masking).needs_heat or masking.layer is not None
    try:
        return heat_layer(model, masking.layer, size=context.bundle.card.size)
    except ModelError:
        # A rival that reads no heat looks at nothing of the masking.
        if rival in BY_HEAT and (hides or rival != MASKTUNE):
            raise
        return None


def beginning(context: Context, before: Checkpoint) -> Checkpoint:
    """Return the untrained model after of a rival: as the ERM began, or the model before."""
    config, card = context.config, context.bundle.card
    if config.start == "erm":
        return before
    own = replace(config, arch=before.arch)  # which a run with a given model does not name
    fresh = start_model(own, card, watcher=context.watcher)
    return _checkpoint(context, fresh, arch=before.arch)


def learn_by(
    context: Context,
    model: nn.Module,
    objective: Objective,
    *,
    part: str = "finetune",
    training: TrainConfig | None = None,
    best: Best | None = None,
) -> nn.Module:
    """Return a model trained by a rival's objective, interruptibly.

    Args:
        context: of the run.
        model: where to start.
        objective: what is made small; its own modules are trained in place.
        part: name of this training among those of the rival, told to the watcher.
        training: the recipe's by default.
        best: finds the best epoch; None takes the last one's model.
    """
    config = context.config
    training = training or config.training
    with context.timed("finetune"):
        return fit(
            model,
            context.bundle.train,
            objective=objective,
            config=training,
            stage=part,
            preprocess=context.preprocess,
            compute=context.compute,
            best=best,
            batch_norm=training.erm_batch_norm,
            seed=config.seed,
            watcher=context.watcher,
            resume=context.resume(part),
        )


def by_group(bundle: DatasetBundle, values: Tensor) -> dict[str, float | None]:
    """Return the mean of what training pictures have, (N,) float, in every group by its name.

    None in a group without pictures; where attributes are unknown, the groups are the classes.
    """
    split, card = bundle.train, bundle.card
    known = bundle.knows_groups(split)
    attributes = card.attributes if known else (ANY,)
    groups = split.labels * len(attributes) + (split.attributes if known else 0)
    means = {}
    for number, names in enumerate(product(card.classes, attributes)):
        own = values[groups == number]
        mean = round(float(own.mean()), 4) if len(own) else None
        means[group_name(GroupScore(*names, len(own), None, None))] = mean
    return means


def finished(
    context: Context,
    after: Checkpoint,
    *,
    own: OwnScores | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Tuned:
    """Save what a rival has made, and return it.

    ``own`` are its scores beside the probabilities, by split; ``facts`` is what it found out on
    the way, for ``result.json``.
    """
    layer = layer_of(context, after.model)
    tuned = Tuned(after=after, layer=layer, own=own, facts=facts or {})
    context.save(tuned)
    return tuned
