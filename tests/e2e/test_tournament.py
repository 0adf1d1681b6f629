"""A tournament as people meet it: real browser, real server, a real process."""

import re

import pytest
from playwright.sync_api import expect

from masktune.runs import trash
from masktune.studies import jobs as studies
from tests.e2e.conftest import serving, wait_for_script, watching

PATIENCE = 240_000
"""Milliseconds that a page may take to show something on a busy machine."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Give an empty $MASKTUNE_HOME, and leave no process behind."""
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    yield tmp_path
    for study in studies.history():
        trash.throw(study.path)


def test_a_tournament_fills_its_table_survives_a_reload_and_ends_with_files(browser, home):
    with (
        serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as server,
        watching(browser) as watched,
    ):
        page = watched.page
        page.set_default_timeout(PATIENCE)
        page.goto(f"{server.url}/finetune?dataset=biased-mnist-5k")
        wait_for_script(page)
        card = page.locator(".st-key-card_tournament")

        for name in ("RandMask", "Group DRO", "JTT", "DFR"):
            card.get_by_role("button", name=f"Remove {name}").click()
            wait_for_script(page)
        card.get_by_role("textbox", name="Thresholds k").fill("1,2")
        card.get_by_role("textbox", name="Thresholds k").press("Enter")
        expect(card.get_by_text("3 runs")).to_be_visible(timeout=PATIENCE)
        card.get_by_role("button", name="Start").click()

        expect(card.get_by_text(re.compile("^Running: "))).to_be_visible(timeout=PATIENCE)
        rows = card.locator(".st-key-tournament_table tbody tr")
        expect(rows).to_have_count(1, timeout=PATIENCE)  # the model before: k is yet to be chosen
        assert [study.state for study in studies.history()] == ["running"]

        page.reload()
        expect(card.get_by_text(re.compile("^Running: [12] of 3 runs"))).to_be_visible(
            timeout=PATIENCE
        )

        expect(card.get_by_text(re.compile("^Done: 3 of 3 runs"))).to_be_visible(timeout=PATIENCE)
        expect(rows).to_have_count(3)
        expect(rows.last).to_contain_text("One more epoch")
        expect(card.get_by_text("Test sets are looked at for what was chosen only")).to_be_visible()
        wait_for_script(page)
        with page.expect_download() as saved:
            card.get_by_role("button", name="CSV", exact=True).click()
        study = studies.history()[0]
        assert saved.value.path().read_bytes() == (study.path / "table.csv").read_bytes()
        expect(card.get_by_role("button", name="Start")).to_be_enabled()
