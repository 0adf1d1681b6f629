"""MaskTune: heat, keep, finetune, and again if asked to (rounds)."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.preprocess import Keeper
from masktune.data.splits import part
from masktune.heat.explain import explain
from masktune.heat.hiding import clues_of, keep_of, look_at_hiding, sample_of
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Round, hidden_area, keeper, strategy_of
from masktune.scores.hiding import Hiding
from masktune.scores.json_types import as_json
from masktune.scores.result import scorer
from masktune.training.by_recipe import layer_of
from masktune.training.context import Context, Tuned
from masktune.training.fit import finetune
from masktune.training.freeze import check_layer
from masktune.training.rates import FinetuneRate


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Hide what the model leans on and finetune for one epoch, once for every round.

    Each round starts from the model of the round before. Accumulating, its heat is taken on the
    pictures as they are hidden so far. A run of several rounds ends early when a round's model
    cannot fit its masked training pictures any more, because no useful feature is left (the
    paper's appendix); that round's model is then dropped, unless it is the first.
    """
    check_layer(before.model, context.config.training.freeze)
    layer = layer_of(context, before.model)
    tuned = replace(context.saved or Tuned(after=before), layer=layer)
    planned = context.config.masking.rounds
    floor = _floor(context, before) if planned > 1 else 0.0
    while len(tuned.records) < planned and not tuned.stopped:
        tuned = _next(context, tuned, floor)
        context.save(tuned)
    return tuned


def _next(context: Context, tuned: Tuned, floor: float) -> Tuned:
    number = len(tuned.records) + 1
    config = context.config
    store = tuned.store
    if strategy_of(config.masking).needs_heat:
        hidden = _keep(context, store, number - 1) if config.masking.accumulate else None
        with context.timed("heat"):
            newest = context.known_heat(str(tuned.layer)) if number == 1 else None
            newest = newest or look(
                context, tuned.after.model, str(tuned.layer), keep=hidden, number=number
            )
        store = newest if store is None else store.adding(newest.rounds[0])
    keep = _keep(context, store, number)
    taken: dict[str, Any] = {}
    if number == 1 and keep is not None and not strategy_of(config.masking).is_control:
        with context.timed("evaluate"):
            found = before_the_epoch(context, tuned.after.model, keep, store)
        context.tell(found)
        taken = {"hiding": as_json(found)}
    with context.timed("finetune"):
        model = learn(context, tuned.after, keep, number=number)
    with context.timed("evaluate"):
        rate = _rate(context, tuned.after)
        record = _record(context, model, keep, floor=floor, rate=rate.lr)
    kept = record["fitted"] or number == 1
    return replace(
        tuned,
        after=replace(tuned.after, model=model) if kept else tuned.after,
        store=store,
        records=(*tuned.records, {**record, "kept": kept, **taken}),
    )


def before_the_epoch(
    context: Context, model: nn.Module, keep: Keeper, store: HeatStore | None
) -> Hiding:
    """Judge what hiding takes away from a model, on all training pictures or a sample of them.

    ``keep`` hides the training set; ``store`` has its heat, whose common places stand in for groups
    where no attribute is recorded.
    """
    bundle, seed = context.bundle, context.config.seed
    chosen = sample_of(bundle.train, seed=seed)
    few, hides = part(bundle.train, chosen), keep_of(keep, chosen)
    seen = None if store is None else replace(store, rounds=(store.rounds[0][chosen],))
    return look_at_hiding(
        context.ask(model, few),
        context.ask(model, few, keep=hides),
        keep=hides,
        split=few,
        card=bundle.card,
        of=len(bundle.train),
        clues=clues_of(seen, bundle.card, seed=seed),
    )


def look(
    context: Context, model: nn.Module, layer: str, *, keep: Keeper | None = None, number: int = 1
) -> HeatStore:
    """Return where the model of the round before looks in the training pictures.

    ``keep`` is what is hidden already, ``number`` that of the round.
    """
    return explain(
        model,
        context.bundle.train,
        layer=layer,
        method=context.config.masking.method,
        preprocess=context.preprocess,
        keep=keep,
        compute=context.compute,
        watcher=context.watcher,
        stage="heat" if number == 1 else f"heat {number}",
    )


def learn(
    context: Context, before: Checkpoint, keep: Keeper | None, *, number: int = 1
) -> nn.Module:
    """Return a model finetuned on the hidden training pictures, by a run's settings."""
    config = context.config
    return finetune(
        before.model,
        context.bundle.train,
        keep=keep,
        lr=_rate(context, before).lr,
        config=config.training,
        preprocess=context.preprocess,
        batch_norm=config.batch_norm,
        seed=config.seed,
        round_number=number,
        compute=context.compute,
        watcher=context.watcher,
    )


def _rate(context: Context, before: Checkpoint) -> FinetuneRate:
    return FinetuneRate.of(context.config, before, pictures=len(context.bundle.train))


def _record(
    context: Context, model: nn.Module, keep: Keeper | None, *, floor: float, rate: float
) -> dict[str, Any]:
    """Describe a round; runs of several also say how each round's model does on the test sets."""
    bundle, masking = context.bundle, context.config.masking
    fit = float(context.ask(model, bundle.train, keep=keep).correct().mean())
    record: dict[str, Any] = {
        "k": masking.k,
        **hidden_area(keep, len(bundle.train))._asdict(),
        "fitted": fit >= floor,
        "train_accuracy": fit,
        "lr": rate,
    }
    if masking.rounds > 1:
        score = scorer(bundle)
        scores = {n: score(context.ask(model, s)) for n, s in bundle.tests.items()}
        record["test"] = {
            name: {"average": s.average, "worst_group": s.worst.accuracy}
            for name, s in scores.items()
        }
    return record


def _floor(context: Context, before: Checkpoint) -> float:
    """Give the training accuracy under which a round counts as not fitted.

    Half way from always answering the largest class to what the model before reaches.
    """
    train = context.bundle.train
    reached = float(context.ask(before.model, train).correct().mean())
    largest = float(torch.bincount(train.labels).max()) / len(train)
    return (largest + reached) / 2


def _keep(context: Context, store: HeatStore | None, number: int) -> Keeper | None:
    if number == 0:
        return None
    now = Round(
        masking=context.config.masking,
        store=store,
        size=context.bundle.card.size,
        count=len(context.bundle.train),
        number=number,
        seed=context.config.seed,
        split=context.bundle.train,
    )
    return keeper(now)
