import numpy as np
import pytest
import torch
from PIL import Image

from masktune.compute import accelerator
from masktune.data.batches import batches
from masktune.data.frame import Frame, frame_of_files
from masktune.data.frame import frame as named
from masktune.data.images import FileImages, fit, read_framed
from masktune.data.preprocess import Preprocess
from masktune.data.splits import reframed
from masktune.data.types import DatasetBundle, Split
from masktune.errors import ConfigError, DataError
from tests.masktune.conftest import card


def test_bytes_become_fractions_then_are_hidden_then_normalised():
    # White 255 -> 1.0; the left pixel is hidden -> 0.0; then (x - 0.5) / 0.25.
    white = torch.full((1, 3, 1, 2), 255, dtype=torch.uint8)
    keep = torch.tensor([[[False, True]]])

    out = Preprocess(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))(white, keep)

    assert out[0, 0, 0].tolist() == [-2.0, 2.0]


def test_without_normalisation_pixels_are_fractions():
    out = Preprocess()(torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1))

    assert out.flatten().tolist() == pytest.approx([0.0, 0.2, 1.0])


def test_a_frame_crops_the_centre_of_the_stretched_picture(tmp_path):
    # Columns 0..3 are 0, 80, 160, 240; the centre crop of width 2 keeps 80 and 160.
    row = np.array([0, 80, 160, 240], dtype=np.uint8)
    Image.fromarray(np.tile(row, (4, 1))).save(tmp_path / "a.png")

    pixels = read_framed(tmp_path / "a.png", Frame(resize=(4, 4), crop=(2, 2)))

    assert pixels.shape == (3, 2, 2)
    assert pixels[0].tolist() == [[80, 160], [80, 160]]


def test_a_file_is_brought_to_the_pictures_of_a_dataset_in_their_frame_and_never_stretched():
    own = Frame(cut=100, resize=(8, 8))

    assert frame_of_files(own, (8, 8)) == own
    assert frame_of_files(None, (28, 28)) == Frame(resize=28, crop=(28, 28))
    assert frame_of_files(None, (6, 8)) == Frame(resize=(6, 8))  # nothing else has this shape


