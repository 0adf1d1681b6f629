import math

import pytest
import torch

from masktune.config import RivalConfig, TrainConfig
from masktune.training.rivals.sd import PENALTY, SpectralDecoupling, tune


@pytest.mark.parametrize(
    ("images", "squares"),
    [
        (torch.tensor([[math.log(3), 0.0], [0.0, -math.log(3)]]), math.log(3) ** 2 / 2),
        (torch.tensor([[-math.log(3)], [-math.log(3)]]), math.log(3) ** 2),
    ],
)
def test_half_the_penalty_times_the_mean_squared_logit_is_added(says, batch_of, images, squares):
    # Both pictures are of class 0 with probability 3/4, said by two logits or by one.
    loss, _ = SpectralDecoupling(penalty=0.4).loss(says, images, batch_of([0, 0]), None)

    assert loss.item() == pytest.approx(math.log(4 / 3) + 0.2 * squares)


@pytest.mark.parametrize(("given", "taken"), [(None, PENALTY), (0.0, 0.0), (7.0, 7.0)])
def test_the_penalty_stands_in_place_of_weight_decay(
    unfair_context, linear, monkeypatch, given, taken
):
    seen = []

    def learn(context, model, objective, *, training, best):
        seen.append((objective.penalty, training.weight_decay, training.epochs))
        return model

    monkeypatch.setattr("masktune.training.rivals.sd.learn_by", learn)
    training = TrainConfig(epochs=3, batch_size=20, lr=0.05, weight_decay=0.5)

    tune(unfair_context("sd", training=training, settings=RivalConfig(penalty=given)), linear)

    assert seen == [(taken, 0.0, 3)]


def test_a_large_penalty_keeps_logits_small(unfair_context, linear):
    sizes = []
    for penalty in (0.0, 10.0):
        context = unfair_context("sd", settings=RivalConfig(penalty=penalty))
        model = tune(context, linear).after.model
        images = context.preprocess(context.bundle.train.images.batch(range(200)))
        sizes.append(model(images).abs().mean().item())

    assert sizes[1] < sizes[0] / 5
