import re
from pathlib import Path

import pytest
import torch

from masktune.data.card import UNKNOWN
from masktune.data.listing import Row
from masktune.datasets import waterbirds
from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests import layouts

REAL = Path("../shared/data/waterbirds_v1.0")


def counts(split):
    return torch.bincount(2 * split.labels + split.attributes, minlength=4).tolist()


@pytest.mark.parametrize("nested", ["", waterbirds.RELEASE, "waterbirds_v1.0"])
@pytest.mark.parametrize("form", ["metadata.csv", "metadata_waterbirds.csv"])
def test_every_group_of_every_split_is_read(tmp_path, form, nested):
    layouts.waterbirds(tmp_path / nested, form=form)

    bundle = load("waterbirds", root=tmp_path)

    assert [counts(s) for s in (bundle.train, bundle.validation, bundle.tests["test"])] == [
        [2, 2, 2, 2]
    ] * 3
    assert form in bundle.findings[0]


def test_the_model_sees_the_middle_224_of_256_pixels(tmp_path):
    bundle = load("waterbirds", root=layouts.waterbirds(tmp_path))

    assert bundle.train.images.batch([0]).shape == (1, 3, 224, 224)
    assert str(bundle.train.images.frame) == "resize 256x256, crop 224x224"
    assert bundle.card.mean == (0.485, 0.456, 0.406)


def test_labels_and_places_belong_to_their_pictures(tmp_path):
    # The generator paints red = 40 + 20 * label + noise and green = 60 + 100 * place + noise.
    train = load("waterbirds", root=layouts.waterbirds(tmp_path)).train

    pixels = train.images.batch(range(len(train))).float().mean(dim=(2, 3))

    assert torch.equal(pixels[:, 0] > 70, train.labels == 1)
    assert torch.equal(pixels[:, 1] > 130, train.attributes == 1)


def test_columns_are_found_by_name_in_any_order(tmp_path):
    root = layouts.waterbirds(tmp_path)
    rows = [(place, split, name, y) for name, y, split, place in layouts.birds(2)]
    layouts.table(root / "metadata.csv", ("place", "split", "img_filename", "y"), rows)

    bundle = load("waterbirds", root=root)

    assert counts(bundle.train) == [2, 2, 2, 2]


def test_pictures_of_balancing_groups_lie_in_a_folder_beside_the_table(tmp_path):
    pictures = tmp_path / "waterbirds" / waterbirds.RELEASE
    layouts.waterbirds(pictures, form="metadata_waterbirds.csv")
    (pictures / "metadata_waterbirds.csv").rename(tmp_path / "metadata_waterbirds.csv")

    bundle = load("waterbirds", root=tmp_path)

    assert counts(bundle.train) == [2, 2, 2, 2]


def test_the_corrected_layout_takes_labels_from_folders_and_places_from_the_table(tmp_path):
    # Of each group's 2 waterbirds one is a towhee, a landbird here: 3 landbirds, 1 waterbird.
    bundle = load("waterbirds", root=layouts.waterbirds(tmp_path, form="corrected"))

    assert counts(bundle.train) == [3, 3, 1, 1]
    assert "This is the corrected release, 24 pictures" in bundle.findings[1]


def test_the_corrected_layout_without_a_table_is_label_free(tmp_path):
    root = layouts.waterbirds(tmp_path, form="corrected")
    (root / "metadata.csv").unlink()

    bundle = load("waterbirds", root=root)

    assert bundle.card.attributes == ()
    assert set(bundle.train.attributes.tolist()) == {UNKNOWN}
    assert "worst class stands in" in bundle.findings[0]


def test_a_corrected_picture_without_a_row_is_named(tmp_path):
    root = layouts.waterbirds(tmp_path, form="corrected")
    extra = layouts.picture(root / "images/val/1/Stranger_1_1.jpg", label=1)

    with pytest.raises(DataError, match="1 of 25 pictures have no row") as caught:
        load("waterbirds", root=root)

    assert str(extra) in caught.value.problem


