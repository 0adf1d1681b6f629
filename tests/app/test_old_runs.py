"""Runs of older versions open on every page; what no version wrote takes no page down."""

import pytest

from tests import old_runs

PAGES = ("start", "load", "mask", "finetune", "compare", "abstain")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    return old_runs.put_home(tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("run", [old_runs.DEMO, old_runs.OWN])
def test_an_old_run_opens_on_every_page(runs, run, page, open_page):
    at = open_page(page, run=run)

    assert not at.exception
    assert not at.error
    if page in ("compare", "abstain"):
        assert "Test set" in [control.label for control in at.get("button_group")]
