"""Runs of older versions open on every page; what no version wrote takes no page down."""

import shutil

import pytest

from tests import old_runs
from tests.old_runs import FOREIGN, spoil

PAGES = ("start", "load", "mask", "finetune", "compare", "abstain", "picture")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    return old_runs.put_home(tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("run", [old_runs.DEMO, old_runs.OWN])
def test_an_old_run_opens_on_every_page(runs, run, page, open_page, slow_looks):
    at = open_page(page, run=run)

    assert not at.exception
    assert not at.error
    if page in ("compare", "abstain"):
        assert "Evaluate on" in [control.label for control in at.get("button_group")]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("which", ["another tool", "a newer version", "a wrong type"])
def test_a_foreign_result_takes_no_page_down(runs, which, page, open_page):
    spoil(runs / old_runs.OWN, FOREIGN[which])

    at = open_page(page, run=old_runs.OWN)

    assert not at.exception
    if page in ("compare", "abstain"):
        assert len(at.error) == 1
        assert "result\\.json" in at.error[0].value or "result.json" in at.error[0].value


@pytest.mark.parametrize("page", PAGES)
def test_a_run_on_pictures_that_nobody_knows_takes_no_page_down(runs, page, open_page):
    path = shutil.move(runs / old_runs.OWN, runs / "20261102-090000-unicorns-00000003")
    for name in ("config.json", "result.json"):
        text = (path / name).read_text("utf-8")
        (path / name).write_text(text.replace('"dataset": "folder"', '"dataset": "unicorns"'))

    at = open_page(page, run=path.name)

    assert not at.exception
