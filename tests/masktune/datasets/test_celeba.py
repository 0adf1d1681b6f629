import re
from pathlib import Path

import pytest
import torch

from masktune.data.listing import Row
from masktune.datasets import celeba
from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests import layouts


def counts(split):
    return torch.bincount(2 * split.labels + split.attributes, minlength=4).tolist()


@pytest.mark.parametrize("form", ["csv", "txt", "metadata.csv"])
@pytest.mark.parametrize("nested", [False, True])
def test_every_form_gives_the_same_dataset(tmp_path, form, nested):
    bundle = load("celeba", root=layouts.celeba(tmp_path, form=form, nested=nested))

    splits = (bundle.train, bundle.validation, bundle.tests["test"])
    assert [counts(split) for split in splits] == [[2, 2, 2, 2]] * 3
    assert bundle.train.labels.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert bundle.train.attributes.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize("folder", ["celebA/data", "celebA_v1.0", "celeba"])
def test_the_usual_folders_below_the_root_are_entered(tmp_path, folder):
    layouts.celeba(tmp_path / folder)

    assert len(load("celeba", root=tmp_path).train) == 8


def test_the_folders_of_celebas_own_pages_are_entered(tmp_path):
    layouts.celeba(tmp_path, form="txt")
    for folder, name in (
        ("Anno", "list_attr_celeba.txt"),
        ("Eval", "list_eval_partition.txt"),
        ("Img", "img_align_celeba"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / name).rename(tmp_path / folder / name)

    assert len(load("celeba", root=tmp_path).train) == 8


def test_labels_and_attributes_belong_to_their_pictures(tmp_path):
    # The partition is written in reverse order: joined by position, splits would be exchanged.
    # The generator paints red = 40 + 20 * label + noise and green = 60 + 100 * attribute + noise.
    train = load("celeba", root=layouts.celeba(tmp_path)).train

    pixels = train.images.batch(range(len(train))).float().mean(dim=(2, 3))

    assert torch.equal(pixels[:, 0] > 70, train.labels == 1)
    assert torch.equal(pixels[:, 1] > 130, train.attributes == 1)
    assert [path.name for path in train.images.paths] == [f"{n:06d}.jpg" for n in range(1, 9)]


def test_a_byte_order_mark_does_not_hide_the_first_column(tmp_path):
    root = layouts.celeba(tmp_path)
    table = root / "list_attr_celeba.csv"
    table.write_text(table.read_text(), encoding="utf-8-sig")

    assert len(load("celeba", root=root).train) == 8


def test_the_model_sees_the_middle_178_pixels_at_224(tmp_path):
    bundle = load("celeba", root=layouts.celeba(tmp_path))

    assert str(bundle.train.images.frame) == "cut 178, resize 224x224"
    assert bundle.card.size == (224, 224)


def test_pictures_that_are_still_packed_are_said_to_be(tmp_path):
    root = layouts.celeba(tmp_path)
    (root / "img_align_celeba").rename(tmp_path / "elsewhere")
    (root / "img_align_celeba.zip").write_bytes(b"PK")

    with pytest.raises(DataError, match="still packed") as caught:
        load("celeba", root=root)

    assert "Unpack img_align_celeba.zip" in caught.value.remedy


def test_without_pictures_their_folder_is_named(tmp_path):
    root = layouts.celeba(tmp_path)
    (root / "img_align_celeba").rename(tmp_path / "elsewhere")

    with pytest.raises(DataError) as caught:
        load("celeba", root=root)

    assert str(root / "img_align_celeba") in caught.value.problem


def test_without_a_partition_both_names_it_may_have_are_given(tmp_path):
    root = layouts.celeba(tmp_path)
    (root / "list_eval_partition.csv").unlink()

    with pytest.raises(DataError) as caught:
        load("celeba", root=root)

    assert str(root / "list_eval_partition.csv") in caught.value.problem
    assert str(root / "list_eval_partition.txt") in caught.value.problem


def test_a_picture_without_a_partition_is_named(tmp_path):
    root = layouts.celeba(tmp_path)
    table = root / "list_eval_partition.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-2]))

    with pytest.raises(DataError, match=r"2 pictures .* first 000001.jpg"):
        load("celeba", root=root)


def test_a_missing_picture_is_named(tmp_path):
    root = layouts.celeba(tmp_path)
    gone = root / "img_align_celeba" / "000003.jpg"
    gone.unlink()

    with pytest.raises(DataError, match="1 of the 24 pictures") as caught:
        load("celeba", root=root)

    assert str(gone) in caught.value.problem


def test_an_attribute_that_is_neither_yes_nor_no_is_named_with_its_row(tmp_path):
    root = layouts.celeba(tmp_path)
    table = root / "list_attr_celeba.csv"
    table.write_text(table.read_text().replace("000002.jpg,-1,-1", "000002.jpg,-1,maybe"))

    with pytest.raises(DataError, match=r"Line 3 .* column 'Blond_Hair': it is 'maybe'"):
        load("celeba", root=root)


def test_a_text_row_that_is_too_short_is_named(tmp_path):
    root = layouts.celeba(tmp_path, form="txt")
    table = root / "list_attr_celeba.txt"
    table.write_text(table.read_text().replace("000001.jpg  -1", "000001.jpg"))

    with pytest.raises(
        DataError, match=r"Line 3 of list_attr_celeba.txt has 5 fields, its header 6"
    ):
        load("celeba", root=root)


def test_an_empty_folder_is_answered_with_the_paths_expected(tmp_path):
    with pytest.raises(DataError) as caught:
        load("celeba", root=tmp_path)

    assert str(tmp_path / "list_attr_celeba.csv") in caught.value.problem


def test_no_root_says_where_to_get_it():
    with pytest.raises(DataError) as caught:
        load("celeba")

    assert "mmlab" in caught.value.remedy


def table_of(counts):
    return [
        Row(Path("a.jpg"), group // 2, split, group % 2)
        for split, groups in counts.items()
        for group, count in enumerate(groups)
        for _ in range(count)
    ]


def test_the_whole_release_is_told_by_its_counts():
    sizes = [sum(groups) for groups in celeba.PUBLISHED.values()]

    assert sizes == [162770, 19867, 19962]
    assert "the whole release, 202,599 pictures" in celeba.release_of(table_of(celeba.PUBLISHED))


def test_a_part_is_called_a_subset_and_anything_larger_is_not():
    few = {"train": (3, 2, 1, 1), "validation": (1, 1, 1, 1), "test": (1, 1, 1, 1)}
    odd = {**few, "test": (1, 1, 1, 181)}

    assert "a subset of the release: 15 of 202,599" in celeba.release_of(table_of(few))
    assert "not those of the release" in celeba.release_of(table_of(odd))


@pytest.mark.parametrize("end", ["\n", "\n\n", "\n  \n", ""])
def test_blank_lines_at_the_end_of_the_partition_do_not_matter(tmp_path, end):
    root = layouts.celeba(tmp_path, form="txt")
    partition = root / "list_eval_partition.txt"
    partition.write_text(partition.read_text().rstrip() + end)

    assert len(load("celeba", root=root).train) == 8


def test_whole_numbers_may_be_written_as_pandas_writes_them(tmp_path):
    root = layouts.celeba(tmp_path)
    for name in ("list_attr_celeba.csv", "list_eval_partition.csv"):
        text = (root / name).read_text()
        (root / name).write_text(re.sub(r",(-?[012])\b", r",\1.0", text))

    assert counts(load("celeba", root=root).train) == [2, 2, 2, 2]
