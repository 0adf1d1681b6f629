import os

import pytest

from masktune.data.changed import stamp
from tests import layouts


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
