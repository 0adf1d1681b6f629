"""Where clue and thing lie: the same pixel of the file, whatever the frame."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from masktune.data.frame import frame
from masktune.data.images import FileImages, TensorImages
from masktune.data.regions import BoxRegions, TensorRegions, boxed
from masktune.data.splits import joined, part, reframed, validated_by_test
from masktune.data.types import DatasetBundle, Split, in_memory
from masktune.datasets.catalogue import CATALOGUE
from masktune.errors import DataError

FRAMES = [
    "resize 6x8",
    "resize 12x5",
    "shorter 12, crop 10x6",
    "cut 4, resize 8",
    "cut 10, resize 20, crop 14",  # more than the file has: black round it
]


@pytest.fixture
def white_box(tmp_path):
    """Give a picture of 8 x 6 pixels whose box (2, 1, 5, 4) is white, and a file of it."""
    pixels = np.zeros((6, 8, 3), np.uint8)
    pixels[1:4, 2:5] = 255
    Image.fromarray(pixels).save(tmp_path / "box.png")
    return tmp_path / "box.png"


@pytest.mark.parametrize("text", FRAMES)
def test_a_box_and_a_mask_in_memory_are_one_region_in_every_frame(white_box, text):
    seen = frame(text)
    memory = torch.from_numpy(np.array(Image.open(white_box)))[None, ..., 0] > 0

    box = BoxRegions([white_box], [((2, 1, 5, 4),)], seen).batch([0])

    assert box.shape == (1, *seen.size)
    assert box.dtype == torch.bool
    assert box.any()
    assert box.equal(TensorRegions(memory, seen).batch([0]))


@pytest.mark.parametrize("text", FRAMES)
def test_a_region_lies_where_the_picture_shows_it(white_box, text):
    # Bilinear pixels are brighter than half where most of them is white; nearest ones agree but
    # for those on the edge.
    picture = FileImages([white_box], frame(text)).batch([0])[0, 0].float() / 255
    region = BoxRegions([white_box], [((2, 1, 5, 4),)], frame(text)).batch([0])[0]

    assert region[picture > 0.75].all()
    assert not region[picture < 0.25].any()


def test_doubled_pixels_are_doubled_regions():
    where = torch.tensor([[[True, False], [False, True]]])

    doubled = TensorRegions(where).in_frame(frame("resize 4")).batch([0])[0]

    assert doubled.int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]


def test_a_box_is_in_pixels_of_the_upright_file(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by a quarter
    Image.new("RGB", (8, 6)).save(tmp_path / "turned.jpg", exif=exif)

    region = BoxRegions([tmp_path / "turned.jpg"], [((0, 6, 6, 8),)], frame("resize 8x6"))

    assert region.batch([0])[0].sum(dim=1).tolist() == [0] * 6 + [6, 6]


def test_several_boxes_are_one_region_and_none_is_an_empty_one(white_box):
    boxes = [((0, 0, 2, 2), (1, 1, 3, 3)), ()]
    regions = BoxRegions([white_box, white_box], boxes, frame("resize 6x8"))

    assert regions.batch([1, 0]).sum(dim=(1, 2)).tolist() == [0, 7]
    assert replace(regions, outside=True).batch([1, 0]).sum(dim=(1, 2)).tolist() == [0, 48 - 7]


def test_a_pixel_is_in_a_box_if_its_centre_is_which_on_the_right_edge_it_is_not(white_box):
    boxes = [((0, 0, 2.5, 1),), ((2.5, 0, 8, 0.6),), ((0, 0.5, 1, 2.5),)]
    regions = BoxRegions([white_box] * 3, boxes, frame("resize 6x8"))

    assert regions.batch([0])[0, 0].int().tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert regions.batch([1])[0, 0].int().tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert regions.batch([2])[0, :, 0].int().tolist() == [1, 1, 0, 0, 0, 0]


def test_boxes_are_given_by_file_name_and_the_longer_name_counts(tmp_path):
    paths = [tmp_path / "a" / "1.png", tmp_path / "b" / "1.png", tmp_path / "b" / "2.png"]
    one, other = (0, 0, 1, 1), (0, 0, 2, 2)

    found = boxed(FileImages(paths, frame("resize 4")), {"1.png": [one], "b/1.png": [other, one]})

    assert list(found.boxes) == [(one,), (other, one), ()]


def split(count, start=0):
    """Give pictures whose first pixel's region says which one it is."""
    where = torch.zeros(count, 2, 8, dtype=torch.bool)
    for n in range(count):
        where[n, 0] = torch.tensor([(start + n) >> bit & 1 for bit in range(8)]).bool()
    pixels = torch.zeros(count, 3, 2, 8, dtype=torch.uint8)
    pictures = in_memory("train", pixels, torch.arange(count) % 2)
    thing = TensorRegions(where)
    return replace(pictures, thing=thing, clue=replace(thing, outside=True))


def numbers(regions):
    where = regions.batch(range(len(regions)))[:, 0]
    return (where.int() * 2 ** torch.arange(8)).sum(dim=1).tolist()


def test_regions_go_with_their_pictures():
    some = part(split(10), torch.tensor([7, 2]))
    more = joined(some, split(2, start=20))

    assert numbers(some.thing) == [7, 2]
    assert numbers(some.clue) == [248, 253]
    assert numbers(more.thing) == [7, 2, 20, 21]
    assert numbers(more.clue) == [248, 253, 235, 234]
    assert joined(more, replace(more, thing=None, clue=None)).thing is None


def test_regions_are_seen_in_the_frame_of_their_pictures_and_validate_with_them():
    card = replace(CATALOGUE["biased-mnist-5k"], classes=("a", "b"))
    bundle = DatasetBundle(
        card=card, train=split(4), validation=split(2, start=4), tests={"t": split(6, start=6)}
    )

    framed = reframed(bundle, frame("resize 4x16"))
    held = validated_by_test(bundle, seed=0)

    assert framed.tests["t"].thing.batch([0]).shape == (1, 4, 16)
    assert framed.train.clue.batch([0]).shape == (1, 4, 16)
    assert numbers(held.train.thing) == [0, 1, 2, 3, 4, 5]
    both = numbers(held.validation.thing) + numbers(held.tests["t"].thing)
    assert sorted(both) == [6, 7, 8, 9, 10, 11]


def test_a_split_has_a_region_for_each_picture_or_for_none():
    pictures = torch.zeros(3, 3, 2, 2, dtype=torch.uint8)
    labels = torch.zeros(3, dtype=torch.int64)

    with pytest.raises(DataError, match="3 pictures and 2 regions of the thing"):
        Split(
            name="train",
            images=TensorImages(pictures),
            labels=labels,
            attributes=labels,
            thing=TensorRegions(torch.zeros(2, 2, 2, dtype=torch.bool)),
        )
