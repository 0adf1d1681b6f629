import pytest

from masktune.datasets.catalogue import CATALOGUE, load
from masktune.datasets.recognise import recognised
from tests import layouts

ROOTED = sorted(key for key, card in CATALOGUE.items() if not card.bundled and key != "folder")
SAME = {
    "imagenet9": ("imagenet9", "imagenet9-1000"),
    "mnist": ("biased-mnist", "two-squares-mnist", "mnist"),
}


@pytest.mark.parametrize("key", ROOTED)
def test_the_folder_of_every_dataset_is_recognised_and_as_no_other(key, tmp_path):
    root = layouts.LAYOUTS[key](tmp_path / "root")
    same = next((keys for keys in SAME.values() if key in keys), (key,))

    assert recognised(root) == same


@pytest.mark.parametrize(
    ("write", "form", "key"),
    [
        (layouts.waterbirds, "metadata_waterbirds.csv", "waterbirds"),
        (layouts.waterbirds, "corrected", "waterbirds"),
        (layouts.celeba, "txt", "celeba"),
        (layouts.celeba, "metadata.csv", "celeba"),
    ],
)
def test_other_releases_are_recognised_too(write, form, key, tmp_path):
    assert recognised(write(tmp_path / "root", form=form)) == (key,)


def test_somebodys_own_pictures_are_nobody_elses(tmp_path):
    layouts.picture(tmp_path / "cat" / "1.png", label=0)
    layouts.table(tmp_path / "metadata.csv", ("file", "label"), [("cat/1.png", "cat")])

    assert recognised(tmp_path) == ()
    assert recognised(tmp_path / "missing") == ()
    assert recognised(tmp_path / "a\x00b") == ()  # no name for a file
    assert recognised(tmp_path / ("a" * 300)) == ()


def test_a_folder_that_is_read_as_ones_own_says_what_else_it_is(tmp_path):
    bundle = load("folder", root=layouts.waterbirds(tmp_path / "root", each=4))

    said = "This looks like Waterbirds: choose the dataset waterbirds for its own parts and groups."
    assert said in bundle.findings
