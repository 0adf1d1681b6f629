import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from masktune.data import assemble as assembling
from masktune.data.card import UNKNOWN, DatasetCard
from masktune.data.frame import Frame
from masktune.data.listing import Listing, Row
from masktune.errors import DataError

CARD = DatasetCard(
    key="toy",
    title="Toy",
    summary="",
    classes=("cat", "dog"),
    attributes=("sofa", "grass"),
    size=(224, 224),
    tests=(),
    recipe="own",
    bundled=False,
    layout="pictures",
    source="",
    licence="",
)
FRAME = Frame(resize=(4, 4))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))


@pytest.fixture
def pictures(tmp_path):
    """Write ten pictures: 0.png .. 9.png, of brightness 0, 10, .. 90."""
    root = tmp_path / "pictures"
    root.mkdir()
    for number in range(10):
        Image.new("L", (8, 8), 10 * number).save(root / f"{number}.png")
    return root


def table(root, *, splits=None, labels=None, attributes=None, count=10):
    labels = labels or [number % 2 for number in range(count)]
    paths = [root / f"{number}.png" for number in range(count)]
    columns = (labels, splits or ["train"] * count, attributes or [UNKNOWN] * count)
    return [Row(*values) for values in zip(paths, *columns, strict=True)]


def assemble(card, listed, *, root, frame, seed, findings=()):
    listing = Listing(rows=tuple(listed), findings=tuple(findings), frame=frame)
    return assembling.assemble(card, listing, root=root, seed=seed)


def shades(split):
    return sorted(int(split[position].image[0, 0, 0]) for position in range(len(split)))


def test_given_parts_are_taken_as_they_are(pictures):
    splits = ["train"] * 4 + ["validation"] * 2 + ["easy"] * 2 + ["hard"] * 2

    bundle = assemble(
        CARD,
        table(pictures, splits=splits, attributes=[0, 1] * 5),
        root=pictures,
        frame=FRAME,
        seed=0,
        findings=["Read as: a test."],
    )

    assert shades(bundle.train) == [0, 10, 20, 30]
    assert shades(bundle.validation) == [40, 50]
    assert {name: shades(part) for name, part in bundle.tests.items()} == {
        "easy": [60, 70],
        "hard": [80, 90],
    }
    assert bundle.card.tests == ("easy", "hard")
    assert bundle.card.attributes == ("sofa", "grass")
    assert bundle.card.size == (4, 4)
    assert bundle.train.labels.tolist() == [0, 1, 0, 1]
    assert bundle.train.attributes.tolist() == [0, 1, 0, 1]
    assert bundle.findings == ("Read as: a test.",)
    assert bundle.skipped == ()


def test_missing_parts_are_a_fifth_of_each_class_and_said_to_be_made(pictures):
    # Five of each class: one tests, one validates, three train.
    bundle = assemble(CARD, table(pictures), root=pictures, frame=FRAME, seed=0)

    parts = (bundle.train, bundle.validation, bundle.tests["test"])
    assert [part.labels.bincount().tolist() for part in parts] == [[3, 3], [1, 1], [1, 1]]
    assert sorted(shade for part in parts for shade in shades(part)) == list(range(0, 100, 10))
    assert bundle.card.attributes == ()
    assert [finding.split(",")[0] for finding in bundle.findings] == [
        "There is no test part",
        "There is no validation part",
    ]
    assert "seed 0" in bundle.findings[0]


def test_the_same_seed_makes_the_same_parts_and_another_makes_others(pictures):
    def held(seed):
        bundle = assemble(CARD, table(pictures), root=pictures, frame=FRAME, seed=seed)
        return shades(bundle.tests["test"]), shades(bundle.validation)

    assert held(0) == held(0)
    assert len({str(held(seed)) for seed in range(6)}) > 1


def test_a_part_that_is_given_is_not_made(pictures):
    splits = ["train"] * 8 + ["test"] * 2

    bundle = assemble(CARD, table(pictures, splits=splits), root=pictures, frame=FRAME, seed=0)

    assert shades(bundle.tests["test"]) == [80, 90]
    assert len(bundle.validation) == 2
    assert len(bundle.findings) == 1


