import pytest

from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests import layouts


@pytest.mark.parametrize("form", ["raw", "train", "PetImages"])
def test_every_form_gives_cats_and_dogs(tmp_path, form):
    # 10 cats and 10 dogs: a fifth of each tests, a fifth validates.
    bundle = load("cats-vs-dogs", root=layouts.cats_dogs(tmp_path, form=form))

    splits = (bundle.train, bundle.validation, bundle.tests["test"])
    assert [len(split) for split in splits] == [12, 4, 4]
    for split in splits:
        names = [str(path.relative_to(tmp_path)).lower() for path in split.images.paths]
        assert ["dog" in name for name in names] == [label == 1 for label in split.labels.tolist()]
    assert bundle.train.images.batch([0]).shape == (1, 3, 64, 64)


def test_the_lists_decide_which_pictures_test(tmp_path):
    bundle = load("cats-vs-dogs", root=layouts.cats_dogs(tmp_path, tested=(2, 7)))

    tested = sorted(path.name for path in bundle.tests["test"].images.paths)
    assert tested == ["cat.2.jpg", "cat.7.jpg", "dog.2.jpg", "dog.7.jpg"]
    assert [len(bundle.train), len(bundle.validation)] == [12, 4]


def test_no_picture_is_moved(tmp_path):
    root = layouts.cats_dogs(tmp_path, tested=(2, 7))
    before = sorted(root.rglob("*"))

    load("cats-vs-dogs", root=root)

    assert sorted(root.rglob("*")) == before


def test_a_listed_picture_that_is_missing_is_named(tmp_path):
    root = layouts.cats_dogs(tmp_path, tested=(2, 99))

    with pytest.raises(DataError, match=r"Row 2 .*cat_idx\.txt") as caught:
        load("cats-vs-dogs", root=root)

    assert str(root / "raw" / "cat.99.jpg") in caught.value.problem


def test_one_list_alone_is_refused(tmp_path):
    root = layouts.cats_dogs(tmp_path, tested=(2,))
    (root / "raw" / "dog_idx.txt").unlink()

    with pytest.raises(DataError) as caught:
        load("cats-vs-dogs", root=root)

    assert str(root / "raw" / "dog_idx.txt") in caught.value.problem


def test_cats_without_dogs_are_refused(tmp_path):
    root = layouts.cats_dogs(tmp_path, form="PetImages")
    (root / "PetImages" / "Dog").rename(tmp_path / "elsewhere")

    with pytest.raises(DataError) as caught:
        load("cats-vs-dogs", root=root)

    assert str(root / "PetImages" / "Dog") in caught.value.problem


def test_an_empty_folder_is_answered_with_the_paths_expected(tmp_path):
    with pytest.raises(DataError) as caught:
        load("cats-vs-dogs", root=tmp_path)

    assert str(tmp_path / "raw" / "cat.0.jpg") in caught.value.problem


def test_no_root_says_where_to_get_it():
    with pytest.raises(DataError) as caught:
        load("cats-vs-dogs")

    assert "kaggle" in caught.value.remedy
