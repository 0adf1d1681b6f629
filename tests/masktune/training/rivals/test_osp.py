import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import RunConfig, TrainConfig
from masktune.data.types import Batch
from masktune.errors import ModelError
from masktune.models.build import build
from masktune.training.context import Context
from masktune.training.rivals.osp import Constraints, OneSided, tune

CPU = accelerator("cpu")
CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=1, batch_size=32, lr=0.01),
    rival="osp",
    device="cpu",
)


def objective_of(trade_off=1.0, classes=2):
    return OneSided(Constraints(classes, trade_off=trade_off), trade_off=trade_off, compute=CPU)


def loss_of(objective, logits, labels):
    labels = torch.tensor(labels)
    batch = Batch(torch.arange(len(labels)), torch.empty(0), labels, torch.zeros_like(labels))
    return objective.loss(nn.Flatten(), torch.tensor(logits)[:, None, None], batch, None)[0]


def test_the_lagrangian_sums_both_errors_of_every_class():
    # Detectors 1/2 everywhere but 3/4 of the first class on the second picture.
    logits = [[0.0, 0.0], [math.log(3), 0.0]]
    objective = objective_of(trade_off=2.0)

    loss = loss_of(objective, logits, [0, 1])

    first = math.log(2) + 2 * (math.log(4) - 0.5) + 2 * 0.5
    second = math.log(2) + 2 * (math.log(2) - 0.5) + 2 * 0.5
    assert loss.item() == pytest.approx(first + second)


def test_multipliers_rise_where_errors_are_larger_than_allowed_and_what_is_allowed_follows():
    objective = objective_of(trade_off=1.0)

    loss_of(objective, [[0.0, 0.0], [math.log(3), 0.0]], [0, 1])

    risen = [1 + 0.01 * (math.log(4) - 0.5), 1 + 0.01 * (math.log(2) - 0.5)]
    assert objective.constraints.multipliers.tolist() == pytest.approx(risen)
    assert objective.constraints.allowed.tolist() == [0.5, 0.5]  # multipliers began at rest

    loss_of(objective, [[0.0, 0.0], [math.log(3), 0.0]], [0, 1])

    allowed = [0.5 - 0.01 * (1 - each) for each in risen]
    assert objective.constraints.allowed.tolist() == pytest.approx(allowed)


def test_neither_multipliers_nor_what_is_allowed_fall_below_zero():
    objective = objective_of(trade_off=1.0)
    objective.constraints.multipliers.fill_(0.001)
    objective.constraints.allowed.copy_(torch.tensor([0.001, 0.9]))

    loss_of(objective, [[50.0, -50.0], [-50.0, 50.0]], [0, 1])  # without any error

    assert objective.constraints.multipliers.tolist() == pytest.approx([0.001 - 1e-5, 0.0])
    assert objective.constraints.allowed.tolist() == pytest.approx([0.0, 0.9 - 0.01 * 0.999])


def test_a_class_that_is_not_in_the_batch_has_no_error_of_its_own():
    loss = loss_of(objective_of(), [[0.0, 0.0]], [0])

    # First class: its own log 2, no others. Second: none of its own, log 2 of others.
    assert loss.item() == pytest.approx(math.log(2) - 0.5 + 0.5 + math.log(2) - 0.5 + 0.5)


def test_its_own_score_is_that_of_the_surest_detector(toy):
    before = Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)
    context = Context(config=CONFIG, bundle=toy, compute=CPU)

    tuned = tune(context, before)

    pictures = context.preprocess(toy.tests["turned"].images.batch(range(40)))
    with torch.no_grad():
        expected = tuned.after.model(pictures).sigmoid().amax(dim=1)
    assert tuned.own["turned"] == pytest.approx(expected.numpy(), abs=1e-6)
    assert len(tuned.facts["multipliers"]) == len(tuned.facts["allowed errors"]) == 2


def test_a_model_of_one_logit_is_refused_in_words(toy):
    one = Checkpoint(model=build("small-cnn", 1), arch="small-cnn", classes=1, lr=0.01)

    with pytest.raises(ModelError, match="the model has one logit for both") as error:
        tune(Context(config=replace(CONFIG, start="erm"), bundle=toy, compute=CPU), one)

    assert "--start erm" in error.value.remedy
