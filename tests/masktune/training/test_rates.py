"""The rate of a finetune: where it is from, and when it is too small."""

import pytest
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import RunConfig, TrainConfig
from masktune.training.rates import ENOUGH, NOT_STORED, FinetuneRate, suggest_rate

TRAINING = TrainConfig(lr=0.1, epochs=4, decay_at=(2,), decay_factor=0.1, batch_size=64)


@pytest.mark.parametrize(
    ("given", "stored", "lr", "origin"),
    [
        ({"finetune_lr": 0.3, "model": "m.pt"}, 0.02, 0.3, "as given"),
        ({}, None, 0.01, "the last one of the ERM"),
        ({"model": "m.pt"}, 0.02, 0.02, "the last one that the model before was trained with"),
        ({"model": "m.pt"}, None, 0.01, NOT_STORED),
    ],
)
def test_a_rate_is_as_set_or_the_model_s_last_one_or_the_recipe_s(given, stored, lr, origin):
    config = RunConfig(dataset="toy", recipe="toy", arch="small-cnn", training=TRAINING, **given)
    before = Checkpoint(model=nn.Identity(), arch="small-cnn", classes=2, lr=stored)

    found = FinetuneRate.of(config, before, pictures=129)

    assert found.lr == pytest.approx(lr)
    assert (found.origin, found.steps) == (origin, 3)


@pytest.mark.parametrize(
    ("usual", "steps", "expected"),
    [
        (0.01, 55, None),  # the digits: 0.55 is enough
        (0.01, 50, None),  # exactly enough
        (0.01, 19, 0.027),  # the cows: 0.5 / 19 is 0.0263, rounded up
        (0.002, 16, 0.01),  # cats with stamps: five times, not the 0.031 that would reach it
        (None, 19, None),
        (0.01, 0, None),
    ],
)
def test_a_rate_is_suggested_where_the_usual_one_times_its_steps_is_too_small(
    usual, steps, expected
):
    rate, why = suggest_rate(usual, steps)

    assert rate == expected
    assert bool(why) == (expected is not None)
    if expected == 0.027:
        assert expected * steps >= ENOUGH
        assert "0.01, times 19 steps is 0.19" in why
