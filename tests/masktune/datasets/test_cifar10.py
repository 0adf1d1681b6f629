import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from masktune.data.card import UNKNOWN
from masktune.datasets import cifar10
from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests import layouts

REAL = Path("../shared/data/cifar10-subset.npz")
FORMS = ["python", "binary", "npz"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_pictures(tmp_path, form):
    # 5 batches of 20: 100 training pictures, a fifth of which validates.
    bundle = load("cifar10", root=layouts.cifar10(tmp_path, form=form))

    assert [len(bundle.train), len(bundle.validation)] == [80, 20]
    test = bundle.tests["test"]
    expected = layouts.small_pictures(list(range(10)) * 2).transpose(0, 3, 1, 2)
    assert test.labels.tolist() == list(range(10)) * 2
    assert np.array_equal(test.images.pixels.numpy(), expected)
    assert set(bundle.train.attributes.tolist()) == {UNKNOWN}


@pytest.mark.parametrize("form", FORMS)
def test_labels_belong_to_their_pictures_after_the_split(tmp_path, form):
    train = load("cifar10", root=layouts.cifar10(tmp_path, form=form)).train

    # The generator paints red = 20 * label + 10.
    assert torch.equal(train.images.pixels[:, 0, 5, 5].long(), 20 * train.labels + 10)


def test_the_folder_of_the_batches_itself_may_be_the_root(tmp_path):
    root = layouts.cifar10(tmp_path) / "cifar-10-batches-py"

    assert len(load("cifar10", root=root).train) == 80


def test_a_file_may_be_the_root(tmp_path):
    root = layouts.cifar10(tmp_path, form="npz") / "cifar10.npz"

    bundle = load("cifar10", root=root)

    assert "one file, cifar10.npz, 100 training and 20 test pictures" in bundle.findings[0]


def test_a_zip_of_something_else_is_told_by_what_it_lacks(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as file:
        file.writestr("a.txt", "a")

    with pytest.raises(DataError, match=r"as CIFAR-10: it has no x_train\.npy\. Save"):
        load("cifar10", root=tmp_path / "other.zip")


def test_the_seed_decides_which_pictures_validate(tmp_path):
    root = layouts.cifar10(tmp_path)

    first, again, other = (
        load("cifar10", root=root, seed=seed).validation.labels for seed in (1, 1, 2)
    )

    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_pickles_written_by_python_2_are_read(tmp_path):
    root = layouts.cifar10(tmp_path)
    batch = root / "cifar-10-batches-py" / "test_batch"
    rows = layouts.small_pictures([3, 7]).transpose(0, 3, 1, 2).reshape(2, -1)

    def text(value):  # Python 2's str
        return b"T" + struct.pack("<I", len(value)) + value

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\nt"
        + text(b"b")
        + b"tR(I1\n(I2\nI3072\nt"
        + b"cnumpy\ndtype\n("
        + text(b"u1")
        + b"I0\nI1\ntR(I3\n"
        + text(b"|")
        + b"NNNI-1\nI-1\nI0\ntbI00\n"
        + text(rows.tobytes())
        + b"tb"
    )
    content = b"\x80\x02}(" + text(b"data") + array + text(b"labels") + b"(lI3\naI7\na" + b"u."
    batch.write_bytes(content)
    layouts.official_batch(batch)

    test = load("cifar10", root=root).tests["test"]

    assert test.labels.tolist() == [3, 7]
    assert test.images.pixels[:, 0, 0, 0].tolist() == [70, 150]


class Canary:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path):
    root, canary = layouts.cifar10(tmp_path), tmp_path / "canary"
    batch = root / "cifar-10-batches-py" / "data_batch_3"
    batch.write_bytes(pickle.dumps({"data": Canary(canary), "labels": []}, protocol=2))

    with pytest.raises(DataError, match="not the official batch") as caught:
        load("cifar10", root=root)

    assert str(batch) in caught.value.problem
    assert not canary.exists()


def test_one_official_batch_under_the_name_of_another_is_refused(tmp_path):
    root = layouts.cifar10(tmp_path)
    held = root / "cifar-10-batches-py"
    (held / "test_batch").write_bytes((held / "data_batch_1").read_bytes())

    with pytest.raises(DataError, match="not the official batch"):
        load("cifar10", root=root)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1, 2]}),
        b"\x80\x02K\x01r\xff\xff\xff\xff.",  # a memo of four thousand million places
    ],
    ids=["empty", "text", "right but not official", "huge memo"],
)
def test_what_is_not_the_official_batch_is_never_unpickled(tmp_path, monkeypatch, content):
    root = layouts.cifar10(tmp_path)
    batch = root / "cifar-10-batches-py" / "test_batch"
    batch.write_bytes(content)
    unpickled = []
    real = pickle.loads
    monkeypatch.setattr(pickle, "loads", lambda c, **k: unpickled.append(c) or real(c, **k))

    with pytest.raises(DataError) as caught:
        load("cifar10", root=root)

    assert str(batch) in caught.value.problem
    assert ".npz" in caught.value.remedy
    assert len(unpickled) == 5
    assert content not in unpickled


