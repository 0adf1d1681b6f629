import pytest

from masktune.data.card import UNKNOWN
from masktune.data.folders import innermost, read_folders
from masktune.errors import DataError


def grow(root, *names):
    """Make files; folders are looked through without opening any."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def told(listing):
    """Give (file, class, attribute, split) of every row."""
    return [
        (
            path.relative_to(listing.root).as_posix(),
            listing.classes[label],
            None if attribute == UNKNOWN else listing.attributes[attribute],
            split,
        )
        for path, label, split, attribute in listing.rows
    ]


def test_one_folder_a_class(tmp_path):
    listing = read_folders(grow(tmp_path, "dog/1.jpg", "cat/2.JPEG", "cat/1.png"))

    assert told(listing) == [
        ("cat/1.png", "cat", None, "train"),
        ("cat/2.JPEG", "cat", None, "train"),
        ("dog/1.jpg", "dog", None, "train"),
    ]
    assert listing.attributes == ()
    assert listing.findings == (
        "Read as: one folder a class; no attribute, so the worst class stands in for the worst "
        "group.",
        "Classes in order: cat, dog.",
    )


@pytest.mark.parametrize("validation", ["val", "valid", "validation", "dev", "Val"])
def test_splits_above_classes(validation, tmp_path):
    listing = read_folders(
        grow(
            tmp_path,
            *("Train/cat/1.jpg", "Train/dog/1.jpg", f"{validation}/cat/1.jpg", "test/dog/1.jpg"),
            "test_night/cat/1.jpg",
        )
    )

    assert sorted((row[3], row[1]) for row in told(listing)) == [
        ("test", "dog"),
        ("test_night", "cat"),
        ("train", "cat"),
        ("train", "dog"),
        ("validation", "cat"),
    ]
    assert "The test part has no pictures of cat." in listing.findings
    assert "in folders for the parts" in listing.findings[0]


def test_attributes_inside_classes_as_spuco_has_them(tmp_path):
    listing = read_folders(
        grow(
            tmp_path,
            *("train/landbirds/land/1.jpg", "train/waterbirds/water/1.jpg"),
            *("test/landbirds/water/1.jpg", "test/waterbirds/land/deep/1.jpg"),
        )
    )

    assert told(listing) == [
        ("test/landbirds/water/1.jpg", "landbirds", "water", "test"),
        ("test/waterbirds/land/deep/1.jpg", "waterbirds", "land", "test"),
        ("train/landbirds/land/1.jpg", "landbirds", "land", "train"),
        ("train/waterbirds/water/1.jpg", "waterbirds", "water", "train"),
    ]
    assert "Attributes: land, water." in listing.findings


def test_attributes_in_brackets_as_metashift_has_them(tmp_path):
    listing = read_folders(
        grow(tmp_path, "cat/cat(sofa)/1.jpg", "cat/cat(bed)/1.jpg", "dog/dog(sofa)/1.jpg")
    )

    assert listing.attributes == ("bed", "sofa")
    assert [row[1:3] for row in told(listing)] == [("cat", "bed"), ("cat", "sofa"), ("dog", "sofa")]


def test_brackets_of_another_word_are_part_of_the_name(tmp_path):
    listing = read_folders(grow(tmp_path, "cat/dog(sofa)/1.jpg", "dog/x/1.jpg"))

    assert listing.attributes == ("dog(sofa)", "x")


def test_numbers_are_in_the_order_of_numbers_and_that_is_said(tmp_path):
    listing = read_folders(grow(tmp_path, *(f"{n}/{a}/1.jpg" for n in (10, 2, 0) for a in (11, 3))))

    assert listing.classes == ("0", "2", "10")
    assert listing.attributes == ("3", "11")
    assert any("torchvision's ImageFolder puts '10' before '2'" in f for f in listing.findings)


def test_names_are_in_the_order_torchvision_has(tmp_path):
    listing = read_folders(grow(tmp_path, "b2/1.jpg", "b10/1.jpg", "A/1.jpg", "a/1.jpg"))

    assert listing.classes == ("A", "a", "b10", "b2")
    assert not any("torchvision" in finding for finding in listing.findings)


def test_what_systems_leave_behind_and_other_files_are_passed_over(tmp_path):
    listing = read_folders(
        grow(
            tmp_path,
            *("cat/1.jpg", "dog/1.jpg", "cat/.DS_Store", "cat/._1.jpg", "dog/Thumbs.db"),
            *("__MACOSX/cat/1.jpg", ".git/a.jpg", "cat/notes.txt", "dog/heat.npy", "empty/a.txt"),
        )
    )

    assert [row[0] for row in told(listing)] == ["cat/1.jpg", "dog/1.jpg"]
    assert "2 files that are no pictures are passed over (.txt, .npy)." in listing.findings


def test_loose_pictures_extra_folders_and_inner_folders_are_told_of(tmp_path):
    listing = read_folders(
        grow(
            tmp_path,
            *("train/cat/1.jpg", "train/dog/more/1.jpg", "train/loose.jpg", "top.jpg"),
            "extra/cat/1.jpg",
        )
    )

    assert [row[0] for row in told(listing)] == ["train/cat/1.jpg", "train/dog/more/1.jpg"]
    assert "2 pictures lie in no class folder and are left out (top.jpg)." in listing.findings
    assert "Folders beside the parts are left out: extra." in listing.findings
    assert "Folders inside some class folders are read as part of the class." in listing.findings


def test_train_inside_train_is_entered(tmp_path):
    listing = read_folders(grow(tmp_path, "train/train/cat/1.jpg", "train/train/dog/1.jpg"))

    assert listing.classes == ("cat", "dog")


def test_links_that_lead_back_are_walked_once(tmp_path):
    root = grow(tmp_path, "cat/1.jpg", "dog/1.jpg")
    (root / "cat" / "round").symlink_to(root, target_is_directory=True)
    (root / "dog" / "self").symlink_to(root / "dog" / "self")

    assert [row[0] for row in told(read_folders(root))] == ["cat/1.jpg", "dog/1.jpg"]


def test_a_link_to_pictures_elsewhere_is_followed(tmp_path):
    grow(tmp_path / "store", "1.jpg")
    root = grow(tmp_path / "root", "cat/1.jpg")
    (root / "dog").symlink_to(tmp_path / "store", target_is_directory=True)

    assert [row[1] for row in told(read_folders(root))] == ["cat", "dog"]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["a.jpg", "b.jpg"], "holds 2 pictures but no folders"),
        (["a.jpg"], "holds 1 picture but no folders"),
        (["a.txt"], "holds no pictures"),
        (["cat/a.jpg"], "one class only, 'cat'"),
        (["train/a.jpg"], "holds no class folders"),
        (["val/cat/a.jpg", "test/cat/a.jpg"], "has no 'train' folder; it holds 'test', 'val'"),
        (["train/cat/a.jpg", "val/a/b.jpg", "valid/a/b.jpg"], "'val' and 'valid' .* both mean"),
        (
            ["train/cat/a.jpg", "train/dog/a.jpg", "test/Cat/a.jpg"],
            "Class 'Cat' has pictures in the test part .* holds 'cat', 'dog'",
        ),
    ],
)
def test_folders_that_fit_no_layout_are_told_what_they_lack(names, problem, tmp_path):
    with pytest.raises(DataError, match=problem) as caught:
        read_folders(grow(tmp_path, *names))

    assert caught.value.remedy


def test_single_folders_are_entered_until_the_data_begin(tmp_path):
    grow(tmp_path, "zip/data/cat/1.jpg", "zip/data/dog/1.jpg", "__MACOSX/zip/._x")
    assert innermost(tmp_path) == tmp_path / "zip" / "data"

    grow(tmp_path / "parts", "train/cat/1.jpg")
    assert innermost(tmp_path / "parts") == tmp_path / "parts"

    grow(tmp_path / "single", "cat/1.jpg")
    assert innermost(tmp_path / "single") == tmp_path / "single"

    grow(tmp_path / "list", "data.csv")
    assert innermost(tmp_path / "list") == tmp_path / "list"


def test_a_folder_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gone cannot be read: No such file"):
        read_folders(tmp_path / "gone")


def test_classes_called_as_short_words_for_splits_are_classes(tmp_path):
    listing = read_folders(grow(tmp_path, "en/1.jpg", "de/1.jpg", "tr/1.jpg"))

    assert listing.classes == ("de", "en", "tr")


def test_short_words_are_splits_where_every_folder_is_one(tmp_path):
    names = ("tr/cat/1.jpg", "tr/dog/1.jpg", "va/cat/1.jpg", "te/dog/1.jpg")

    listing = read_folders(grow(tmp_path, *names))

    assert listing.classes == ("cat", "dog")
    assert sorted({row[3] for row in told(listing)}) == ["test", "train", "validation"]


def test_a_short_word_is_a_split_beside_a_folder_that_is_spelled_out(tmp_path):
    names = ("train/cat/1.jpg", "train/dog/1.jpg", "dev/cat/1.jpg", "notes/1.jpg")

    listing = read_folders(grow(tmp_path, *names))

    assert sorted({row[3] for row in told(listing)}) == ["train", "validation"]


def test_a_folder_a_picture_inside_the_classes_is_no_attribute(tmp_path):
    names = [f"{label}/{n}/1.jpg" for label in ("cat", "dog") for n in range(101)]

    with pytest.raises(DataError, match="101 different attributes") as caught:
        read_folders(grow(tmp_path, *names))

    assert "class folder" in caught.value.remedy
