import math

import pytest
import torch
from torch import nn

from masktune.data.types import in_memory
from masktune.models.build import build
from masktune.training.rivals.lff import Difficulty, LfF, easy_first, tune


def test_the_easy_weighs_more_by_generalised_cross_entropy():
    # p_y of 1 / e and of 1 / e^2: weights 0.5 e^-0.5 and 0.5 e^-1, without a gradient through them.
    losses = torch.tensor([1.0, 2.0], requires_grad=True)

    easy = easy_first(losses, 0.5)
    easy.sum().backward()

    expected = [0.5 * math.exp(-0.5), 0.5 * math.exp(-1)]
    assert losses.grad.tolist() == pytest.approx(expected)
    assert easy.tolist() == pytest.approx([expected[0] * 1, expected[1] * 2])


def test_the_first_value_is_taken_as_it_is_and_later_ones_by_three_tenths():
    hard = Difficulty(torch.tensor([0, 0, 1]), classes=2)

    hard.add(torch.tensor([2, 0]), torch.tensor([[4.0, 1.0], [2.0, 3.0]]))
    hard.add(torch.tensor([0]), torch.tensor([[2.0], [0.0]]))

    assert hard.averages[:, [0, 2]].tolist() == [
        pytest.approx([0.7 * 1 + 0.3 * 2, 4.0]),
        pytest.approx([0.7 * 3, 2.0]),
    ]


def test_what_the_first_network_fails_at_more_than_the_second_weighs_more():
    # Class 0: first network 1, 4, second 2, 1; divided by 4 and 2: b 1/4, 1 and d 1, 1/2.
    # Class 1 is divided by its own largest values: 1 and 1.
    hard = Difficulty(torch.tensor([0, 0, 1]), classes=2)
    hard.add(torch.arange(3), torch.tensor([[1.0, 4.0, 8.0], [2.0, 1.0, 16.0]]))

    assert hard.weights().tolist() == pytest.approx([0.25 / 1.25, 1 / 1.5, 0.5])


def test_pictures_that_were_not_seen_leave_the_largest_of_their_class_alone():
    hard = Difficulty(torch.tensor([0, 0, 1]), classes=2)

    hard.add(torch.tensor([0]), torch.tensor([[0.5], [0.25]]))

    assert hard.weights()[0].item() == pytest.approx(0.5)


def test_a_class_that_both_answer_with_certainty_has_no_weight():
    hard = Difficulty(torch.tensor([0]), classes=1)

    hard.add(torch.tensor([0]), torch.tensor([[0.0], [0.0]]))

    assert hard.weights().tolist() == [0.0]


class Fixed(nn.Module):
    """Says the same of every batch, (N, 1) logits."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(logits.clone())

    def forward(self, _):
        return self.logits


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_both_networks_learn_each_by_its_own_weight(logits_for, batch_of, compute, smoothing):
    # Pictures 3 and 1 of four, both of class 1. First network: p_y 1/2 and 1/4, so ln 2 and 2 ln 2;
    # second: both 1/4, 2 ln 2. Divided by the largest, b is 1/2 and 1, d 1 and 1.
    pixels = torch.zeros(4, 3, 1, 1, dtype=torch.uint8)
    split = in_memory("train", pixels, torch.tensor([0, 1, 0, 1]))
    first, second = Fixed(logits_for(1 / 2, 1 / 4)), Fixed(logits_for(1 / 4, 1 / 4))
    lff = LfF(first, split, classes=2, power=1.0, smoothing=smoothing, compute=compute)

    loss, logits = lff.loss(second, torch.zeros(2), batch_of([1, 1], positions=[3, 1]), None)
    loss.backward()

    ln2, kept = math.log(2), 1 - smoothing / 2
    biased = ln2 / 2 + 2 * ln2 / 4  # p_y times the cross entropy
    plain = kept * 2 * ln2 + (1 - kept) * math.log(4 / 3)
    assert loss.item() == pytest.approx((biased + plain / 3 + plain / 2) / 2)
    assert torch.equal(logits, second.logits)
    # The gradient of a cross entropy is p - 1, smoothed p - kept; then its weight and the mean.
    assert first.logits.grad.flatten().tolist() == pytest.approx([-0.5 / 2 / 2, -0.75 / 4 / 2])
    assert second.logits.grad.flatten().tolist() == pytest.approx(
        [(1 / 4 - kept) / 3 / 2, (1 / 4 - kept) / 2 / 2]
    )
    assert lff.difficulty.averages[:, [3, 1]].tolist() == [
        pytest.approx([ln2, 2 * ln2]),
        pytest.approx([2 * ln2, 2 * ln2]),
    ]


def test_the_result_is_the_network_that_learns_the_failures(unfair_context, linear):
    saved = []
    context = unfair_context("lff", save=saved.append)

    tuned = tune(context, linear)

    assert saved == [tuned]
    assert not linear.model[1].weight.any()  # the model before is left alone
    weights = tuned.facts["mean weight"]
    assert [*weights] == ["dark, plain", "dark, spot", "bright, plain", "bright, spot"]
    # The small groups, which green misleads about, are the failures of the first network.
    assert min(weights["dark, spot"], weights["bright, plain"]) > 2 * max(
        weights["dark, plain"], weights["bright, spot"]
    )


def test_what_is_frozen_is_frozen_in_both_networks(toy, interrupted, monkeypatch):
    made = []

    class Kept(LfF):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            made.append(self)

    monkeypatch.setattr("masktune.training.rivals.lff.LfF", Kept)
    fresh = build("small-cnn", 2, size=toy.card.size, seed=0).state_dict()

    interrupted(tune, "lff", freeze="body")

    found = made[0].first.state_dict()
    moved = {name for name, value in fresh.items() if not torch.equal(value, found[name])}
    assert moved == {"head.weight", "head.bias"}


def test_an_interrupted_training_goes_on_to_the_same_weights(interrupted):
    whole, resumed, states = interrupted(tune, "lff")

    assert [state["epoch"] for state in states["finetune"]] == [1, 2]
    assert states["finetune"][0]["objective"]["difficulty.averages"].shape == (2, 96)
    for one, other in zip(
        whole.after.model.state_dict().values(),
        resumed.after.model.state_dict().values(),
        strict=True,
    ):
        assert torch.equal(one, other)
    assert whole.facts == resumed.facts
