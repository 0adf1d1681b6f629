import shutil

import pytest
from PIL import Image

from masktune.data import csvs, folders
from masktune.datasets import catalogue
from masktune.datasets.own import pictures_of
from masktune.errors import DataError
from masktune.recipes import recipe
from tests.hostile.pictures import GOOD_ROWS, good_pictures, sheet


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_catalogue_has_it_with_a_recipe():
    card = catalogue.card("folder")

    assert recipe(card.recipe).name == "own"
    assert "ROOT/train/CLASS/ATTRIBUTE" in card.layout


def test_the_card_names_every_layout_and_column_that_is_read():
    layout = catalogue.card("folder").layout

    assert folders.LAYOUT in layout
    for names in csvs.COLUMNS.values():
        assert "|".join(names) in layout


def test_folders_load_through_the_catalogue(tmp_path):
    bundle = catalogue.load("folder", root=good_pictures(tmp_path / "mine"), seed=3)

    assert bundle.card.classes == ("cat", "dog")
    assert bundle.card.key == "folder"
    parts = (bundle.train, bundle.validation, bundle.tests["test"])
    assert [part.labels.bincount().tolist() for part in parts] == [[2, 2], [1, 1], [1, 1]]
    # Cats are dark and dogs bright.
    shades = [int(bundle.train[position].image[0, 0, 0]) for position in range(4)]
    assert [shade > 100 for shade in shades] == [bool(label) for label in bundle.train.labels]


def test_small_pictures_of_one_size_are_seen_as_they_are(tmp_path):
    bundle = catalogue.load("folder", root=good_pictures(tmp_path / "mine", side=32))

    assert bundle.card.size == (32, 32)
    assert bundle.train[0].image.shape == (3, 32, 32)
    assert bundle.findings[-1] == (
        "Every picture is 32 x 32 pixels and is seen so, unless a frame is set."
    )


@pytest.mark.parametrize("other", [(9, 8), (65, 65)])
def test_pictures_of_several_or_larger_sizes_are_seen_at_224(other, tmp_path):
    root = good_pictures(tmp_path / "mine", side=8 if other == (9, 8) else 65)
    Image.new("RGB", other).save(root / "cat" / "other.png")

    bundle = catalogue.load("folder", root=root)

    assert bundle.card.size == (224, 224)
    assert bundle.train[0].image.shape == (3, 224, 224)


def test_a_list_wins_over_folders(tmp_path):
    root = good_pictures(tmp_path / "mine")
    (root / "metadata.csv").write_bytes(sheet(GOOD_ROWS))

    bundle = catalogue.load("folder", root=root)

    assert bundle.card.classes == ("0", "1")
    assert len(bundle.tests["test"]) == 2
    assert bundle.findings[0].startswith("Read as: the list metadata.csv")
    assert catalogue.load("folder", root=root / "metadata.csv").findings == bundle.findings


def test_a_list_about_something_else_is_passed_over_and_named(tmp_path):
    root = good_pictures(tmp_path / "mine")
    (root / "photographers.csv").write_text("name,year\nAnna,1890\n")

    bundle = catalogue.load("folder", root=root)

    assert bundle.card.classes == ("cat", "dog")
    assert any("Not used: photographers.csv has no column" in f for f in bundle.findings)


