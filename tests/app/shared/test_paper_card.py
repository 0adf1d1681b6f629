"""The paper's figures on the pages of a run of its recipe."""

import json
import shutil

import pytest


@pytest.fixture
def recipe_run(home, finished_run):
    """Give the id of the finished run, told as if it were the recipe mnist-square."""
    folder = home / "runs" / finished_run.name
    shutil.copytree(finished_run, folder)
    for name in ("config.json", "result.json"):
        stored = json.loads((folder / name).read_text())
        (stored if name == "config.json" else stored["config"])["recipe"] = "mnist-square"
        (folder / name).write_text(json.dumps(stored))
    return folder.name


def shown(at) -> str:
    return " ".join(str(e.value) for e in at.get("html"))


def test_compare_shows_the_papers_accuracies_and_every_departure(recipe_run, open_page):
    at = open_page("compare", run=recipe_run)

    assert not at.exception
    assert "Beside the paper" in [header.value for header in at.header]
    assert "98.3%" in shown(at)  # the paper's 98.26 on biased
    said = " ".join(caption.value for caption in at.caption)
    assert "epochs 12 instead of 100" in said


def test_abstain_shows_nothing_where_the_paper_has_no_coverage(recipe_run, open_page):
    at = open_page("abstain", run=recipe_run)

    assert not at.exception
    assert "Beside the paper" not in [header.value for header in at.header]


def test_a_demo_has_nothing_beside_it(home_with_run, finished_run, open_page):
    at = open_page("compare", run=finished_run.name)

    assert not at.exception
    assert "Beside the paper" not in [header.value for header in at.header]
