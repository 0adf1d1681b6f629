import numpy as np
import pytest
import torch
from scipy.io import savemat

from masktune.datasets import svhn
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


RIGHT = {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.array([[1], [2], [3], [10]])}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"y": RIGHT["y"]}, "it has no X"),
        ({"X": RIGHT["X"]}, "it has no y"),
        ({**RIGHT, "X": np.zeros((28, 28, 3, 4), np.uint8)}, r"X is \(28, 28, 3, 4\)"),
        ({**RIGHT, "X": np.zeros((32, 32, 3, 4))}, "double"),
        ({**RIGHT, "y": np.array([[1], [2]])}, r"y is \(2, 1\)"),
        ({**RIGHT, "y": np.array([[1], [2], [3], [11]])}, "labels from 1 to 11"),
    ],
)
def test_a_wrong_file_is_explained_with_its_path(tmp_path, content, words):
    root = layouts.svhn(tmp_path)
    savemat(root / "train_32x32.mat", content)

    with pytest.raises(DataError, match=words) as caught:
        load("svhn", root=root)

    assert str(root / "train_32x32.mat") in caught.value.problem


def test_more_pictures_than_anyone_has_are_refused_unread(tmp_path, monkeypatch):
    root = layouts.svhn(tmp_path)
    monkeypatch.setattr(svhn, "MOST_PICTURES", 49)

    with pytest.raises(DataError, match=r"X is \(32, 32, 3, 50\)"):
        load("svhn", root=root)


@pytest.mark.parametrize("length", [0, 10, 200, 1000])
def test_a_truncated_file_is_explained(tmp_path, length):
    root = layouts.svhn(tmp_path)
    path = root / "train_32x32.mat"
    path.write_bytes(path.read_bytes()[:length])

    with pytest.raises(DataError, match="cannot be read as SVHN"):
        load("svhn", root=root)


def test_a_web_page_in_its_place_is_explained(tmp_path):
    root = layouts.svhn(tmp_path)
    (root / "train_32x32.mat").write_bytes(b"<!DOCTYPE html><html>404</html>" * 20)

    with pytest.raises(DataError, match="cannot be read as SVHN"):
        load("svhn", root=root)
