"""The verdict over many models: what each row says, and which models are judged."""

import runpy
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.checkpoints.settings import settings
from masktune.compute import accelerator
from masktune.config import RunConfig, TrainConfig
from masktune.models.build import build
from masktune.recipes import recipe
from masktune.studies.advice import suggest
from masktune.studies.sweep import quick_look, with_rate
from masktune.studies.verdicts import KS, verdict_rows
from masktune.training.context import Context
from masktune.training.fit import train

TRAINING = TrainConfig(epochs=4, batch_size=32, lr=0.03)
SCRIPT = runpy.run_path(str(Path(__file__).resolve().parents[3] / "docs" / "verdicts.py"))


@pytest.fixture(scope="module")
def before(toy):
    model = train(build("small-cnn", 2, seed=0), toy.train, config=TRAINING)
    return Checkpoint(model=model, arch="small-cnn", classes=2, lr=0.01)


def context(bundle, **changes):
    config = RunConfig(
        dataset="toy", recipe="toy", arch="small-cnn", training=TRAINING, device="cpu"
    )
    config = replace(config, **changes)
    return Context(config=config, bundle=bundle, compute=accelerator("cpu"))


def test_every_row_has_the_verdict_at_its_k_and_what_all_thresholds_suggest(toy, before):
    rows = verdict_rows(context(toy), before, model="seed 0")

    trials = quick_look(context(toy), before.model, most=len(toy.train))
    expected = suggest(with_rate(trials, context(toy).config, before, pictures=len(toy.train)))
    assert [row["k"] for row in rows] == list(KS)
    assert [row["model"] for row in rows] == ["seed 0"] * len(KS)
    at = {trial.k: trial.hiding.to_json() for trial in trials}
    assert [row["hiding"] for row in rows] == [at[k] for k in KS]
    assert all(row["advice"] == asdict(expected) for row in rows)


def test_a_rate_is_judged_by_the_steps_of_an_epoch_over_all_pictures(toy, before, monkeypatch):
    known = suggest.__globals__
    monkeypatch.setitem(
        known, "_suggest", lambda trials: known["Advice"](k=trials[0].k, reason="so")
    )

    (advice, *_) = [row["advice"] for row in verdict_rows(context(toy), before, model="m")]

    assert len(toy.train) == 96
    assert advice["k"] == 0.0
    assert "0.01, times 3 steps is 0.03: under 0.5" in advice["lr_reason"]


@pytest.mark.parametrize("case", SCRIPT["CASES"])
def test_every_case_is_a_run_that_can_be_set_up(case):
    config = settings(SCRIPT["CASES"][case])

    assert config.dataset in case or case in ("cats",)


def test_the_birds_of_a_pretrained_backbone_are_judged_as_their_recipe_trains_them():
    config, usual = (
        settings(SCRIPT["CASES"]["waterbirds-pretrained"]),
        recipe("waterbirds-pretrained"),
    )

    assert (config.dataset, config.arch, config.frame) == ("waterbirds", usual.arch, usual.frame)
    assert (config.training, config.weights) == (usual.training, usual.weights)
    assert (config.normalise, config.batch_norm) == (usual.normalise, "frozen")
