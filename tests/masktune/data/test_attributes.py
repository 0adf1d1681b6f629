from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from masktune.data.attributes import with_attributes
from masktune.data.fingerprint import fingerprint
from masktune.data.listing import NO_ATTRIBUTE
from masktune.data.regions import boxed
from masktune.datasets.catalogue import load
from masktune.errors import DataError
from tests.layouts import cats_dogs, table, waterbirds

NAMES = [
    f"{part}/{kind}/{n}-{kind}-{part}.png"
    for part in ("train", "val", "test")
    for kind in ("cat", "dog")
    for n in range(2)
]


@pytest.fixture
def pets(tmp_path):
    """Write a folder of two classes in three parts, two pictures of each, and no attribute."""
    for name in NAMES:
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), len(name), np.uint8)).save(path)
    return tmp_path / "pets"


def places(root, rows, head=("file", "attribute")):
    return table(root.parent / "places.csv", head, rows)


def sofa(name):
    return "sofa" if "/0-" in name else "garden"


def every(root, **changes):
    return places(root, [(name, changes.get(name, sofa(name))) for name in NAMES])


def test_pictures_get_the_attributes_of_the_file_in_the_order_of_their_names(pets):
    bundle = load("folder", root=pets, attributes=every(pets))

    assert bundle.card.attributes == ("garden", "sofa")
    for split in (bundle.train, bundle.validation, bundle.tests["test"]):
        assert split.attributes.tolist() == [
            1 if file.name.startswith("0-") else 0 for file in split.images.files
        ]
    said = " ".join(bundle.findings)
    assert "Attributes from the column 'attribute' of places.csv: garden, sofa." in said
    assert "no attribute" not in said.lower()


def test_a_known_dataset_is_no_longer_said_to_have_none(tmp_path):
    root = cats_dogs(tmp_path / "pets")
    rows = [(path.name, f"room {ord(path.stem[-1]) % 2}") for path in root.rglob("*.jpg")]
    places = table(tmp_path / "places.csv", ("file", "attribute"), rows)

    plain = load("cats-vs-dogs", root=root)
    bundle = load("cats-vs-dogs", root=root, attributes=places)

    assert NO_ATTRIBUTE in plain.findings
    assert NO_ATTRIBUTE not in bundle.findings
    assert bundle.card.attributes == ("room 0", "room 1")


@pytest.mark.parametrize(
    ("head", "swapped"),
    [(("Image ID", "Place"), False), (("where", "what"), False), (("background", "path"), True)],
)
def test_columns_are_found_by_name_and_are_else_the_first_two(pets, head, swapped):
    rows = [(sofa(name), name) if swapped else (name, sofa(name)) for name in NAMES]

    bundle = load("folder", root=pets, attributes=places(pets, rows, head))

    assert bundle.card.attributes == ("garden", "sofa")


def test_a_files_own_name_is_enough_where_no_other_has_it(pets):
    rows = [(name.rpartition("/")[2], sofa(name)) for name in NAMES]

    assert load("folder", root=pets, attributes=places(pets, rows)).card.attributes


def test_a_name_that_fits_two_pictures_is_refused(pets):
    (pets / NAMES[2]).rename(pets / "train" / "dog" / "0-cat-train.png")
    rows = [(name.rpartition("/")[2], sofa(name)) for name in NAMES if name != NAMES[2]]

    with pytest.raises(DataError, match=r"more than one picture: 0-cat-train\.png") as raised:
        load("folder", root=pets, attributes=places(pets, rows))

    assert raised.value.remedy == "Write the folder before the name."


def test_of_two_names_that_fit_a_picture_the_longer_counts(pets):
    twin = pets / "train" / "dog" / "0-cat-train.png"
    (pets / NAMES[2]).rename(twin)
    rows = [(name.rpartition("/")[2], sofa(name)) for name in NAMES if name != NAMES[2]]

    bundle = load(
        "folder", root=pets, attributes=places(pets, [*rows, ("dog/" + twin.name, "bed")])
    )

    called = [bundle.card.attributes[number] for number in bundle.train.attributes]
    of = dict(zip(bundle.train.images.files, called, strict=True))
    assert (of[twin], of[pets / NAMES[0]]) == ("bed", "sofa")


