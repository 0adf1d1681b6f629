from typing import get_args

import pytest
import torch

from masktune.data.fills import FILLS, FillName, filled, other_classes
from masktune.data.preprocess import Preprocess, hide
from masktune.data.types import in_memory
from masktune.errors import DataError

COUNT, SIDE = 6, 10
LABELS = torch.tensor([0, 0, 0, 1, 1, 2])
NAMES = get_args(FillName)
DRAWN = ("noise", "another")


@pytest.fixture
def split():
    generator = torch.Generator().manual_seed(0)
    shape = (COUNT, 3, SIDE, SIDE)
    pixels = torch.randint(1, 256, shape, generator=generator, dtype=torch.uint8)
    return in_memory("train", pixels, LABELS)


@pytest.fixture
def corner():
    """Hide the top left quarter of every picture but the last, of which nothing."""
    keep = torch.ones(COUNT, SIDE, SIDE, dtype=torch.bool)
    keep[:5, :5, :5] = False
    return keep


def keeper(keep, name, split, *, seed=0, stage="1"):
    return filled(lambda index: keep[index], name, split=split, seed=seed, stage=stage)


def seen(keep, name, split, positions=range(COUNT), **how):
    return Preprocess().of(split.__getitems__(list(positions)), keeper(keep, name, split, **how))


def test_every_fill_of_the_settings_is_there_once_and_says_what_it_does():
    assert tuple(FILLS) == NAMES
    assert all(name == fill.name and fill.title and fill.hint for name, fill in FILLS.items())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_stays_and_what_is_hidden_is_filled(name, split, corner):
    pixels = split.images.batch(range(COUNT)).float() / 255

    painted = seen(corner, name, split)

    kept = corner[:, None].expand_as(pixels)
    assert torch.equal(painted[kept], pixels[kept])
    assert (painted[~kept] != pixels[~kept]).float().mean() > 0.9
    assert 0 <= painted.min() <= painted.max() <= 1


@pytest.mark.parametrize("name", NAMES)
def test_no_fill_shows_anything_of_what_is_hidden(name, split, corner):
    changed = split.images.pixels.clone()
    changed[0, :, :5, :5] = 255 - changed[0, :, :5, :5]
    other = in_memory("train", changed, LABELS)

    assert torch.equal(seen(corner, name, split, [0]), seen(corner, name, other, [0]))


@pytest.mark.parametrize("name", NAMES)
def test_a_soft_keep_blends_the_picture_with_its_fill(name, split, corner):
    half = torch.where(corner, 1.0, 0.5)
    pixels = split.images.batch([0]).float() / 255

    hard, soft = (keeper(keep, name, split) for keep in (corner, half))
    painted = Preprocess().of(split.__getitems__([0]), soft)

    assert torch.equal(painted[0][:, corner[0]], pixels[0][:, corner[0]])
    place = painted[0][:, ~corner[0]]
    if name == "black":
        assert torch.equal(place, 0.5 * pixels[0][:, ~corner[0]])
    elif name == "noise":  # which keep does not change
        noise = Preprocess().of(split.__getitems__([0]), hard)[0][:, ~corner[0]]
        assert torch.allclose(place, 0.5 * pixels[0][:, ~corner[0]] + 0.5 * noise)
    else:
        # Twice the blend less the picture is the fill: a colour that there may be.
        fill = 2 * place - pixels[0][:, ~corner[0]]
        assert -1e-5 <= fill.min() <= fill.max() <= 1 + 1e-5


def test_black_is_bit_equal_to_hide(split, corner):
    pixels = split.images.batch(range(COUNT)).float() / 255

    assert torch.equal(seen(corner, "black", split), hide(pixels, corner))
    everywhere = FILLS["black"].paint(pixels, corner, split.__getitems__(range(COUNT)), None)
    assert torch.equal(everywhere, hide(pixels, corner))