def test_a_corrected_layout_without_a_folder_names_it(tmp_path):
    root = layouts.waterbirds(tmp_path, form="corrected")
    (root / "images/test/1").rename(root / "elsewhere")

    with pytest.raises(DataError) as caught:
        load("waterbirds", root=root)

    assert str(root / "images/test/1") in caught.value.problem


def release(counts, towhee=None):
    """Give the sentence for a release with these groups; one picture may be a towhee."""
    rows = [
        Row(Path("Laysan_Albatross_1.jpg"), group // 2, split, group % 2)
        for split, groups in counts.items()
        for group, count in enumerate(groups)
        for _ in range(count)
    ]
    for label in towhee or ():
        position = next(n for n, row in enumerate(rows) if row.label == label)
        rows[position] = rows[position]._replace(path=Path("Eastern_Towhee_0001_1.jpg"))
    return waterbirds.release_of(rows)


FEW = {"train": (5, 1, 1, 3), "validation": (1, 1, 1, 1), "test": (2, 2, 1, 1)}


def test_the_original_release_is_told_by_its_counts():
    assert release(waterbirds.ORIGINAL, [1]) == (
        "This is the original release, all 11,788 pictures."
    )


@pytest.mark.parametrize(
    ("towhees", "words"),
    [
        ([1], "a subset of the original release: 20 of 11,788 pictures"),
        ([0], "the corrected release, 20 pictures"),
        ([0, 1], "neither the original nor the corrected"),
        ([], "original and the corrected labels look the same"),
    ],
)
def test_a_part_is_told_by_what_it_calls_a_towhee(towhees, words):
    assert words in release(FEW, towhees)


def test_more_pictures_in_a_group_than_were_released_is_said():
    many = {**FEW, "train": (5, 1, 57, 3)}

    assert "larger than in the original release" in release(many, [1])


def test_listed_pictures_that_are_missing_are_counted_and_named(tmp_path):
    root = layouts.waterbirds(tmp_path)
    gone = sorted((root / layouts.LANDBIRD).iterdir())[:5]
    for path in gone:
        path.unlink()

    with pytest.raises(DataError, match="5 of the 24 pictures") as caught:
        load("waterbirds", root=root)

    assert str(gone[0]) in caught.value.problem
    assert "and 2 more" in caught.value.problem


def test_an_empty_folder_is_answered_with_the_paths_expected(tmp_path):
    with pytest.raises(DataError) as caught:
        load("waterbirds", root=tmp_path)

    assert str(tmp_path / "metadata.csv") in caught.value.problem
    assert "it holds nothing" in caught.value.problem


def test_no_root_says_where_to_get_it():
    with pytest.raises(DataError) as caught:
        load("waterbirds")

    assert "group_DRO" in caught.value.remedy


@pytest.mark.parametrize(
    ("heading", "row", "words"),
    [
        (("img_filename", "y", "split"), ("a.jpg", 0, 0), "no column 'place'"),
        (
            ("img_filename", "y", "split", "place"),
            ("a.jpg", 2, 0, 0),
            "Line 2 of metadata.csv, column 'y': it is '2'",
        ),
        (
            ("img_filename", "y", "split", "place"),
            ("a.jpg", 0, "x", 0),
            "Line 2 .* column 'split': it is 'x'",
        ),
        (
            ("img_filename", "y", "split", "place"),
            ("a.jpg", 0),
            "Line 2 .* column 'split': it is empty",
        ),
        (
            ("img_filename", "y", "split", "place"),
            ("../a.jpg", 0, 0, 0),
            "leads out of the dataset's folder",
        ),
        (
            ("img_filename", "y", "split", "place"),
            ("/etc/a.jpg", 0, 0, 0),
            "leads out of the dataset's folder",
        ),
    ],
)
def test_a_wrong_table_is_explained_by_row_and_column(tmp_path, heading, row, words):
    layouts.table(tmp_path / "metadata.csv", heading, [row])

    with pytest.raises(DataError, match=words):
        load("waterbirds", root=tmp_path)


def test_a_table_that_is_no_text_is_explained(tmp_path):
    (tmp_path / "metadata.csv").write_bytes(b"\xff\xfe\x00\x01")

    with pytest.raises(DataError, match="a header and no rows"):
        load("waterbirds", root=tmp_path)


def test_a_truncated_picture_is_left_out_by_name(tmp_path):
    root = layouts.waterbirds(tmp_path)
    path = sorted((root / layouts.LANDBIRD).iterdir())[0]
    path.write_bytes(path.read_bytes()[:200])

    bundle = load("waterbirds", root=root)

    assert [file.path for file in bundle.skipped] == [f"{layouts.LANDBIRD}/{path.name}"]
    assert len(bundle.train) + len(bundle.validation) + len(bundle.tests["test"]) == 23


def test_no_file_of_the_user_is_changed(tmp_path):
    root = layouts.waterbirds(tmp_path, form="corrected")
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}

    load("waterbirds", root=root)

    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.mark.skipif(not REAL.is_dir(), reason="the shared Waterbirds subset is not here")
