import math

import pytest
import torch

from masktune.config import RivalConfig
from masktune.models.logits import class_probabilities
from masktune.training.rivals.afr import descended, picture_weights, tune


def test_a_picture_weighs_more_the_less_sure_the_model_is_and_the_rarer_its_class():
    # Three of class 0 with p_y 0.8, 0.8 and 0.2, one of class 1 with p_y 0.5; focus ln 2 / 0.3.
    sure = torch.tensor([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.5, 0.5]]).double()
    labels = torch.tensor([0, 0, 0, 1])

    weights = picture_weights(sure.log(), labels, focus=math.log(2) / 0.3)

    # exp(-focus p) halves for every 0.3: in units of that at p = 0.8, they are 1, 1, 4 and 2; by
    # class counts 1/3, 1/3, 4/3 and 2, in all 4.
    assert weights.tolist() == pytest.approx([1 / 12, 1 / 12, 1 / 3, 1 / 2])


def test_one_logit_weighs_as_two_do():
    logits, labels = torch.tensor([[1.0], [-2.0]]).double(), torch.tensor([0, 1])

    one = picture_weights(logits, labels, focus=3.0)

    assert torch.allclose(
        one, picture_weights(class_probabilities(logits).log(), labels, focus=3.0)
    )


def test_one_step_goes_down_the_weighted_loss():
    # Zero weights: every p is 1/2. The slope of a picture's loss by its logits is p - y, so with
    # weights 3/4 and 1/4 that of the first row is 3/4 (-1/2) (1, 2) + 1/4 (1/2) (4, 0).
    features = torch.tensor([[1.0, 2.0], [4.0, 0.0]]).double()
    began = torch.zeros(2, 2).double(), torch.zeros(2).double()

    weight, bias = descended(
        began,
        features,
        torch.tensor([0, 1]),
        weights=torch.tensor([0.75, 0.25]).double(),
        penalty=0.0,
        rate=1.0,
        steps=1,
    )

    assert weight.tolist() == [[-0.125, 0.75], [0.125, -0.75]]
    assert bias.tolist() == [0.25, -0.25]
    assert began[0].count_nonzero() == 0


def test_the_penalty_counts_the_squared_distance():
    # At distance 1 in the weight after the first step of rate 1, the second step's pull is 2.
    began = torch.zeros(1, 1).double(), None
    asked = {"features": torch.tensor([[2.0]]).double(), "labels": torch.tensor([1])}
    asked |= {"weights": torch.ones(1).double(), "rate": 1.0}

    (first, _), (second, _), (drawn, _) = (
        descended(began, penalty=penalty, steps=steps, **asked)
        for steps, penalty in ((1, 0.0), (2, 0.0), (2, 0.25))
    )

    assert first.item() == 1.0  # p = 1/2, so 2 * (1 - 1/2)
    assert (second - drawn).item() == pytest.approx(0.5)  # 0.25 * 2 * 1


@pytest.mark.parametrize(("logits", "bias"), [(2, True), (1, True), (2, False)])
def test_only_the_last_layer_moves_towards_what_was_answered_wrong(
    last_layer_context, leaning, logits, bias
):
    told, saved = [], []
    context = last_layer_context("afr", watcher=told.append, save=saved.append)
    before = leaning(logits, bias=bias)

    tuned = tune(context, before)

    split = context.bundle.validation
    wrong = ~torch.from_numpy(context.ask(before.model, split).correct())
    then, now = (
        torch.from_numpy(context.ask(one.model, split).probabilities)[wrong]
        .gather(1, split.labels[wrong][:, None])
        .mean()
        for one in (before, tuned.after)
    )
    assert now > then
    assert 0.9 < tuned.facts["weight of wrong answers"] <= 1
    assert saved == [tuned]
    assert (told[-1].stage, told[-1].done, told[-1].total) == ("finetune", 200, 200)
    for name, value in before.model.state_dict().items():
        after = tuned.after.model.state_dict()[name]
        assert torch.equal(value, after) == (not name.startswith("head."))


def test_settings_reach_the_descent(last_layer_context, leaning):
    def weight(**settings):
        context = last_layer_context("afr", settings=RivalConfig(**settings))
        return tune(context, leaning()).after.model.head.weight

    usual = weight()
    assert torch.equal(usual, weight(focus=10.0, penalty=0.0))
    assert not torch.allclose(usual, weight(focus=0.0))
    began = leaning().model.head.weight
    assert (weight(penalty=10.0) - began).norm() < 0.5 * (usual - began).norm()
