"""Augmentations: what moves, what changes its colour, and that chance is the picture's own."""

import pytest
import torch

from masktune.data import augment as augment_module
from masktune.data.augment import COLOURS, MOVES, augmentation, named
from masktune.errors import ConfigError
from masktune.seeds import stream

EVERY = (*MOVES, *COLOURS)


def pictures(count=6, size=(8, 8)):
    return torch.rand(count, 3, *size, generator=stream(0, "pictures"))


def changed(names, images, seed=0):
    return augmentation(names)(images, stream(seed, "augment"))


def test_none_changes_nothing():
    assert augmentation("none") is None
    assert named("none") == ()


@pytest.mark.parametrize("name", EVERY)
def test_a_seed_gives_the_same_pictures_and_another_one_others(name):
    images = pictures()

    assert torch.equal(changed(name, images), changed(name, images))
    assert not torch.equal(changed(name, images), changed(name, images, seed=1))


@pytest.mark.parametrize("name", EVERY)
def test_every_picture_of_a_batch_is_changed_in_its_own_way(name):
    same = pictures(1).repeat(8, 1, 1, 1)

    out = changed(name, same)

    assert out.shape == same.shape
    assert len(torch.unique(out.flatten(1), dim=0)) > 1


@pytest.mark.parametrize("name", EVERY)
def test_pixels_stay_between_black_and_white(name):
    out = changed(name, pictures(32))

    assert out.min() >= 0
    assert out.max() <= 1


def test_a_flip_turns_about_half_of_the_pictures_round_and_leaves_the_others():
    images = pictures(200)

    out = changed("flip", images)

    same = torch.isclose(out, images, atol=1e-5).flatten(1).all(dim=1)
    turned = torch.isclose(out, images.flip(3), atol=1e-5).flatten(1).all(dim=1)
    assert bool((same ^ turned).all())
    assert 70 < int(turned.sum()) < 130


def test_a_crop_moves_by_whole_pixels_and_black_comes_in():
    # One white pixel in 16 x 24: it is found at most 4 pixels away, still whole.
    images = torch.zeros(64, 3, 16, 24)
    images[:, :, 8, 8] = 1

    out = changed("crop4", images)

    places = (out[:, 0] > 0.99).nonzero()
    assert len(places) == 64
    assert (places[:, 1:] - 8).abs().max() == 4
    assert torch.allclose(out.sum(dim=(1, 2, 3)), torch.tensor(3.0), atol=1e-3)


def test_a_shift_moves_by_at_most_a_tenth_of_each_side():
    # Of a white picture of 20 x 40, at most 2 rows and 4 columns become black.
    out = changed("shift10", torch.ones(64, 3, 20, 40))

    black = (out[:, 0] < 0.01).float()
    assert black.amin(dim=2).sum(dim=1).max() <= 2
    assert black.amin(dim=1).sum(dim=1).max() <= 4
    assert black.sum() > 0