def test_pictures_that_are_left_out_are_counted_and_named(pets):
    with pytest.raises(DataError, match="no attribute to 2 of 12 pictures: ") as raised:
        load("folder", root=pets, attributes=places(pets, [(n, sofa(n)) for n in NAMES[2:]]))

    assert "cat/0-cat-train.png, cat/1-cat-train.png" in raised.value.problem


def test_rows_of_no_picture_and_rows_that_come_twice_are_said_and_do_no_harm(pets):
    rows = [(name, sofa(name)) for name in [*NAMES, NAMES[0]]] + [("x/none.png", "sofa")]

    bundle = load("folder", root=pets, attributes=places(pets, rows))

    said = " ".join(bundle.findings)
    assert "also names 1 file that the dataset has no picture of: x/none.png." in said
    assert f"names 1 file more than once, with the same attribute: {NAMES[0]}." in said


def test_two_attributes_for_one_picture_are_refused(pets):
    rows = [(name, sofa(name)) for name in NAMES] + [(NAMES[0], "garden")]

    with pytest.raises(DataError, match=f"gives 1 file two attributes: {NAMES[0]}"):
        load("folder", root=pets, attributes=places(pets, rows))


def test_a_file_about_other_pictures_is_refused_with_a_name_that_would_do(pets):
    with pytest.raises(DataError, match="names 1 file, and no picture") as raised:
        load("folder", root=pets, attributes=places(pets, [("other.png", "sofa")]))

    assert "0-cat-train.png" in raised.value.remedy


@pytest.mark.parametrize(
    ("rows", "head", "problem"),
    [
        ([(name, "sofa") for name in NAMES], ("file", "attribute"), "Every picture has the attr"),
        ([(name,) for name in NAMES], ("file",), "has one column"),
        ([("../secret.png", "sofa")], ("file", "attribute"), "leads out of"),
    ],
)
def test_a_file_that_gives_no_groups_is_refused(pets, rows, head, problem):
    with pytest.raises(DataError, match=problem):
        load("folder", root=pets, attributes=places(pets, rows, head))


def test_other_attributes_are_another_dataset_to_a_run(pets):
    one = fingerprint(load("folder", root=pets, attributes=every(pets)))
    again = fingerprint(load("folder", root=pets, attributes=every(pets)))
    other = fingerprint(load("folder", root=pets, attributes=every(pets, **{NAMES[0]: "garden"})))

    assert one == again != other
    assert fingerprint(load("folder", root=pets)) not in (one, other)


def test_a_dataset_that_has_attributes_gets_the_others_and_their_clue_is_forgotten(tmp_path):
    root = waterbirds(tmp_path / "birds")
    known = load("waterbirds", root=root)
    parts = (known.train, known.validation, *known.tests.values())
    files = [file for part in parts for file in part.images.files]
    rows = [("/".join(file.parts[-2:]), "ab"[n % 2]) for n, file in enumerate(files)]
    boxes = boxed(known.train.images, {})

    bundle = with_attributes(
        replace(known, train=replace(known.train, clue=boxes, thing=boxes)), places(root, rows)
    )

    assert bundle.card.attributes == ("a", "b")
    assert (bundle.train.clue, bundle.train.thing) == (None, boxes)
    assert "in place of land, water: a, b." in " ".join(bundle.findings)


def test_pictures_that_are_no_files_are_refused_in_words(tmp_path):
    path = table(tmp_path / "a.csv", ("file", "attribute"), [("1.png", "x")])

    with pytest.raises(DataError, match="the pictures of 'biased-mnist-5k' are in no files"):
        load("biased-mnist-5k", attributes=path)


def test_classes_can_be_called_otherwise_everywhere_their_names_are_read(pets):
    bundle = load("folder", root=pets, class_names=("Katze", "Hund"))

    assert bundle.card.classes == ("Katze", "Hund")
    assert "Called Katze, Hund here: cat, dog." in bundle.findings
    with pytest.raises(DataError, match="1 class name is given, and the pictures have 2 classes"):
        load("folder", root=pets, class_names=("Katze",))


def test_the_same_names_are_not_told_of(pets):
    plain = load("folder", root=pets)

    named = load("folder", root=pets, class_names=plain.card.classes)

    assert replace(named.card) == plain.card
    assert named.findings == plain.findings