def test_a_photograph_lying_on_its_side_is_turned_upright(tmp_path):
    picture = Image.new("RGB", (4, 2), (255, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate a quarter turn to show it upright
    picture.putpixel((0, 0), (0, 0, 255))
    picture.save(tmp_path / "a.png", exif=exif)

    pixels = read_framed(tmp_path / "a.png", Frame(resize=(4, 2)))

    assert pixels[:, 0, 1].tolist() == [0, 0, 255]  # the first pixel is now top right


def test_a_file_that_is_no_picture_is_named(tmp_path):
    (tmp_path / "a.jpg").write_text("<html>")

    with pytest.raises(DataError, match=r"a\.jpg cannot be read as a picture"):
        read_framed(tmp_path / "a.jpg", Frame(resize=(4, 4)))


def test_files_are_read_in_the_order_asked_for(tmp_path):
    paths = []
    for shade in (10, 20, 30):
        paths.append(tmp_path / f"{shade}.png")
        Image.new("L", (5, 5), shade).save(paths[-1])
    part = Split(
        name="files",
        images=FileImages(paths, Frame(resize=(4, 4))),
        labels=torch.tensor([0, 1, 0]),
        attributes=torch.tensor([-1, -1, -1]),
    )

    loader = batches(part, order=[2, 0, 1], batch_size=2, compute=accelerator("cpu"))
    seen = [batch.images[:, 0, 0, 0].tolist() for batch in loader]

    assert seen == [[30, 10], [20]]


def stripes(path, height, width):
    """A picture whose column number is its brightness."""
    row = np.arange(width, dtype=np.uint8)
    Image.fromarray(np.tile(row, (height, 1))).save(path)


def test_the_shorter_side_decides_and_the_longer_one_keeps_its_proportion(tmp_path):
    # 4 high, 8 wide; the shorter side stays 4, so the crop of 4 takes columns 2 to 5.
    stripes(tmp_path / "a.png", 4, 8)

    pixels = read_framed(tmp_path / "a.png", Frame(resize=4, crop=(4, 4)))

    assert pixels[0, 0].tolist() == [2, 3, 4, 5]


def test_a_cut_comes_before_stretching(tmp_path):
    # Of 8 columns the middle 4 are 2 to 5; stretched to themselves they stay.
    stripes(tmp_path / "a.png", 8, 8)

    pixels = read_framed(tmp_path / "a.png", Frame(cut=4, resize=(4, 4)))

    assert pixels[0, 0].tolist() == [2, 3, 4, 5]


def test_a_cut_beyond_the_picture_is_black_outside(tmp_path):
    Image.new("L", (2, 2), 200).save(tmp_path / "a.png")

    pixels = read_framed(tmp_path / "a.png", Frame(cut=4, resize=(4, 4)))

    assert pixels[0].tolist() == [[0, 0, 0, 0], [0, 200, 200, 0], [0, 200, 200, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    "steps",
    [
        {"resize": (6, 6)},
        {"resize": 8, "crop": (4, 4)},
        {"cut": 4, "resize": (4, 4)},
        {"cut": 14, "resize": (14, 14)},
        {"resize": (20, 30), "crop": (10, 10)},
    ],
)
def test_pictures_in_memory_and_in_files_come_to_the_same_frame(steps, tmp_path):
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (3, 10, 12), generator=generator, dtype=torch.uint8)
    Image.fromarray(image.permute(1, 2, 0).numpy()).save(tmp_path / "a.png")
    frame = Frame(**steps)

    read, fitted = read_framed(tmp_path / "a.png", frame), fit(image[None], frame)[0]

    assert read.shape == fitted.shape == (3, *frame.size)
    assert (read.int() - fitted.int()).abs().max() <= 1  # two libraries round differently


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("resize 224", Frame(resize=(224, 224))),
        ("Resize 200x300", Frame(resize=(200, 300))),
        ("shorter 256,crop 224", Frame(resize=256, crop=(224, 224))),
        ("cut 178, resize 224x224", Frame(cut=178, resize=(224, 224))),
        ("resize 256 x 256, crop 224 × 224", Frame(resize=(256, 256), crop=(224, 224))),
    ],
)
def test_a_frame_is_read_from_words_and_written_back(text, meant):
    assert named(text) == meant
    assert named(str(meant)) == meant


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "cannot be read"),
        ("224", "cannot be read"),
        ("crop 224", "cannot be read"),
        ("crop 224, resize 256", "cannot be read"),
        ("resize 224, resize 256", "cannot be read"),
        ("shorter 256, resize 224", "cannot be read"),
        ("resize -4", "cannot be read"),
        ("resize 0", "not from 1 to 4096"),
        ("resize 99999", "not from 1 to 4096"),
        ("shorter 256", "different shapes"),
        ("resize 100, crop 224", "crops more than there is"),
        ("shorter 200, crop 224", "crops more than there is"),
    ],
)
def test_a_frame_that_cannot_be_is_refused_in_words(text, problem):
    with pytest.raises(ConfigError, match=problem):
        named(text)


def test_another_frame_reaches_every_split_and_the_card(toy):
    seen = reframed(toy, Frame(resize=(14, 14)))

    assert seen.card.size == (14, 14)
    for part in (seen.train, seen.validation, *seen.tests.values()):
        assert part.images.batch([0, 1]).shape == (2, 3, 14, 14)
    assert len(seen.train) == len(toy.train)


def test_another_frame_reads_the_files_anew_and_not_the_earlier_frame(tmp_path):
    stripes(tmp_path / "a.png", 8, 8)
    images = FileImages([tmp_path / "a.png"], Frame(cut=2, resize=(2, 2)))
    part = Split(
        name="train", images=images, labels=torch.tensor([0]), attributes=torch.tensor([-1])
    )
    bundle = DatasetBundle(
        card=card(classes=("a",)), train=part, validation=part, tests={"t": part}
    )

    seen = reframed(bundle, Frame(resize=(8, 8)))

    assert seen.train.images.batch([0])[0, 0, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
