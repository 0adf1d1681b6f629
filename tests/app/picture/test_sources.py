"""Rows of splits and files that somebody brought, in the frame the model sees."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from app import loaded
from app.picture import sources
from app.picture.easel import File
from masktune.data.frame import Frame
from masktune.data.images import TensorImages
from masktune.data.types import in_memory
from masktune.errors import DataError

SUBJECT = object()


@pytest.fixture(autouse=True)
def data(monkeypatch, home):
    """Let four pictures of 8 x 8 be the dataset, whatever is asked for."""
    shades = torch.arange(4, dtype=torch.uint8)[:, None, None, None].expand(4, 3, 8, 8) * 10
    labels, attributes = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    split = in_memory("validation", shades, labels, attributes)
    card = SimpleNamespace(
        size=(8, 8), classes=("cow", "camel"), attributes=("grass", "sand"), pool=None
    )
    data = SimpleNamespace(card=card, train=split, validation=split, tests={"far/off": split})
    monkeypatch.setattr(loaded, "bundle", lambda _: data)
    return data


def file_with(content, name="photo.jpg"):
    return File(name=name, content=content, becomes="picture")


def jpeg(picture, **options):
    file = io.BytesIO()
    picture.save(file, format="JPEG", quality=100, subsampling=0, **options)
    return file.getvalue()


def test_a_row_of_a_split_is_named_with_its_class_and_attribute():
    one = sources.source(SUBJECT, "far/off/3")

    assert one.name == "far/off, no. 3: camel, sand"
    assert one.label == "camel"
    assert (one.image == 30).all()


@pytest.mark.parametrize(
    "where", ["train/4", "train/-1", "nothing/0", "", "train", "file:../../etc/passwd", "train/x"]
)
def test_what_is_not_there_is_refused_with_what_there_is(where):
    with pytest.raises(DataError, match="no picture") as refused:
        sources.source(SUBJECT, where)

    assert "train/0 to train/3" in refused.value.remedy


def test_a_photograph_is_turned_upright_resized_and_cropped():
    wide = np.zeros((80, 160, 3), dtype=np.uint8)
    wide[:, :80] = 250  # its left half; turned by 90 degrees it is on top
    turned = Image.Exif()
    turned[0x0112] = 6

    where = sources.take(SUBJECT, file_with(jpeg(Image.fromarray(wide), exif=turned)))
    one = sources.source(SUBJECT, where)

    assert one.image.shape == (3, 8, 8)
    assert (one.image[:, :3] > 200).all()
    assert (one.image[:, 5:] < 50).all()
    assert (one.name, one.label) == ("photo.jpg", "")


def test_the_same_file_has_the_same_address_and_its_name_leads_nowhere_else():
    content = jpeg(Image.new("RGB", (9, 9)))

    first, again = (sources.take(SUBJECT, file_with(content, "../a b.jpg")) for _ in range(2))

    assert first == again
    assert sources.UPLOADED.fullmatch(first)[2] == "a_b.jpg"


@pytest.mark.parametrize(
    ("content", "reason"), [(b"<html></html>", "web page"), (b"\xff\xd8\xff\xe0", "damaged")]
)
def test_a_file_that_is_no_picture_is_refused_by_its_name_and_reason(content, reason):
    with pytest.raises(DataError, match=reason) as refused:
        sources.take(SUBJECT, file_with(content, "page.jpg"))

    assert refused.value.problem.startswith("“page.jpg” cannot be read as a picture")
    assert "what you painted stay" in refused.value.remedy


def test_an_upload_that_was_tidied_away_is_missed_in_words():
    with pytest.raises(DataError, match="does not exist"):
        sources.source(SUBJECT, f"file:{'0' * 16}/gone.png")


def test_files_take_the_frame_of_the_dataset(data):
    picture = np.zeros((48, 48), dtype=np.uint8)
    picture[16:32, 16:32] = 250  # all that is left of it in the frame below
    where = sources.take(SUBJECT, file_with(jpeg(Image.fromarray(picture))))
    assert (sources.source(SUBJECT, where).image < 50).any()

    data.train = SimpleNamespace(images=TensorImages(torch.zeros(0), Frame(cut=16, resize=(8, 8))))

    assert (sources.source(SUBJECT, where).image > 200).all()
