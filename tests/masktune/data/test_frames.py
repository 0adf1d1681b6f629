import numpy as np
import pytest
import torch
from PIL import Image

from masktune.compute import accelerator, batches
from masktune.data.base import Split
from masktune.data.frames import FileImages, Frame, Preprocess
from masktune.errors import DataError


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

    pixels = Frame(resize=(4, 4), crop=(2, 2)).read(tmp_path / "a.png")

    assert pixels.shape == (3, 2, 2)
    assert pixels[0].tolist() == [[80, 160], [80, 160]]


def test_a_photograph_lying_on_its_side_is_turned_upright(tmp_path):
    picture = Image.new("RGB", (4, 2), (255, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate a quarter turn to show it upright
    picture.putpixel((0, 0), (0, 0, 255))
    picture.save(tmp_path / "a.png", exif=exif)

    pixels = Frame(resize=(4, 2)).read(tmp_path / "a.png")

    assert pixels[:, 0, 1].tolist() == [0, 0, 255]  # the first pixel is now top right


def test_a_file_that_is_no_picture_is_named(tmp_path):
    (tmp_path / "a.jpg").write_text("<html>")

    with pytest.raises(DataError, match=r"a\.jpg cannot be read as a picture"):
        Frame(resize=(4, 4)).read(tmp_path / "a.jpg")


def test_files_stream_through_workers_in_the_order_asked_for(tmp_path):
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

    assert loader.num_workers == 2
    assert seen == [[30, 10], [20]]
