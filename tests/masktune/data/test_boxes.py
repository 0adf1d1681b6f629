"""Boxes that somebody drew: which pictures they are of, and what is refused."""

import numpy as np
import pytest
import torch
from PIL import Image

from masktune.data.boxes import read_boxes
from masktune.data.frame import frame
from masktune.data.images import FileImages, TensorImages
from masktune.errors import DataError


@pytest.fixture
def images(tmp_path):
    """Four pictures of 8 x 6 pixels, two of one name in two folders, seen as 4 x 3."""
    paths = [tmp_path / name for name in ("cat/1.png", "cat/2.png", "dog/1.png", "dog/3.png")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.zeros((6, 8, 3), np.uint8)).save(path)
    return FileImages(paths, frame("resize 3x4"))


def read(tmp_path, images, text):
    (tmp_path / "boxes.csv").write_text(text, encoding="utf-8")
    return read_boxes(tmp_path / "boxes.csv", images)


def test_boxes_are_seen_in_the_models_frame_and_several_add_up(tmp_path, images):
    rows = "2.png,0,0,4,2\n2.png,6,4,8,6\ncat/1.png,2,0,4,6\n"
    regions = read(tmp_path, images, f"file,left,top,right,bottom\n{rows}")

    found = regions.batch([0, 1, 2, 3]).int().tolist()

    assert found[0] == [[0, 1, 0, 0]] * 3
    assert found[1] == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert not torch.tensor(found[2:]).any()  # not named


def test_columns_are_found_in_any_order_and_with_other_separators(tmp_path, images):
    regions = read(tmp_path, images, "Top;LEFT;right;bottom;File_Name\n0;0;8;6;3.png\n")

    assert regions.batch([3]).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("file,left,top,right\n2.png,0,0,4\n", "no column 'bottom'"),
        ("picture,left,top,right,bottom\n2.png,0,0,4,4\n", "no column 'file'"),
        ("file,left,top,right,bottom\n2.png,0,0,x,4\n", "Line 2 .*column 'right': it is 'x'"),
        ("file,left,top,right,bottom\n2.png,0,0,nan,4\n", "it is 'nan'"),
        ("file,left,top,right,bottom\n2.png,4,0,4,4\n", "Line 2 .*holds no pixel"),
        ("file,left,top,right,bottom\n8.png,0,0,4,4\n9.png,0,0,4,4\n2.png,0,0,4,4\n",
         r"names 2 of 3 files that are no training pictures: 8.png, 9.png\..*such as cat/1.png"),
        ("file,left,top,right,bottom\n1.png,0,0,4,4\n", "more than one training picture: 1.png"),
        ("file,left,top,right,bottom\n../2.png,0,0,4,4\n", "leads out"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_list_of_boxes_is_said(tmp_path, images, text, problem):
    with pytest.raises(DataError, match=problem):
        read(tmp_path, images, text)


def test_pictures_that_are_in_no_files_have_no_names(tmp_path):
    memory = TensorImages(torch.zeros(2, 3, 4, 4, dtype=torch.uint8))

    with pytest.raises(DataError, match="made in memory"):
        read(tmp_path, memory, "file,left,top,right,bottom\n2.png,0,0,4,4\n")
