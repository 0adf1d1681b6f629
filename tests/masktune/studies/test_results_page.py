"""Numbers in words about results come from the tables."""

import pytest

from masktune.errors import DataError
from masktune.studies.results_page import TOURNAMENTS, collect, filled, measured, page
from masktune.studies.tournament.table import kept
from tests.masktune.studies.test_tables import ROOT, a_table

TABLES = ROOT / "docs" / "results"

KNOWN = {
    ("mnist-square-short", "MaskTune", "accuracy", "biased"): [0.98312],
    ("mnist-square-short", "ERM", "accuracy", "biased"): [0.75, 0.8],
}


def test_a_number_is_its_mean_in_percent_also_across_lines():
    words = """It reaches {{ mean("mnist-square-short", "MaskTune", "accuracy", "biased") }}%, from
{{ mean("mnist-square-short",
   "ERM", "accuracy", "biased") }}%.
"""

    assert filled(words, KNOWN) == "It reaches 98.3%, from\n77.5%.\n"


def test_every_seed_can_be_told_in_the_order_of_the_seeds():
    words = '{{ each("mnist-square-short", "ERM", "accuracy", "biased") }}%'

    assert filled(words, KNOWN) == "75.0 / 80.0%"


@pytest.mark.parametrize(
    "names",
    [
        '"mnist-square-short", "MaskTune", "accuracy", "original"',
        '"mnist-square-short", "MaskTune", "accuracy"',
        '"MaskTune"',
    ],
)
def test_a_number_that_no_table_has_is_refused_with_the_nearest(names):
    with pytest.raises(DataError, match=r"which no table has.*mnist-square-short \| MaskTune"):
        filled(f"So {{{{ mean({names}) }}}}.", KNOWN)


@pytest.mark.parametrize("words", ["{{ men() }}", "{{ mean( }}", "{{ MaskTune }}"])
def test_words_that_are_no_template_are_refused_with_how_to_write_them(words):
    with pytest.raises(DataError, match=r"cannot be read.*mean\(table, model, measure, test\)"):
        filled(words, KNOWN)


def test_what_no_seed_measured_cannot_be_spoken_of():
    (row,) = a_table()["rows"]

    assert measured([a_table(rows=[{**row, "values": [], "mean": None}])]) == {}


def test_the_page_takes_the_numbers_of_its_notes_from_its_tables():
    number = 'mean("mnist-square-short", "MaskTune", "accuracy", "biased")'
    notes = f"## Read this\n\nMaskTune: {{{{ {number} }}}}%.\n"

    text = page([a_table()], notes=notes)

    assert "MaskTune: 97.5%." in text
    with pytest.raises(DataError, match="no table has"):
        page([], notes=notes)


def test_the_readme_shows_what_the_tables_give():
    template = (TABLES / "readme.md").read_text("utf-8")

    assert filled(template, measured(collect(TABLES), collect(TABLES / TOURNAMENTS))) in (
        ROOT / "README.md"
    ).read_text("utf-8")


def test_the_page_has_tournaments_and_their_numbers_but_no_path_of_a_machine():
    score = {"values": [0.5, 0.7], "mean": 0.6, "std": 0.14, "n": 2, "interval": [0.1, 1.0]}
    told = {
        "given": {
            "dataset": "folder",
            "root": "/home/somebody's/birds",
            "weights": "timm/lite0.in1k",
            "attributes": "/home/somebody's/birds/places.csv",
        },
        "methods": ["jtt"],
        "worst_is": {"test": "group"},
        "rule": "By validation.",
        "command": "python -m masktune tournament --root '/home/somebody'\"'\"'s/birds' "
        "--weights timm/lite0.in1k --attributes '/home/somebody'\"'\"'s/birds/places.csv' "
        "--out elsewhere/of/mine",
        "rows": [
            {
                "method": "jtt",
                "title": "JTT",
                "settings": "",
                "supervision": [],
                "test": {"test": {"worst_group": score, "average": score}},
                "cpu_seconds": 12.0,
            }
        ],
    }
    number = 'mean("tournament birds", "JTT", "worst-group accuracy", "test")'
    error = {**score, "target": 0.9, "coverage": 0.9, "values": [0.125], "n": 1}
    entry = {"score": "after", "test": {"test": {"error": [error], "aurc": score}}}
    told["rows"][0]["abstaining"] = [entry]
    wrong = (
        'mean("tournament birds", "JTT by softmax response", "selective error at 90% coverage", '
        '"test")'
    )

    notes = f"## Read\n\n{{{{ {number} }}}}% and {{{{ {wrong} }}}}%"

    text = page([], notes=notes, tournaments=[kept(told, "birds")])

    assert "60.0% and 12.5%" in text
    assert "### When it may abstain, test set “test”" in text
    assert "## Methods side by side: birds" in text
    assert (
        "`python -m masktune tournament --root birds --weights timm/lite0.in1k "
        "--attributes places.csv --out DIR`" in text
    )
    assert "somebody" not in text
    assert "mine" not in text
