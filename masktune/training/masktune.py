"""Rounds of masking: heat, keep, finetune, and again if asked to."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import HEATED, RunConfig
from masktune.data.preprocess import Keeper
from masktune.heat.explain import explain
from masktune.heat.layers import cam_layer, layer_named, name_of
from masktune.heat.store import HeatStore
from masktune.heat.strategies import hidden_area, keeper
from masktune.runs.resume import Saved, save_round
from masktune.scores.result import scorer
from masktune.training.context import Work
from masktune.training.fit import finetune


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The rounds of a run so far.

    Attributes:
        after: the tuned model; the model before when no round is finished.
        store: heat of every round.
        records: what happened in each round, as in ``result.json``.
    """

    after: Checkpoint
    store: HeatStore
    records: tuple[dict[str, Any], ...] = ()

    @property
    def stopped(self) -> bool:
        """Whether the last round could not be fitted, so that no further one makes sense."""
        return bool(self.records) and not self.records[-1]["fitted"]

    def document(self) -> dict[str, Any]:
        """Give the "masking" part of ``result.json``."""
        return {
            "rounds": list(self.records),
            "layer": self.store.layer,
            "stopped_early": self.stopped,
        }


def run_rounds(work: Work, before: Checkpoint, saved: Saved) -> Rounds:
    """Hide what the model leans on and finetune for one epoch, once for every round.

    Each round starts from the model of the round before. Accumulating, its heat is taken on the
    pictures as they are hidden so far. A run of several rounds ends early when a round's model
    cannot fit its masked training pictures any more, because no useful feature is left (the
    paper's appendix); that round's model is then dropped.
    """
    rounds = Rounds(
        after=saved.after or before,
        store=saved.store or _empty_store(work, before),
        records=saved.rounds,
    )
    planned = work.config.masking.rounds
    floor = _floor(work, before) if planned > 1 else 0.0
    while len(rounds.records) < planned and not rounds.stopped:
        rounds = _next(work, rounds, floor)
        save_round(work.folder, rounds.after, rounds.store, rounds.records, work.config)
    return rounds


def _next(work: Work, rounds: Rounds, floor: float) -> Rounds:
    number = len(rounds.records) + 1
    config, train = work.config, work.bundle.train
    store = rounds.store
    if config.masking.strategy in HEATED:
        hidden = _keep(work, store, number - 1) if config.masking.accumulate else None
        with work.timed("heat"):
            heat = explain(
                rounds.after.model,
                train,
                layer=store.layer,
                method=store.method,
                preprocess=work.preprocess,
                keep=hidden,
                compute=work.compute,
                watcher=work.watcher,
                stage="heat" if number == 1 else f"heat {number}",
            )
            store = store.adding(heat)
    keep = _keep(work, store, number)
    rate = finetune_rate(config, rounds.after)
    with work.timed("finetune"):
        tuned = finetune(
            rounds.after.model,
            train,
            keep=keep,
            lr=rate,
            config=config.training,
            preprocess=work.preprocess,
            seed=config.seed,
            round_number=number,
            compute=work.compute,
            watcher=work.watcher,
        )
    with work.timed("evaluate"):
        record = {**_record(work, tuned, keep, floor), "lr": rate}
    kept = record["fitted"] or number == 1
    after = replace(rounds.after, model=tuned) if kept else rounds.after
    return Rounds(after=after, store=store, records=(*rounds.records, record))


def finetune_rate(config: RunConfig, before: Checkpoint) -> float:
    """Give the rate of the finetune: as set, else the last one the model was trained with."""
    return config.finetune_lr or before.lr or config.training.last_lr


def _record(work: Work, tuned: nn.Module, keep: Keeper | None, floor: float) -> dict[str, Any]:
    """Describe a round; runs of several also say how each round's model does on the test sets."""
    hidden = hidden_area(keep, len(work.bundle.train))
    fit = float(work.ask(tuned, work.bundle.train, keep=keep).correct().mean())
    record: dict[str, Any] = {
        "k": work.config.masking.k,
        "hidden_fraction": hidden.hidden_fraction,
        "empty_fraction": hidden.empty_fraction,
        "fitted": fit >= floor,
        "train_accuracy": fit,
    }
    if work.config.masking.rounds > 1:
        score = scorer(work.bundle)
        scores = {n: score(work.ask(tuned, s)) for n, s in work.bundle.tests.items()}
        record["test"] = {
            name: {"average": s.averages.test, "worst_group": s.worst.accuracy}
            for name, s in scores.items()
        }
    return record


def _floor(work: Work, before: Checkpoint) -> float:
    """Give the training accuracy under which a round counts as not fitted.

    Half way from always answering the largest class to what the model before reaches.
    """
    train = work.bundle.train
    reached = float(work.ask(before.model, train).correct().mean())
    largest = float(torch.bincount(train.labels).max()) / len(train)
    return (largest + reached) / 2


def _keep(work: Work, store: HeatStore, number: int) -> Keeper | None:
    if number == 0:
        return None
    return keeper(
        work.config.masking,
        store,
        count=len(work.bundle.train),
        round_number=number,
        seed=work.config.seed,
    )


def _empty_store(work: Work, before: Checkpoint) -> HeatStore:
    masking, size = work.config.masking, work.bundle.card.size
    layer = (
        layer_named(before.model, masking.layer)
        if masking.layer is not None
        else cam_layer(before.model, size=size)
    )
    return HeatStore(
        rounds=(), size=size, layer=name_of(before.model, layer), method=masking.method
    )
