"""Numbers in words about results come from the tables."""

import pytest

from masktune.errors import DataError
from masktune.studies.notes import filled, means_of
from masktune.studies.results_page import collect, means, page
from tests.masktune.studies.test_tables import ROOT, a_table

TABLES = ROOT / "docs" / "results"

MEANS = {
    ("mnist-square-short", "MaskTune", "accuracy", "biased"): 0.98312,
    ("mnist-square-short", "ERM", "accuracy", "biased"): 0.775,
}


def test_a_reference_becomes_the_mean_in_percent_also_across_lines():
    notes = "It reaches {mnist-square-short | MaskTune | accuracy | biased}%, from\n{mnist-square-short\n| ERM | accuracy | biased}%."  # noqa: E501

    assert filled(notes, MEANS) == "It reaches 98.3%, from\n77.5%."


@pytest.mark.parametrize(
    "reference",
    [
        "mnist-square-short | MaskTune | accuracy | original",
        "mnist-square-short | MaskTune | accuracy",
        "MaskTune",
    ],
)
def test_a_reference_to_what_no_table_has_is_refused_with_the_nearest(reference):
    with pytest.raises(DataError, match=r"which no table has.*mnist-square-short \| MaskTune"):
        filled(f"So {{{reference}}}.", MEANS)


def test_what_no_seed_measured_cannot_be_spoken_of():
    row = {"test": "biased", "mean": None}

    assert means_of("mnist-square-short", [("MaskTune", "accuracy", row)]) == {}


def test_the_page_takes_the_numbers_of_its_notes_from_its_tables():
    notes = "## Read this\n\nMaskTune: {mnist-square-short | MaskTune | accuracy | biased}%.\n"

    text = page([a_table()], notes=notes)

    assert "MaskTune: 97.5%." in text
    with pytest.raises(DataError, match="no table has"):
        page([], notes=notes)


def test_the_readme_shows_what_the_tables_give():
    template = (TABLES / "readme.md").read_text("utf-8")

    assert filled(template, means(collect(TABLES))) in (ROOT / "README.md").read_text("utf-8")