@settings(max_examples=40, deadline=None)
@given(counts=st.lists(st.integers(1, 30), min_size=2, max_size=4), seed=st.integers(0, 99))
def test_every_class_keeps_training_pictures_and_gives_a_fifth(counts, seed, tmp_path_factory):
    labels = [label for label, count in enumerate(counts) for _ in range(count)]
    assume(max(counts) >= 3)
    whole = table(tmp_path_factory.getbasetemp(), labels=labels, count=len(labels))

    made, _ = assembling._with_every_part(whole, seed=seed)

    for label, count in enumerate(counts):
        splits = [s for s, own in zip([r.split for r in made], labels, strict=True) if own == label]
        fifth = max(1, round(count / 5))
        assert splits.count("train") >= 1
        assert splits.count("test") == min(fifth, count - 1)
        assert splits.count("validation") == min(fifth, count - 1 - splits.count("test"))


def test_unusable_files_are_left_out_and_named(pictures):
    (pictures / "3.png").write_bytes(b"")

    bundle = assemble(CARD, table(pictures), root=pictures, frame=FRAME, seed=0)

    assert bundle.skipped == (("3.png", "it is empty"),)
    assert bundle.left_out == "1 file left out, unusable: 3.png (it is empty)."
    parts = (bundle.train, bundle.validation, bundle.tests["test"])
    assert sorted(shade for part in parts for shade in shades(part)) == [
        0,
        10,
        20,
        *range(40, 100, 10),
    ]


def test_more_than_half_unusable_is_refused_naming_the_first_few(pictures):
    for number in range(6):
        (pictures / f"{number}.png").unlink()

    with pytest.raises(DataError, match=r"6 of 10 pictures .*; and 3 more\.") as caught:
        assemble(CARD, table(pictures), root=pictures, frame=FRAME, seed=0)

    assert "0.png (it does not exist); 1.png (it does not exist); 2.png" in caught.value.problem
    assert "3.png" not in caught.value.problem


def test_half_unusable_still_works(pictures):
    for number in range(5):
        (pictures / f"{number}.png").unlink()

    bundle = assemble(CARD, table(pictures), root=pictures, frame=FRAME, seed=0)

    assert len(bundle.skipped) == 5


def test_a_class_without_a_usable_picture_is_refused(pictures):
    for number in (1, 3):
        (pictures / f"{number}.png").unlink()
    labels = [0, 1, 0, 1, 0, 0, 0, 0, 0, 0]

    with pytest.raises(DataError, match="None of the 2 pictures of 'dog'"):
        assemble(CARD, table(pictures, labels=labels), root=pictures, frame=FRAME, seed=0)


def test_a_frame_may_be_chosen_by_the_sizes_found(pictures):
    bundle = assemble(
        CARD,
        table(pictures),
        root=pictures,
        frame=lambda sizes: Frame(resize=max(sizes)),
        seed=0,
    )

    assert bundle.card.size == (8, 8)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"splits": ["test"] * 10}, "no training pictures, only test"),
        ({"labels": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}, "no picture of 'dog'"),
    ],
)
def test_parts_and_classes_without_pictures_are_refused(changes, problem, pictures):
    with pytest.raises(DataError, match=problem):
        assemble(CARD, table(pictures, **changes), root=pictures, frame=FRAME, seed=0)


def test_one_picture_a_class_is_too_few(pictures):
    with pytest.raises(
        DataError, match="2 training pictures in 2 classes are too few to set a test part aside"
    ):
        assemble(CARD, table(pictures, count=2), root=pictures, frame=FRAME, seed=0)


def test_no_pictures_at_all_ask_for_the_layout(pictures):
    empty = []

    with pytest.raises(DataError, match="holds no pictures") as caught:
        assemble(CARD, empty, root=pictures, frame=FRAME, seed=0)

    assert caught.value.remedy == "Give the folder that holds: pictures."
