"""Numbers of an experiment, and the page of results."""

import json
from pathlib import Path

import pytest

from masktune.reproduction.commands import results_page
from masktune.reproduction.results import markdown, page
from masktune.reproduction.table import Key, interval, reading

ROOT = Path(__file__).resolve().parents[3]

RUN = {
    "test": {
        "biased": {
            "before": {"average": 0.4, "worst_group": 0.3},
            "after": {"average": 0.9, "worst_group": 0.8},
        }
    },
    "selective": {
        "biased": [
            {"score": "joint", "target": 0.9, "coverage": 0.89, "error": 0.05, "gamma": 0.3},
            {"score": "before", "target": 0.9, "coverage": 0.91, "error": 0.07, "gamma": 0.6},
        ]
    },
    "masking": {
        "rounds": [
            {"test": {"biased": {"average": 0.5, "worst_group": 0.1}}},
            {"test": {"biased": {"average": 0.9, "worst_group": 0.8}}},
        ]
    },
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ({"moment": "before", "measure": "average"}, 0.4),
        ({"moment": "after", "measure": "worst_group"}, 0.8),
        ({"moment": "after", "measure": "average", "rounds": 1}, 0.5),
        ({"moment": "after", "measure": "average", "rounds": 3}, None),  # it stopped early
        ({"moment": "joint", "measure": "error", "target": 0.9}, 0.05),
        ({"moment": "before", "measure": "coverage", "target": 0.9}, 0.91),
        ({"moment": "joint", "measure": "error", "target": 0.5}, None),
    ],
)
def test_a_number_is_read_where_the_run_has_it(key, value):
    assert reading(RUN, Key(arm="MaskTune", test="biased", **key)) == value


def test_the_interval_is_students_and_needs_two_values():
    # Mean 0.92, standard error 0.02 / sqrt(3), t(0.975, 2) = 4.303: 0.92 +- 0.0497.
    assert interval([0.90, 0.92, 0.94]) == pytest.approx([0.8703, 0.9697], abs=1e-4)
    assert interval([0.9]) is None
    assert interval([0.5, 1.0])[1] == 1.0  # no accuracy is above 1


def a_table(**changes):
    row = {
        "arm": "MaskTune", "test": "biased", "moment": "after", "measure": "average",
        "target": None, "rounds": None, "title": "accuracy", "values": [0.98, 0.97], "n": 2,
        "mean": 0.975, "std": 0.00707, "interval": [0.9115, 1.0],
        "paper": {"value": 0.9826, "std": 0.0027, "source": "appendix", "tolerance": 0.02,
                  "within": True},
    }  # fmt: skip
    values = {
        "recipe": "mnist-square", "scale": "short", "dataset": "biased-mnist", "arch": "small-cnn",
        "epochs": 8, "frame": None, "model": None, "seeds": [0, 1], "rows": [row],
        "findings": [], "seconds": 600.0, "device": "cpu", "versions": {"torch": "2"},
        "command": "python -m masktune reproduce mnist-square --scale short",
    }  # fmt: skip
    return {**values, **changes}


def test_a_row_shows_ours_with_spread_interval_and_n_beside_the_papers():
    text = markdown(a_table())

    assert (
        "| MaskTune | biased | after | accuracy | **97.5** ± 0.7 [91.1, 100.0] | 2 | "
        "98.26 ± 0.27 = (appendix; tolerance 2) |"
    ) in text
    assert "10 min of work on cpu" in text


def test_a_number_off_the_papers_is_marked():
    table = a_table()
    table["rows"][0]["paper"]["within"] = False

    assert "98.26 ± 0.27 ≠" in markdown(table)


def test_what_was_not_run_is_listed_with_its_command():
    text = page([a_table()])

    assert "## mnist-square, short" in text
    assert "`python -m masktune reproduce celeba --scale paper --root DIR`" in text
    assert "`python -m masktune reproduce mnist-square --scale paper --root DIR`" in text


def test_the_page_of_results_is_what_the_tables_give():
    page_file, tables = ROOT / "docs" / "results.md", ROOT / "docs" / "results"
    if not page_file.is_file():
        pytest.skip("docs/results.md has not been written yet")

    assert list(tables.glob("*.json"))
    assert page_file.read_text("utf-8") == results_page(tables)
    assert all("/" not in (json.loads(p.read_text())["model"] or "") for p in tables.glob("*.json"))