def test_a_list_without_columns_is_refused_where_there_are_no_folders(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.csv").write_text("name,year\nAnna,1890\n")

    with pytest.raises(DataError, match="has no column for the picture's file name"):
        catalogue.load("folder", root=tmp_path / "mine")


def test_a_zip_is_unpacked_once_and_read_like_its_folder(tmp_path, home):
    good_pictures(tmp_path / "outer" / "mine")
    path = shutil.make_archive(str(tmp_path / "mine"), "zip", tmp_path / "outer")
    stages = []

    first = catalogue.load("folder", root=path, watcher=lambda p: stages.append(p.stage))
    again = catalogue.load("folder", root=path, watcher=lambda p: stages.append(p.stage))

    assert first.card == again.card
    assert first.train.labels.tolist() == again.train.labels.tolist()
    assert stages == ["unpack", "check", "check"]
    assert len(list((home / "uploads").iterdir())) == 1


@pytest.mark.parametrize("name", ["photo.jpg", "data.tar.gz", "data.rar"])
def test_a_file_that_is_neither_list_nor_zip_is_refused(name, tmp_path):
    (tmp_path / name).write_bytes(b"x")

    with pytest.raises(DataError, match="neither a folder nor a CSV or zip file"):
        catalogue.load("folder", root=tmp_path / name)


def test_without_a_place_there_is_nothing_to_load(tmp_path):
    with pytest.raises(DataError, match="cannot be downloaded"):
        catalogue.load("folder", root=None)
    with pytest.raises(DataError, match="does not exist"):
        catalogue.load("folder", root=tmp_path / "gone")


def test_the_files_of_a_user_are_never_touched(tmp_path):
    root = good_pictures(tmp_path / "mine")
    (root / "cat" / "bad.jpg").write_bytes(b"no picture")
    before = {p: (p.stat().st_mtime_ns, p.stat().st_mode) for p in root.rglob("*")}

    catalogue.load("folder", root=root)

    assert {p: (p.stat().st_mtime_ns, p.stat().st_mode) for p in root.rglob("*")} == before


def test_a_wrong_path_is_answered_by_what_lies_beside_it(tmp_path):
    for name in ("pictures", "models", "notes"):
        (tmp_path / name).mkdir()

    with pytest.raises(DataError) as caught:
        catalogue.load("folder", root=tmp_path / "picture")

    assert caught.value.problem == (
        f"The folder {tmp_path / 'picture'} does not exist; beside it there is pictures."
    )
    assert len(caught.value.remedy) < 80


@pytest.mark.parametrize("name", ["a" * 300, f"{'a' * 300}.zip", "a\0b"])
def test_a_path_that_no_file_can_have_is_answered_like_a_wrong_one(name, tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        pictures_of(tmp_path / name)
    with pytest.raises(DataError, match="does not exist"):
        catalogue.load("folder", root=tmp_path / name)
    assert catalogue.title("folder", tmp_path / name) == name


def test_where_nothing_is_like_a_wrong_path_the_first_names_are_given(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / ".git").mkdir()

    with pytest.raises(DataError) as caught:
        catalogue.load("folder", root=tmp_path / "gone" / "pictures")

    assert caught.value.problem.endswith(f"does not exist; {tmp_path} holds models.")


def test_a_zip_without_pictures_is_named_as_the_user_knows_it(tmp_path):
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "readme.txt").write_text("nothing here")
    path = shutil.make_archive(str(tmp_path / "holiday"), "zip", tmp_path / "outer")

    with pytest.raises(DataError, match=r"holiday\.zip holds no pictures"):
        catalogue.load("folder", root=path)


@pytest.mark.parametrize("what", ["mine", "mine/metadata.csv", "mine.zip"])
def test_own_pictures_are_called_as_their_folder_or_file_is(tmp_path, what):
    root = good_pictures(tmp_path / "mine")
    shutil.make_archive(str(tmp_path / "mine"), "zip", root)
    (root / "metadata.csv").write_bytes(sheet(GOOD_ROWS))

    assert catalogue.load("folder", root=tmp_path / what).card.title == "mine"
    assert catalogue.title("folder", tmp_path / what) == "mine"


def test_a_zip_is_called_as_it_is_wherever_it_was_uploaded_to(tmp_path):
    shutil.make_archive(str(tmp_path / "labels"), "zip", good_pictures(tmp_path / "mine"))

    assert catalogue.load("folder", root=tmp_path / "labels.zip").card.title == "labels"
    assert catalogue.title("folder", tmp_path / "labels.zip") == "labels"