def test_a_binary_batch_of_the_wrong_length_is_explained(tmp_path):
    root = layouts.cifar10(tmp_path, form="binary")
    batch = root / "cifar-10-batches-bin" / "data_batch_2.bin"
    batch.write_bytes(batch.read_bytes()[:-1])

    with pytest.raises(DataError, match=r"61,459 bytes, not a multiple of 3,073"):
        load("cifar10", root=root)


@pytest.mark.parametrize(("form", "suffix"), [("python", ""), ("binary", ".bin")])
def test_a_missing_batch_is_named(tmp_path, form, suffix):
    root = layouts.cifar10(tmp_path, form=form)
    batch = next(root.glob(f"*/data_batch_4{suffix}"))
    batch.unlink()

    with pytest.raises(DataError, match="incomplete") as caught:
        load("cifar10", root=root)

    assert str(batch) in caught.value.problem


def test_an_empty_folder_is_answered_with_the_paths_expected(tmp_path):
    with pytest.raises(DataError) as caught:
        load("cifar10", root=tmp_path)

    assert str(tmp_path / "cifar-10-batches-py" / "data_batch_1") in caught.value.problem


def test_two_npz_files_are_a_question(tmp_path):
    root = layouts.cifar10(tmp_path, form="npz")
    (root / "other.npz").write_bytes((root / "cifar10.npz").read_bytes())

    with pytest.raises(DataError, match=r"2 \.npz files: cifar10\.npz, other\.npz"):
        load("cifar10", root=root)


def npz(path, **changes):
    """Write a right .npz file with some arrays changed; None leaves one out."""
    pixels, labels = np.zeros((10, 32, 32, 3), np.uint8), np.arange(10)
    arrays = {"x_train": pixels, "y_train": labels, "x_test": pixels, "y_test": labels, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_test": None}, "y_test"),
        ({"x_train": np.zeros((10, 28, 28), np.uint8)}, r"x_train is \(10, 28, 28\) uint8"),
        ({"x_train": np.zeros((10, 32, 32, 3), np.float32)}, "float32"),
        ({"y_train": np.arange(10) + 1}, "labels from 1 to 10"),
        ({"y_train": np.arange(9)}, "10 pictures but 9 labels"),
        ({"y_train": np.array([{}] * 10)}, "y_train is .* object"),
    ],
)
def test_a_wrong_npz_file_is_explained(tmp_path, changes, words):
    with pytest.raises(DataError, match=words):
        load("cifar10", root=npz(tmp_path / "a.npz", **changes))


def test_labels_in_a_column_as_keras_keeps_them_are_read(tmp_path):
    pixels, labels = np.zeros((100, 32, 32, 3), np.uint8), np.arange(100)[:, None] % 10
    path = npz(tmp_path / "a.npz", x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)

    bundle = load("cifar10", root=path)

    assert bundle.tests["test"].labels.tolist() == list(range(10)) * 10


@pytest.mark.parametrize(("count", "words"), [(900_000, "x_train claims"), (10**13, "x_train is")])
def test_an_npz_header_that_claims_more_than_there_is_is_refused_unread(tmp_path, count, words):
    path = npz(tmp_path / "a.npz")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (count, 32, 32, 3)}
    )
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["x_train.npy"] = header.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)

    with pytest.raises(DataError, match=words):
        load("cifar10", root=path)


def test_more_pictures_than_anyone_has_are_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10, "MOST_PICTURES", 9)

    with pytest.raises(DataError, match=r"x_train is \(10, 32, 32, 3\)"):
        load("cifar10", root=npz(tmp_path / "a.npz"))


def test_a_batch_far_larger_than_the_official_ones_is_refused_unread(tmp_path):
    root = layouts.cifar10(tmp_path)
    with (root / "cifar-10-batches-py" / "test_batch").open("wb") as file:
        file.truncate(300 << 20)  # a hole: it takes no room on the disk

    with pytest.raises(DataError, match="314,572,800 bytes, too many"):
        load("cifar10", root=root)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_no_npz_is_explained(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)

    with pytest.raises(DataError, match="cannot be read as CIFAR-10"):
        load("cifar10", root=path)


@pytest.mark.skipif(not REAL.is_file(), reason="the shared CIFAR-10 subset is not here")
def test_the_real_subset_has_5000_and_2000_pictures():
    bundle = load("cifar10", root=REAL)

    assert len(bundle.train) + len(bundle.validation) == 5000
    assert len(bundle.tests["test"]) == 2000