def test_the_real_subset_has_the_counts_of_its_readme():
    bundle = load("waterbirds", root=REAL)

    assert [counts(s) for s in (bundle.train, bundle.validation, bundle.tests["test"])] == [
        [520, 28, 12, 160],
        [70, 70, 30, 30],
        [110, 110, 50, 50],
    ]
    assert "a subset of the original release: 1,240 of 11,788 pictures" in bundle.findings[1]


@pytest.mark.parametrize("form", ["metadata.csv", "metadata_waterbirds.csv"])
def test_whole_numbers_may_be_written_as_pandas_writes_them(tmp_path, form):
    root = layouts.waterbirds(tmp_path, form=form)
    lines = (root / form).read_text().splitlines()
    (root / form).write_text("\n".join(re.sub(r",([012])(?=,|$)", r",\1.0", x) for x in lines))

    bundle = load("waterbirds", root=root)

    assert [len(bundle.train), len(bundle.validation), len(bundle.tests["test"])] == [8, 8, 8]


def with_boxes(root, boxes):
    """Write CUB's lists: every picture's box by its number."""
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.jpg"))
    lines = [f"{number} {name}" for number, name in enumerate(names, 1)]
    (root / "images.txt").write_text("\n".join(lines))
    lines = [f"{n} {left} {top} {width} {height}" for n, (left, top, width, height) in boxes]
    (root / "bounding_boxes.txt").write_text("\n".join(lines))
    return names


def test_boxes_of_cub_tell_where_the_birds_are_and_all_else_is_the_clue(tmp_path):
    root = layouts.waterbirds(tmp_path)
    names = with_boxes(root, [(n, (0.0, 0.0, 10.0, 1000.0)) for n in range(1, 25)])

    bundle = load("waterbirds", root=root)
    train = bundle.train
    thing, clue = train.thing.batch([0, 1]), train.clue.batch([0, 1])

    assert len(names) == 24
    assert thing.shape == (2, 224, 224)
    assert thing.any(dim=1).any(dim=1).all()
    assert clue.equal(~thing)
    assert "Where the birds are is known from CUB's bounding_boxes.txt." in bundle.findings


def test_boxes_are_found_by_file_name_in_the_folders_of_the_corrected_release_too(tmp_path):
    root = layouts.waterbirds(tmp_path, form="corrected")
    with_boxes(root, [(n, (0.0, 0.0, 5.0, 5.0)) for n in range(1, 25)])

    train = load("waterbirds", root=root).train

    assert train.thing.batch(range(len(train))).flatten(1).any(dim=1).all()


def test_without_cubs_lists_nobody_knows_where_the_birds_are(tmp_path):
    train = load("waterbirds", root=layouts.waterbirds(tmp_path)).train

    assert train.thing is None
    assert train.clue is None


def test_a_box_that_is_no_number_is_named(tmp_path):
    root = layouts.waterbirds(tmp_path)
    with_boxes(root, [(1, ("far", 0, 5, 5))])

    with pytest.raises(DataError, match=r"column 'left': it is 'far'"):
        load("waterbirds", root=root)