@pytest.mark.parametrize("size", [(33, 33), (33, 65)], ids=["square", "wide"])
def test_a_rotation_keeps_distances_from_the_middle(size):
    # A white pixel 12 right of the middle stays 12 away and turns by at most 15 degrees: 3.1 rows.
    middle = (size[0] // 2, size[1] // 2)
    images = torch.zeros(64, 3, *size)
    images[:, :, middle[0], middle[1] + 12] = 1

    out = changed("rotate15", images)[:, 0]

    weight = out.sum(dim=(1, 2))
    y = (out.sum(dim=2) * torch.arange(size[0])).sum(dim=1) / weight - middle[0]
    x = (out.sum(dim=1) * torch.arange(size[1])).sum(dim=1) / weight - middle[1]
    assert torch.allclose((x.square() + y.square()).sqrt(), torch.tensor(12.0), atol=0.5)
    assert 2.5 < y.abs().max() < 3.6


def test_a_resized_crop_shows_at_least_seven_tenths_of_the_area_and_nothing_from_outside():
    # On a ramp from 0 to 1 in both directions, the shares seen are what the ramps span.
    ramp = (torch.arange(64) + 0.5) / 64
    images = torch.stack([ramp.expand(64, 64), ramp[:, None].expand(64, 64), torch.ones(64, 64)])

    out = changed("resized-crop", images.repeat(128, 1, 1, 1))

    wide = (out[:, 0].amax(dim=(1, 2)) - out[:, 0].amin(dim=(1, 2))) * 64 / 63
    tall = (out[:, 1].amax(dim=(1, 2)) - out[:, 1].amin(dim=(1, 2))) * 64 / 63
    assert (wide * tall).min() > 0.6  # one that does not fit is cut off: 0.7 by 4 : 3 is 0.966 wide
    assert (wide * tall).max() <= 1.0 + 1e-4
    middle = (out[:, 0].amax(dim=(1, 2)) + out[:, 0].amin(dim=(1, 2))) / 2
    assert middle.min() < 0.46  # the left part of some, the right part of others
    assert middle.max() > 0.54
    inside = out[:, 2, 1:-1, 1:-1]
    assert inside.min() > 0.99


def test_the_shape_of_a_resized_crop_is_counted_in_pixels():
    # Of a picture twice as wide as high, a part between 3 : 4 and 4 : 3 never shows all its width.
    ramp = (torch.arange(128) + 0.5) / 128
    images = ramp.expand(64, 3, 64, 128)

    out = changed("resized-crop", images)

    wide = out.amax(dim=(1, 2, 3)) - out.amin(dim=(1, 2, 3))
    assert wide.max() < 0.85  # the whole height, and 4 : 3 of it: two thirds
    assert wide.min() > 0.5


def test_colours_move_no_pixel_and_jitter_leaves_black_grey():
    images = torch.zeros(4, 3, 6, 6)
    images[:, :, 2:4, 2:4] = 0.5

    for name in COLOURS:
        out = changed(name, images)
        for region in (out[:, :, 2:4, 2:4], out[:, :, :2]):
            assert torch.allclose(region, region[:, :, :1, :1].expand_as(region), atol=1e-6)


def test_brightness_contrast_and_saturation_change_by_at_most_a_tenth_each():
    out = changed("jitter", torch.full((256, 3, 4, 4), 0.5))

    # A grey picture knows neither contrast nor saturation: only its brightness changes.
    assert 0.45 <= out.min() < 0.46
    assert 0.54 < out.max() <= 0.55


def test_contrast_pulls_towards_the_pictures_own_middle_and_saturation_towards_grey():
    # Brightness changes neither black nor what is missing of a pure red.
    halves = torch.zeros(2, 3, 4, 4)
    halves[0, :, :, 2:] = 1
    halves[1] = torch.tensor([0.5, 0.0, 0.0])[:, None, None]

    drawn = torch.stack([changed("jitter", halves, seed) for seed in range(64)])

    black, white, red = drawn[:, 0, :, 0, 0], drawn[:, 0, 0, 0, 3], drawn[:, 1, :, 0, 0]
    assert 0.04 < black.max() <= 0.05  # a tenth of the way to 0.5, the middle of its own picture
    assert black.min() == 0
    others = red[:, 1:] / red[:, :1]
    # Each goes a tenth of the way to 0.299, the brightness of red: either alone gives 0.033.
    assert 0.04 < others.max() < 0.067
    # White is no whiter in between: it stays white where both factors are above 1, a quarter.
    assert 0.15 < (white == 1).float().mean() < 0.35


def test_lighting_adds_a_colour_along_the_principal_directions():
    added = changed("lighting", torch.full((4096, 3, 1, 1), 0.5))[:, :, 0, 0] - 0.5

    # The first direction, 0.1 * 0.2175 long, has nearly all: each channel by 0.57 of that, alike.
    assert torch.allclose(added.std(dim=0), torch.tensor([0.0124, 0.0126, 0.0128]), atol=6e-4)
    assert torch.corrcoef(added.T).min() > 0.96


def test_moves_are_sampled_once_and_in_the_order_of_their_names(monkeypatch):
    images = pictures(16)
    one_by_one = images
    chance = stream(0, "augment")
    for name in ("flip", "crop4"):
        one_by_one = augment_module._moved(one_by_one, [MOVES[name]], chance)

    assert torch.allclose(changed("flip,crop4", images), one_by_one.clamp(0, 1), atol=1e-4)


def test_a_name_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(ConfigError, match=r"There is no augmentation 'turn'.*resized-crop"):
        augmentation("flip,turn")