def test_mean_is_the_mean_of_what_is_kept_and_black_where_nothing_is(split, corner):
    corner[1] = False
    pixels = split.images.batch(range(COUNT)).float() / 255

    painted = seen(corner, "mean", split)

    expected = pixels[0][:, corner[0]].mean(dim=1)
    assert torch.allclose(painted[0, :, 2, 3], expected)
    assert painted[1].max() == 0


def test_blur_takes_its_colour_from_what_is_near(corner):
    pixels = torch.zeros(COUNT, 3, SIDE, SIDE, dtype=torch.uint8)
    pixels[:, 0, :, 5:] = 255  # red on the right, blue below
    pixels[:, 2, 5:, :5] = 255
    split = in_memory("train", pixels, LABELS)

    painted = seen(corner, "blur", split)[0]

    assert painted[0, 0, 4] > 0.95  # beside the red
    assert painted[2, 4, 0] > 0.95  # above the blue
    assert painted[0, 0, 0] < painted[0, 0, 2] < painted[0, 0, 4]


def test_another_shows_what_is_hidden_in_a_picture_of_another_class(split, corner):
    keep = keeper(corner, "another", split)
    pixels = split.images.batch(range(COUNT)).float() / 255
    shifted = corner.clone()
    shifted[3:5] = True
    shifted[3:5, :, :3] = False  # of the others the three left columns are hidden
    other = keeper(shifted, "another", in_memory("train", split.images.pixels[:5], LABELS[:5]))
    partner = int(other.chance.partners[0])

    assert (LABELS[keep.chance.partners] != LABELS).all()
    seen_first = Preprocess().of(split.__getitems__([0]), other)[0]
    assert partner in (3, 4)
    assert torch.equal(seen_first[:, :5, :3], pixels[partner][:, :5, :3])
    mean = pixels[partner][:, :, :3].mean(dim=(1, 2))
    assert torch.allclose(seen_first[:, 1, 4], mean)  # where the other picture is kept


def test_a_picture_in_which_nothing_is_hidden_lends_all_of_itself(corner):
    pixels = torch.arange(2 * 3 * SIDE * SIDE).remainder(256).to(torch.uint8)
    split = in_memory("train", pixels.view(2, 3, SIDE, SIDE), torch.tensor([0, 1]))
    keep = corner[[0, 5]]

    painted = seen(keep, "another", split, [0])[0]

    assert torch.equal(painted[:, :5, :5], split.images.batch([1])[0, :, :5, :5].float() / 255)


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_filled_the_same_in_whatever_batch_it_comes(name, split, corner):
    together = seen(corner, name, split, [4, 0, 2])

    for place, position in enumerate([4, 0, 2]):
        assert torch.allclose(together[place], seen(corner, name, split, [position])[0], atol=1e-6)


@pytest.mark.parametrize("name", DRAWN)
def test_seed_and_round_decide_what_is_drawn(name, split, corner):
    first = seen(corner, name, split, seed=3)

    assert torch.equal(first, seen(corner, name, split, seed=3))
    assert not torch.equal(first, seen(corner, name, split, seed=4))
    assert not torch.equal(first, seen(corner, name, split, seed=3, stage="2"))


def test_what_is_hidden_is_filled_before_the_picture_is_augmented(split, corner):
    keep = keeper(corner, "noise", split)
    batch = split.__getitems__([0])

    flipped = Preprocess().of(batch, keep, change=lambda pixels: pixels.flip(3))

    assert torch.equal(flipped, Preprocess().of(batch, keep).flip(3))


def test_partners_are_of_every_other_class_and_need_one():
    labels = torch.arange(300) % 3

    partners = other_classes(labels, seed=0, stage="1")

    assert (labels[partners] != labels).all()
    assert labels[partners[labels == 0]].unique().tolist() == [1, 2]
    with pytest.raises(DataError, match="of one class"):
        other_classes(torch.zeros(4, dtype=torch.int64), seed=0, stage="1")
