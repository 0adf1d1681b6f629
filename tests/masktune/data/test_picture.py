import contextlib
import io
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from masktune.data.picture import PictureError, glance, open_picture
from masktune.errors import DataError
from tests.hostile.pictures import encoded


def saved(tmp_path, picture, name="a.png", **options):
    picture.save(tmp_path / name, **options)
    return tmp_path / name


def first_pixel(path):
    picture = open_picture(path)
    assert picture.mode == "RGB"
    return picture.getpixel((0, 0))


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [
        ("L", 90, (90, 90, 90)),
        ("1", 1, (255, 255, 255)),
        ("RGB", (1, 2, 3), (1, 2, 3)),
        ("LA", (90, 0), (90, 90, 90)),  # transparent, and seen nevertheless
        ("RGBA", (1, 2, 3, 0), (1, 2, 3)),
    ],
)
def test_greys_and_transparent_pictures_become_rgb_without_blending(
    mode, value, expected, tmp_path
):
    assert first_pixel(saved(tmp_path, Image.new(mode, (2, 2), value))) == expected


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (255, 1), (32896, 128), (65535, 255)])
@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.ppm"])
def test_sixteen_bits_are_scaled_and_not_clipped(value, expected, name, tmp_path):
    # 255 * 257 = 65535: every 257 of 16 bits is one of 8.
    picture = Image.fromarray(np.full((2, 2), value, dtype=np.uint16))

    assert first_pixel(saved(tmp_path, picture, name)) == (expected,) * 3


def test_a_palette_with_transparency_gives_its_colours(tmp_path):
    picture = Image.new("P", (2, 2), 1)
    picture.putpalette([0, 0, 0, 10, 20, 30])

    assert first_pixel(saved(tmp_path, picture, transparency=b"\x80\x00")) == (10, 20, 30)
    assert first_pixel(saved(tmp_path, picture, "a.gif", transparency=1)) == (10, 20, 30)


def test_print_colours_become_light(tmp_path):
    # No ink at all is white; full black ink is black. JPEG may be off by one or two.
    for ink, light in (((0, 0, 0, 0), 255), ((0, 0, 0, 255), 0)):
        path = saved(tmp_path, Image.new("CMYK", (8, 8), ink), "a.jpg")
        assert first_pixel(path) == pytest.approx((light,) * 3, abs=2)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "JPEG2000"])
def test_a_wrong_ending_does_not_matter(kind, tmp_path):
    (tmp_path / "a.jpg").write_bytes(encoded(kind, side=16))

    assert open_picture(tmp_path / "a.jpg").size == (16, 16)
    assert glance(tmp_path / "a.jpg") == (16, 16)


def test_the_first_of_several_frames_is_taken(tmp_path):
    frames = [Image.new("RGB", (2, 2), colour) for colour in ("red", "blue")]
    for name in ("a.gif", "a.webp", "a.tif"):
        options = {"lossless": True} if name == "a.webp" else {}
        path = saved(tmp_path, frames[0], name, save_all=True, append_images=frames[1:], **options)
        assert first_pixel(path) == (255, 0, 0)


@pytest.mark.parametrize(
    ("orientation", "corner"),
    [(1, (0, 0)), (2, (3, 0)), (3, (3, 1)), (4, (0, 1)), (5, (0, 0)), (6, (1, 0)), (7, (1, 3)),
     (8, (0, 3))],
)  # fmt: skip
def test_a_turned_picture_is_put_upright_in_all_eight_ways(orientation, corner, tmp_path):
    # The file is 4 wide and 2 high, its first pixel white; where that pixel is seen is the
    # definition of each EXIF orientation.
    picture = Image.new("L", (4, 2))
    picture.putpixel((0, 0), 255)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path, picture, exif=exif)

    upright = open_picture(path)

    assert upright.getpixel(corner) == (255, 255, 255)
    assert upright.size == ((2, 4) if orientation >= 5 else (4, 2))
    assert glance(path) == upright.size[::-1]


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
@pytest.mark.parametrize("exif", [b"Exif\0\0garbage!", b"Exif\0\0II*\0\xff\xff\xff\xff"])
@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
def test_a_damaged_orientation_counts_as_none(exif, name, tmp_path):
    path = saved(tmp_path, Image.new("RGB", (16, 8), (200, 0, 0)), name, exif=exif)

    assert open_picture(path).size == (16, 8)
    assert glance(path) == (8, 16)


def test_a_glance_at_a_large_jpeg_tells_its_full_size(tmp_path):
    path = saved(tmp_path, Image.new("RGB", (640, 480)), "a.jpg")

    assert glance(path) == (480, 640)


def test_what_cannot_be_opened_is_told_with_its_name_and_a_remedy(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "folder.jpg").mkdir()
    for name, reason in (
        ("gone.jpg", "it does not exist"),
        ("folder.jpg", "it is not a file"),
        ("pipe.jpg", "it is not a file"),
        ("nul\0.jpg", "it does not exist"),
    ):
        with pytest.raises(DataError, match="cannot be read as a picture") as caught:
            open_picture(tmp_path / name)
        assert caught.value.problem.endswith(f"{name} cannot be read as a picture: {reason}.")
        assert caught.value.remedy == "Replace it or leave it out."


@pytest.fixture(scope="module")
def whole():
    return {kind: encoded(kind, side=24) for kind in ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP")}


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_no_damage_lets_anything_but_a_picture_or_a_plain_word_out(data, whole, tmp_path_factory):
    content = bytearray(whole[data.draw(st.sampled_from(sorted(whole)))])
    places = st.integers(0, min(len(content), 400) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=6)):
        content[place] = byte
    cut = data.draw(st.integers(1, len(content)))
    path = tmp_path_factory.getbasetemp() / "damaged.jpg"
    path.write_bytes(content[:cut])

    for look in (open_picture, glance):
        with contextlib.suppress(PictureError):
            assert look(path)


def test_a_picture_in_memory_is_whole_after_its_file_is_gone(tmp_path):
    path = tmp_path / "a.bmp"
    path.write_bytes(encoded("BMP", side=8))
    picture = open_picture(path)
    path.unlink()

    assert picture.tobytes() == Image.open(io.BytesIO(encoded("BMP", side=8))).tobytes()


def test_a_picture_that_vanished_is_told_as_one_across_processes(tmp_path):
    with pytest.raises(PictureError) as caught:
        open_picture(tmp_path / "gone.jpg")

    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301

    assert type(again) is PictureError
    assert (again.problem, again.remedy) == (caught.value.problem, caught.value.remedy)
    assert (again.reason, again.lasting) == ("it does not exist", False)
