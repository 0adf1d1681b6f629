import os
import shutil

import numpy as np
import pytest

from masktune.data.fingerprint import fingerprint, is_of, stamp
from masktune.datasets.catalogue import load
from tests import layouts


@pytest.fixture
def birds(tmp_path):
    return layouts.waterbirds(tmp_path / "birds")


def of(root):
    return fingerprint(load("waterbirds", root=root))


def test_the_same_files_give_the_same_fingerprint_wherever_they_lie(birds, tmp_path):
    copied = shutil.copytree(birds, tmp_path / "elsewhere" / "copy")

    assert of(birds) == of(copied)


def one_unusable(root):
    next(root.glob("*/*.jpg")).write_bytes(b"no picture")


def one_renamed(root):
    path = next(root.glob("*/*.jpg"))
    path.rename(path.with_name("other.jpg"))
    table = root / "metadata.csv"
    table.write_text(table.read_text().replace(path.name, "other.jpg"))


def one_labelled_anew(root):
    lines = (root / "metadata.csv").read_text().splitlines()
    number, name, label, rest = lines[1].split(",", 3)
    lines[1] = ",".join((number, name, str(1 - int(label)), rest))
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")


def one_in_another_place(root):
    lines = (root / "metadata.csv").read_text().splitlines()
    *first, place, file = lines[1].split(",")
    lines[1] = ",".join((*first, str(1 - int(place)), file))
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "change", [one_unusable, one_renamed, one_labelled_anew, one_in_another_place]
)
def test_every_change_that_moves_or_relabels_a_picture_shows(birds, change):
    before = of(birds)

    change(birds)

    assert of(birds) != before


def test_digits_in_memory_have_one_too(tmp_path):
    root = layouts.mnist(tmp_path)

    first, again, other = (fingerprint(load("mnist", root=root, seed=s)) for s in (0, 0, 1))

    assert first == again != other


def test_other_pixels_under_the_same_labels_show(tmp_path):
    first, other = (layouts.cifar10(tmp_path / name, form="npz") for name in ("a", "b"))
    arrays = dict(np.load(other / "cifar10.npz"))
    arrays["x_train"][0, 0, 0, 0] += 1
    np.savez_compressed(other / "cifar10.npz", **arrays)

    assert fingerprint(load("cifar10", root=first)) != fingerprint(load("cifar10", root=other))


def test_the_frame_is_no_part_of_the_pictures(tmp_path):
    root = layouts.cifar10(tmp_path, form="npz")

    plain, framed = (load("cifar10", root=root, frame=frame) for frame in (None, "resize 16x16"))

    assert fingerprint(plain) == fingerprint(framed)


def test_a_run_of_before_is_recognised_by_its_own_kind_of_fingerprint(tmp_path):
    birds = load("waterbirds", root=layouts.waterbirds(tmp_path / "birds"))
    digits = load("mnist", root=layouts.mnist(tmp_path / "digits"))

    # As runs up to version 0.1.0 have them in data.json.
    assert is_of(birds, "12e9cd5544c5ebbbf357be7fa8d1b7f1")
    assert is_of(digits, "969756ac0e69c8098cd1fb99914fb433")
    assert not is_of(birds, "969756ac0e69c8098cd1fb99914fb433")
    assert is_of(digits, fingerprint(digits))
    assert not is_of(digits, fingerprint(birds))


@pytest.fixture
def root(tmp_path):
    for name in ("train/cat/sofa/a.png", "train/dog/sofa/b.png", "test/cat/sofa/c.png"):
        layouts.picture(tmp_path / "root" / name, label=0)
    (tmp_path / "root" / "labels.csv").write_text("filename,label\n")
    for path in (*(tmp_path / "root").rglob("*"), tmp_path / "root"):
        os.utime(path, ns=(10**18, 10**18))
    return tmp_path / "root"


def add(root):
    layouts.picture(root / "train/cat/sofa/new.png", label=0)


def remove(root):
    (root / "test/cat/sofa/c.png").unlink()


def rename(root):
    (root / "train/dog").rename(root / "train/hound")


def write_list_anew(root):
    (root / "labels.csv").write_text("filename,label\na.png,0\n")


@pytest.mark.parametrize("change", [add, remove, rename, write_list_anew])
def test_a_change_anywhere_below_a_root_shows(root, change):
    before = stamp(root)

    change(root)

    assert stamp(root) != before


def test_a_root_that_did_not_change_has_the_same_stamp(root):
    assert stamp(root) == stamp(root)


def test_a_single_file_that_is_written_anew_shows(root):
    before = stamp(root / "labels.csv")

    write_list_anew(root)

    assert stamp(root / "labels.csv") != before


@pytest.mark.parametrize("name", ["gone", "nul\0", "x" * 5000])
def test_what_is_no_file_has_a_stamp_too(root, name):
    assert stamp(root / name) == stamp(root / name)


def test_a_link_to_a_folder_above_is_not_walked_round_and_round(root):
    for n in range(12):  # walked eight folders deep they would make 12 ** 8 of them
        (root / f"up{n}").symlink_to(root)
        (root / "train" / "cat" / f"up{n}").symlink_to(root)

    assert stamp(root) == stamp(root)
