"""What holds for every named dataset: a new one without a layout here fails."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from masktune.data.images import FileImages
from masktune.datasets.catalogue import CATALOGUE, load
from masktune.errors import DataError
from masktune.recipes import RECIPES
from tests import layouts

for _file in sorted(Path(__file__).parent.glob("test_*.py")):  # where new ones register theirs
    if "@layouts.layout(" in _file.read_text("utf-8") and _file.name != Path(__file__).name:
        importlib.import_module(f"tests.masktune.datasets.{_file.stem}")

OWN = "folder"  # a user's own pictures have no layout of their own; test_own.py
NAMED = [key for key, card in CATALOGUE.items() if not card.bundled and key != OWN]


@pytest.fixture(params=NAMED)
def named(request, tmp_path):
    """Give each named dataset's card and the root of a tiny copy."""
    return CATALOGUE[request.param], layouts.LAYOUTS[request.param](tmp_path / "root")


def test_what_the_card_promises_is_there(named):
    card, root = named

    bundle = load(card.key, root=root)

    assert bundle.card.classes == card.classes
    assert set(bundle.tests) <= set(card.tests)
    assert bundle.tests
    assert bundle.train.images.batch([0]).shape == (1, 3, *card.size)
    assert len(bundle.card.attributes) == int(bundle.train.attributes.max()) + 1
    assert isinstance(bundle.train.images, FileImages) is card.in_files


def test_no_file_of_the_user_is_moved_or_changed(named):
    card, root = named
    before = {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in root.rglob("*")}

    load(card.key, root=root)

    after = {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in root.rglob("*")}
    assert after == before


def test_the_same_seed_gives_the_same_splits(named):
    card, root = named

    first, again = (load(card.key, root=root, seed=7) for _ in range(2))

    assert first.train.labels.tolist() == again.train.labels.tolist()
    assert first.validation.labels.tolist() == again.validation.labels.tolist()


def test_no_picture_is_in_two_splits(named):
    card, root = named
    bundle = load(card.key, root=root)
    splits = (bundle.train, bundle.validation, *bundle.tests.values())

    if hasattr(bundle.train.images, "paths"):
        paths = [path for split in splits for path in split.images.paths]

        assert len(paths) == len(set(paths))
    else:
        # Arrays hold no names, so the labels are counted: nothing is lost and nothing twice.
        counts = {"svhn": 50, "cifar10": 100, "mnist": 100, "stamped-pets": 48}
        every = len(bundle.train) + len(bundle.validation)

        assert every == counts.get(card.key, 200)


def test_an_empty_folder_is_a_problem_with_a_path_and_a_remedy(named, tmp_path):
    card, _ = named
    (tmp_path / "empty").mkdir()

    with pytest.raises(DataError) as caught:
        load(card.key, root=tmp_path / "empty")

    assert str(tmp_path / "empty") in caught.value.problem
    assert caught.value.remedy


def test_a_file_that_is_no_dataset_is_a_problem_with_a_remedy(named, tmp_path):
    card, _ = named
    (tmp_path / "notes.txt").write_text("hello")

    with pytest.raises(DataError) as caught:
        load(card.key, root=tmp_path / "notes.txt")

    assert caught.value.remedy


def test_the_card_is_complete(named):
    card, _ = named

    assert "ROOT" in card.layout or "root" in card.layout.lower()
    assert card.source
    assert card.licence
    assert card.summary.endswith(".")
    assert card.recipe in RECIPES


LISTED = """
import sys
from masktune.data.frame import frame
from masktune.data.normalisations import normalisation
from masktune.datasets.catalogue import CATALOGUE
assert CATALOGUE["waterbirds"].classes and frame("resize 224") and normalisation("imagenet")
print(*{"torch", "numpy", "cv2", "PIL", "scipy", "torchvision"} & set(sys.modules))
"""


def test_cards_frames_and_normalisations_import_no_pytorch():
    out = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True)

    assert out.stdout.split() == []
