from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests import layouts


def test_pictures_are_upright_and_label_10_is_the_digit_0(tmp_path):
    bundle = load("svhn", root=layouts.svhn(tmp_path))

    test = bundle.tests["test"]
    expected = layouts.small_pictures(list(range(10)) * 5).transpose(0, 3, 1, 2)
    assert test.labels.tolist() == list(range(10)) * 5
    assert np.array_equal(test.images.pixels.numpy(), expected)
    assert [len(bundle.train), len(bundle.validation)] == [40, 10]


def test_labels_belong_to_their_pictures_after_the_split(tmp_path):
    train = load("svhn", root=layouts.svhn(tmp_path)).train

    # The generator paints red = 20 * digit + 10.
    assert torch.equal(train.images.pixels[:, 0, 5, 5].long(), 20 * train.labels + 10)


def test_a_missing_file_is_named(tmp_path):
    root = layouts.svhn(tmp_path)
    (root / "test_32x32.mat").unlink()

    with pytest.raises(DataError) as caught:
        load("svhn", root=root)

    assert str(root / "test_32x32.mat") in caught.value.problem
    assert str(root / "train_32x32.mat") not in caught.value.problem


@pytest.mark.parametrize("length", [0, 10, 200, 1000])
def test_a_truncated_file_is_explained(tmp_path, length):
    root = layouts.svhn(tmp_path)
    path = root / "train_32x32.mat"
    path.write_bytes(path.read_bytes()[:length])

    with pytest.raises(DataError, match="cannot be read as SVHN") as caught:
        load("svhn", root=root)

    assert str(path) in caught.value.problem


@pytest.mark.parametrize(
    "content", [b"<!DOCTYPE html><html>404</html>" * 20, b"MATLAB 5.0" + bytes(1000)]
)
def test_another_file_in_its_place_is_not_opened(tmp_path, monkeypatch, content):
    root = layouts.svhn(tmp_path)
    (root / "test_32x32.mat").write_bytes(content)
    opened = []
    real = scipy.io.loadmat
    monkeypatch.setattr(scipy.io, "loadmat", lambda path: opened.append(path) or real(path))

    with pytest.raises(DataError, match="it is not the official file"):
        load("svhn", root=root)

    assert [Path(path).name for path in opened] == ["train_32x32.mat"]
