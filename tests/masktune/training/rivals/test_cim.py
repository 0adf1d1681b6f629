import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import RunConfig, TrainConfig
from masktune.data.preprocess import Preprocess
from masktune.data.types import Batch
from masktune.models.build import build
from masktune.training.context import Context
from masktune.training.rivals.cim import CIM, MARGIN, Morpher, partners, similarity, tune

CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=1, batch_size=32, lr=0.01),
    rival="cim",
    device="cpu",
)


def noise(count, seed=0):
    return torch.rand(count, 3, 28, 28, generator=torch.Generator().manual_seed(seed))


def test_equal_pictures_have_similarity_one_and_opposite_ones_less_than_zero():
    pictures = noise(4)

    assert similarity(pictures, pictures).tolist() == [1.0] * 4
    assert similarity(pictures, 1 - pictures).max() < 0
    black, white = torch.zeros(1, 3, 28, 28), torch.ones(1, 3, 28, 28)
    assert similarity(black, white).item() == pytest.approx(1e-4 / (1 + 1e-4), rel=1e-3)


def test_pictures_smaller_than_the_window_can_be_compared():
    small = noise(2)[:, :, :4, :5]

    assert similarity(small, small).tolist() == [1.0, 1.0]


def test_partners_are_the_next_pictures_of_its_class_and_of_another():
    near, far, known = partners(torch.tensor([0, 1, 0, 0, 1, 2]))

    assert known.tolist() == [True, True, True, True, True, False]  # the only 2 has none of its own
    assert near[known].tolist() == [2, 4, 3, 0, 1]
    assert far[known].tolist() == [1, 2, 4, 4, 5]


def test_a_fresh_morpher_changes_nothing_and_learns_to():
    morpher, pictures = Morpher(), noise(2)

    assert torch.equal(morpher(pictures), pictures)
    morpher(pictures).square().mean().backward()
    assert morpher.last.weight.grad.abs().max() > 0


def test_the_triplet_term_is_the_mean_over_pictures_with_partners():
    # Two black and one white: near is 1 and far about 0 for a black one; the white one has no near.
    pictures = torch.stack([torch.zeros(3, 28, 28), torch.zeros(3, 28, 28), torch.ones(3, 28, 28)])
    objective = CIM(Morpher(), preprocess=Preprocess())

    kept = objective.triplets(pictures, pictures, torch.tensor([0, 0, 1]))
    mixed = objective.triplets(pictures, pictures, torch.tensor([0, 1, 0]))

    assert kept.item() == 0.0  # far is below near by more than the margin
    # The first: far is 1 and near 0. The second has no near. The third: far 0, near 0.
    assert mixed.item() == pytest.approx((1 + MARGIN + MARGIN) / 2, abs=1e-3)


def test_similarity_is_that_of_pixels_whatever_the_normalisation():
    preprocess = Preprocess(mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
    pixels = (noise(6) * 255).to(torch.uint8)
    labels = torch.tensor([0, 1, 0, 1, 0, 1])
    plain, normalised = (
        CIM(Morpher(), preprocess=each).triplets(each(pixels), each(pixels), labels).item()
        for each in (Preprocess(), preprocess)
    )

    assert normalised == pytest.approx(plain, abs=1e-5)


def test_the_loss_is_the_cross_entropy_of_plain_and_morphed_pictures_and_the_triplet_term():
    class Unsure(nn.Module):
        def forward(self, images):
            asked.append(len(images))
            return images.new_zeros(len(images), 2)

    asked = []
    pictures, labels = noise(4), torch.tensor([0, 1, 0, 1])
    objective = CIM(Morpher(), preprocess=Preprocess(), penalty=3.0)
    batch = Batch(torch.arange(4), torch.empty(0), labels, torch.zeros(4))

    loss, logits = objective.loss(Unsure(), pictures, batch, None)

    triplets = objective.triplets(pictures, pictures, labels).item()
    assert loss.item() == pytest.approx(math.log(2) + 3 * triplets)
    assert asked == [8]
    assert logits.shape == (4, 2)


def test_after_is_an_ordinary_model_of_its_architecture(toy):
    before = Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)
    context = Context(config=replace(CONFIG), bundle=toy, compute=accelerator("cpu"))

    tuned = tune(context, before)

    build("small-cnn", 2).load_state_dict(tuned.after.model.state_dict())
    assert tuned.own is None
