import math

import pytest
import torch

from masktune.config import RivalConfig, TrainConfig
from masktune.training.by_recipe import learn_by
from masktune.training.fit import ERM
from masktune.training.rivals.cvar_dro import CVaR, tune, worst_weights


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.5, [0, 0.4, 0.2, 0.4, 0]),  # 2.5 of 5: two at 1 / 2.5, half as much on the third
        (0.4, [0, 0.5, 0, 0.5, 0]),
        (0.1, [0, 1, 0, 0, 0]),  # half a picture: all of it on the worst
        (1.0, [0.2] * 5),
    ],
)
def test_the_worst_share_of_a_batch_has_all_of_the_weight(share, expected):
    losses = torch.tensor([1.0, 4.0, 2.0, 3.0, 0.0])

    assert worst_weights(losses, share).tolist() == pytest.approx(expected)


def test_of_equal_losses_as_many_count_as_of_others():
    assert worst_weights(torch.ones(4), 0.5).tolist() == [0.5, 0.5, 0, 0]


def test_the_loss_is_the_mean_of_the_worst_answered(says, logits_for, batch_of, compute):
    # Class 1 all over: -ln 1/2, -ln 1/8 and -ln 1/4. A share of 1/2 is one and a half pictures:
    # (ln 8 + ln 4 / 2) / 1.5 = 4 ln 2 / 1.5.
    images, batch = logits_for(1 / 2, 1 / 8, 1 / 4), batch_of([1, 1, 1])

    loss, logits = CVaR(share=0.5, compute=compute).loss(says, images, batch, None)

    assert loss.item() == pytest.approx(4 * math.log(2) / 1.5)
    assert torch.equal(logits, images)


def test_no_gradient_reaches_what_is_answered_well(batch_of, compute):
    images = torch.tensor([[0.0], [-1.0], [3.0]], requires_grad=True)

    loss, _ = CVaR(share=1 / 3, compute=compute).loss(
        lambda x: x, images, batch_of([1, 1, 1]), None
    )
    loss.backward()

    sigmoid = 1 / (1 + math.e)
    assert images.grad.flatten().tolist() == pytest.approx([0, sigmoid - 1, 0])


def test_smoothed_labels_count(says, logits_for, batch_of, compute):
    images, batch = logits_for(1 / 4), batch_of([1])

    loss, _ = CVaR(share=1.0, smoothing=0.2, compute=compute).loss(says, images, batch, None)

    assert loss.item() == pytest.approx(0.9 * math.log(4) + 0.1 * math.log(4 / 3))


def test_the_whole_batch_is_plain_training_and_a_share_of_it_is_not(unfair_context, linear):
    few = TrainConfig(epochs=1, batch_size=20, lr=0.05)
    whole, half = (
        tune(
            unfair_context("cvar-dro", training=few, settings=RivalConfig(worst_share=share)),
            linear,
        )
        .after.model[1]
        .weight
        for share in (1.0, 0.5)
    )

    erm = learn_by(unfair_context("cvar-dro", training=few), linear.model, ERM())
    assert torch.allclose(whole, erm[1].weight, atol=1e-6)
    assert not torch.allclose(half, erm[1].weight, atol=1e-3)
