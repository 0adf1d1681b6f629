import math
from itertools import pairwise

import pytest
import torch

from masktune.data.types import in_memory
from masktune.seeds import stream
from masktune.training.by_recipe import learn_by
from masktune.training.fit import ERM
from masktune.training.rivals.groupdro import GroupDRO, tune


@pytest.fixture
def split():
    """6 pictures: 3 of group 0, 1 of group 1, 2 of group 2, none of group 3."""
    labels = torch.tensor([0, 0, 0, 0, 1, 1])
    attributes = torch.tensor([0, 0, 0, 1, 0, 0])
    return in_memory("train", torch.zeros(6, 3, 1, 1, dtype=torch.uint8), labels, attributes)


def objective(split, compute, **settings):
    return GroupDRO(split, attributes=2, classes=2, compute=compute, **settings)


def test_weights_move_by_the_mean_loss_of_each_group(split, says, logits_for, batch_of, compute):
    # Group 0: -ln 1/2 and -ln 1/8, mean 2 ln 2; group 2: ln 4; group 1 is not there and counts 0.
    # With a step of 1, the weights 1/3 become 1/3 times 4, 1, 4; group 3 has no pictures at all.
    one = objective(split, compute, step=1.0)
    batch = batch_of([0, 0, 1], attributes=[0, 0, 0])

    loss, _ = one.loss(says, logits_for(1 / 2, 7 / 8, 1 / 4), batch, None)

    assert one.weights.q.tolist() == pytest.approx([4 / 9, 1 / 9, 4 / 9, 0])
    assert loss.item() == pytest.approx(4 / 9 * 2 * math.log(2) + 4 / 9 * math.log(4))


def test_the_next_batch_goes_on_from_the_weights_of_the_last(
    split, says, logits_for, batch_of, compute
):
    one = objective(split, compute, step=1.0)
    images, batch = logits_for(1 / 2), batch_of([0], attributes=[1])

    for _ in range(2):
        one.loss(says, images, batch, None)

    assert one.weights.q.tolist() == pytest.approx([1 / 6, 4 / 6, 1 / 6, 0])


def test_the_adjustment_raises_small_groups_and_no_empty_one(
    split, says, logits_for, batch_of, compute
):
    # 3, 1 and 2 pictures. A sure answer adds nothing.
    one = objective(split, compute, step=0.5, adjustment=2.0)

    one.loss(says, torch.tensor([[-50.0]]), batch_of([0]), None)

    raised = torch.tensor([*(math.exp(1 / math.sqrt(n)) for n in (3, 1, 2)), 0])
    assert one.weights.q.tolist() == pytest.approx((raised / raised.sum()).tolist())


def test_the_loss_has_no_gradient_through_the_weights(split, batch_of, compute):
    images = torch.tensor([[0.0], [0.0]], requires_grad=True)
    one = objective(split, compute, step=1.0)

    loss, _ = one.loss(lambda x: x, images, batch_of([0, 1]), None)
    loss.backward()

    # Both groups lose ln 2, so the weights are 2, 1, 2 of 5; sigmoid(0) is 1/2 off either.
    assert images.grad.flatten().tolist() == pytest.approx([1 / 5, -1 / 5])


def test_smoothed_labels_count(split, says, logits_for, batch_of, compute):
    one = objective(split, compute, step=0.0, smoothing=0.2)

    loss, _ = one.loss(says, logits_for(1 / 4), batch_of([1]), None)

    assert loss.item() == pytest.approx((0.9 * math.log(4) + 0.1 * math.log(4 / 3)) / 3)


def test_every_group_is_drawn_with_the_same_chance(unfair, compute):
    one = objective(unfair.train, compute, step=0.01)

    drawn = torch.tensor([one.draw(unfair.train, stream(n, "order")) for n in range(100)])

    assert drawn.shape == (100, 200)  # as many as there are pictures
    groups = unfair.train.labels * 2 + unfair.train.attributes
    shares = torch.bincount(groups[drawn.flatten()]) / drawn.numel()
    # 20,000 draws: the standard deviation of a share of 1/4 is 0.003.
    assert shares.tolist() == pytest.approx([0.25] * 4, abs=0.015)
    assert any(not torch.equal(a, b) for a, b in pairwise(drawn))


def test_it_beats_the_worst_group_of_erm(unfair_context, linear):
    context = unfair_context("groupdro")
    erm = learn_by(context, linear.model, ERM())

    after = tune(context, linear)

    test = context.bundle.tests["test"]
    groups = test.labels * 2 + test.attributes
    worst = [
        min(context.ask(model, test).correct()[groups.numpy() == g].mean() for g in range(4))
        for model in (erm, after.after.model)
    ]
    assert worst[0] < 0.3
    assert worst[1] > 0.8
    facts = after.facts["weights of groups"]
    assert sum(facts) == pytest.approx(1, abs=1e-3)


def test_an_interrupted_training_goes_on_to_the_same_weights(toy, interrupted):
    whole, resumed, states = interrupted(tune, "groupdro")

    assert [state["epoch"] for state in states["finetune"]] == [1, 2]
    for one, other in zip(
        whole.after.model.state_dict().values(),
        resumed.after.model.state_dict().values(),
        strict=True,
    ):
        assert torch.equal(one, other)
    assert whole.facts == resumed.facts
    # Two groups are empty: the weights have moved from theirs.
    first, empty, *_ = whole.facts["weights of groups"]
    assert first > empty
