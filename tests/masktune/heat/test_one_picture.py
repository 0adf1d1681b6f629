"""One picture asked, hidden and flipped, on networks that a person can work out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torchvision.models import VisionTransformer

from masktune.data.preprocess import Preprocess
from masktune.errors import DataError
from masktune.heat import one_picture
from masktune.heat.layers import heat_layer
from masktune.heat.one_picture import answer_picture, hide_hot, smallest_flip


class Sum(nn.Module):
    """Says 1 where the pixels of the first channel sum to more than a threshold, otherwise 0."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.maps = nn.Conv2d(3, 1, 1, bias=False)
        self.maps.weight.data = torch.tensor([1.0, 0.0, 0.0])[None, :, None, None]
        self.threshold = threshold

    def forward(self, images):
        total = self.maps(images).sum(dim=(1, 2, 3))
        return torch.stack([torch.full_like(total, self.threshold), total], dim=1)


def white(side: int = 4) -> torch.Tensor:
    return torch.full((3, side, side), 255, dtype=torch.uint8)


def rising(side: int = 4) -> np.ndarray:
    """Heat that grows from pixel to pixel, the first cold, the last hottest."""
    return np.linspace(0, 1, side * side).reshape(side, side)


def test_a_picture_has_one_answer_and_the_heat_that_explains_it():
    image = white()
    image[:, :, 2:] = 0

    said = answer_picture(Sum(7.5), image, layer="maps")

    assert said.answer == 1  # 8 white pixels against 7.5
    assert said.confidence == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert said.heat.shape == (4, 4)
    assert np.all(said.heat[:, :2] == pytest.approx(1))
    assert np.all(said.heat[:, 2:] == pytest.approx(0))


def test_without_a_layer_there_is_no_heat_and_the_answer_is_the_same():
    with_heat, without = (answer_picture(Sum(7), white(), layer=name) for name in ("maps", None))

    assert without.heat is None
    assert np.array_equal(with_heat.probabilities, without.probabilities)


def test_pictures_are_normalised_as_the_data_is():
    way = Preprocess(mean=(1.0, 1.0, 1.0), std=(1.0, 1.0, 1.0))

    assert answer_picture(Sum(7), white(), layer=None, preprocess=way).answer == 0  # all 0 now


@pytest.mark.parametrize("name", ["maps", None])
def test_asking_takes_one_pass_for_the_answer_and_one_for_the_heat(name, monkeypatch):
    passes = []
    forward = Sum.forward
    monkeypatch.setattr(
        Sum, "forward", lambda self, images: passes.append(len(images)) or forward(self, images)
    )

    answer_picture(Sum(7), white(), layer=name)

    assert passes == ([1, 1] if name else [1])


def test_what_is_hotter_than_k_allows_is_black_and_the_rest_untouched():
    heat = np.zeros((4, 4))
    heat[0, 0], heat[0, 1] = 1.0, 0.2  # over the positive: mu 0.6, sigma 0.4

    hidden, share = hide_hot(white(), heat, k=0.5)
    whole, none = hide_hot(white(), heat, k=1.0)  # 1.0 is not above 1.0

    assert hidden[:, 0, 0].tolist() == [0, 0, 0]
    assert int((hidden == 0).sum()) == 3
    assert torch.equal(whole, white())
    assert (share, none) == (1 / 16, 0)


def test_what_is_hidden_can_take_the_mean_colour_of_the_rest():
    image = white()
    image[:, 0, 0] = 0
    image[:, 3] = 100
    heat = np.zeros((4, 4))
    heat[0, 0] = 1.0
    heat[0, 1] = 0.2

    filled, _ = hide_hot(image, heat, k=0.5, fill="mean")

    assert filled[:, 0, 0].tolist() == [214, 214, 214]  # (11 * 255 + 4 * 100) / 15 = 213.67
    assert torch.equal(filled[:, 1:], image[:, 1:])


def test_a_fill_that_needs_another_picture_is_refused_in_words():
    with pytest.raises(DataError, match="one class"):
        hide_hot(white(), rising(), k=0.5, fill="another")


@pytest.mark.parametrize(("threshold", "pixels"), [(15.5, 1), (12.5, 4), (8.5, 8), (1.5, 15)])
def test_the_fewest_hottest_pixels_that_change_the_answer_are_found(threshold, pixels):
    flip = smallest_flip(Sum(threshold), white(), rising())

    assert flip.share == pixels / 16
    hidden = (flip.image == 0).all(dim=0).flatten()
    assert hidden.tolist() == [False] * (16 - pixels) + [True] * pixels
    assert flip.probabilities.argmax() == 0


def test_the_only_pixel_that_has_heat_is_tried():
    heat = np.zeros((4, 4))
    heat[3, 3] = 1.0

    assert smallest_flip(Sum(15.5), white(), heat).share == 1 / 16
    assert smallest_flip(Sum(14.5), white(), heat) is None


def test_a_change_that_does_not_come_again_is_told_as_it_was_found(monkeypatch):
    predict, asked = one_picture.predict, []

    def once(model, split, **how):
        said = predict(model, split, **how)
        asked.append(said)
        # What a model answers near a tie can depend on the batch.
        return said if len(asked) < 3 else replace(said, probabilities=asked[0].probabilities)

    monkeypatch.setattr(one_picture, "predict", once)

    assert smallest_flip(Sum(64 * 64 - 1234.5), white(64), rising(64)).share == 1280 / 64**2


def test_in_a_larger_picture_the_search_narrows_down_to_the_very_pixel(monkeypatch):
    asked = []
    predict = one_picture.predict
    monkeypatch.setattr(
        one_picture,
        "predict",
        lambda model, split, **how: asked.append(len(split)) or predict(model, split, **how),
    )

    flip = smallest_flip(Sum(64 * 64 - 1234.5), white(64), rising(64))

    assert round(flip.share * 64 * 64) == 1235
    assert sum(asked) < 110  # of 4095 pixels that could be the last


def test_nothing_flips_an_answer_that_does_not_hang_on_what_is_hot():
    assert smallest_flip(Sum(0.5), white(), rising()) is None  # the one cold pixel is enough


def test_a_picture_without_heat_has_nothing_to_hide():
    assert smallest_flip(Sum(7), white(), np.zeros((4, 4))) is None


def test_a_vision_transformer_answers_and_looks_at_patches():
    torch.manual_seed(0)
    model = VisionTransformer(
        image_size=32,
        patch_size=8,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        mlp_dim=16,
        num_classes=3,
    )
    nn.init.normal_(model.heads.head.weight)
    image = torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8)

    said = answer_picture(model, image, layer=heat_layer(model, None, size=(32, 32)))
    flip = smallest_flip(model, image, said.heat)

    assert said.probabilities.sum() == pytest.approx(1)
    assert (said.heat.shape, said.heat.max()) == ((32, 32), pytest.approx(1))
    assert 0 < flip.share < 1
    assert answer_picture(model, flip.image, layer=None).answer != said.answer
