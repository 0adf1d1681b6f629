"""What the settings of a run say reaches every rival that trains a plain network by the recipe."""

from dataclasses import replace
from importlib import import_module

import pytest
import torch

from masktune.config import RivalConfig, TrainConfig
from masktune.training.fit import Best

RIVALS = ("groupdro", "cvar_dro", "lff", "sd", "jtt")
TRAINING = TrainConfig(epochs=3, batch_size=20, lr=0.05)


@pytest.mark.parametrize("name", RIVALS)
def test_the_best_epoch_is_heeded(unfair_context, linear, monkeypatch, name):
    rival, told = import_module(f"masktune.training.rivals.{name}"), []
    monkeypatch.setattr(rival, "best_of", lambda _: Best(lambda _: 0.5, patience=1))

    context = unfair_context(name.replace("_", "-"), training=TRAINING, watcher=told.append)
    rival.tune(context, linear)

    # No epoch is better than the first, so the second of three is the last.
    learnt = [p for p in told if p.stage == "finetune"]
    assert learnt[-1].done / learnt[-1].total == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *((name, {"label_smoothing": 0.3}) for name in RIVALS),
        ("groupdro", {"group_step": 1.0}),
        ("groupdro", {"group_adjustment": 50.0}),
        ("lff", {"bias_power": 0.3}),
        ("jtt", {"error_weight": 3}),
    ],
)
def test_what_the_settings_say_changes_what_is_learnt(unfair_context, linear, name, changes):
    tune = import_module(f"masktune.training.rivals.{name}").tune
    context = unfair_context(name.replace("_", "-"), training=TRAINING)
    of_training = "label_smoothing" in changes
    other = replace(
        context.config,
        training=replace(TRAINING, **changes) if of_training else TRAINING,
        rival_settings=RivalConfig() if of_training else RivalConfig(**changes),
    )

    usual, changed = (
        tune(replace(context, config=config), linear).after.model[1].weight
        for config in (context.config, other)
    )

    assert not torch.allclose(usual, changed, rtol=1e-4)


@pytest.mark.parametrize("name", RIVALS)
def test_a_one_logit_model_goes_on_as_one(unfair_context, one_logit, name):
    tune = import_module(f"masktune.training.rivals.{name}").tune

    after = tune(unfair_context(name.replace("_", "-"), training=TRAINING), one_logit).after

    assert after.model[1].out_features == 1
    assert after.model[1].weight.any()
