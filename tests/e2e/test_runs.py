"""Runs as people meet them: a grid is queued, its runs are ticked, and a link shows the same."""

import re

import pytest
from playwright.sync_api import expect

from masktune.runs import jobs, trash
from masktune.studies import jobs as studies
from tests.e2e.conftest import open_context, serving, wait_for_script, watching

PATIENCE = 300_000
"""Milliseconds that six runs may take on a busy machine."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Give an empty $MASKTUNE_HOME, and leave no process behind."""
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path))
    yield tmp_path
    for study in studies.history():
        trash.throw(study.path)


def test_a_grid_is_ticked_compared_and_shown_by_a_link_elsewhere(browser, home):
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as server:
        with watching(browser) as watched:
            page = watched.page
            page.set_default_timeout(PATIENCE)
            page.goto(f"{server.url}/runs?dataset=biased-mnist-5k&epochs=1&model=train")
            wait_for_script(page)
            card = page.locator(".st-key-card_runs_grid")
            expect(card.get_by_text("6 runs")).to_be_visible()
            card.get_by_role("button", name="Queue the grid").click()

            expect(card.get_by_text(re.compile("^(Waiting|Running): "))).to_be_visible()
            card.get_by_role("button", name="Pause").click()
            expect(card.get_by_text(re.compile("^Paused: "))).to_be_visible()
            wait_for_script(page)
            card.get_by_role("button", name="Go on").click()
            done = card.get_by_text(re.compile("^Done: 6 of 6 runs, 3 settings × 2 seeds"))
            expect(done).to_be_visible(timeout=PATIENCE)
            assert len(jobs.every()) == 6

            card.get_by_role("button", name="Tick its runs").click()
            expect(page.get_by_text("6 runs ticked")).to_be_visible()
            curves = page.locator(".st-key-card_runs_curves .js-plotly-plot .scatterlayer .trace")
            expect(curves).to_have_count(6)
            page.get_by_role("radio", name="Training accuracy").click()
            paired = page.locator(".st-key-card_runs_paired tbody tr")
            expect(paired).to_have_count(6)
            seeds = page.locator(".st-key-card_runs_seeds tbody tr")
            expect(seeds).to_have_count(3)
            wait_for_script(page)  # a list that opens meanwhile is closed again
            order = page.get_by_role("combobox", name="Sort by")
            order.click()
            order.fill("Worst group after")  # the list draws only what fits into it
            page.get_by_role("option", name="Worst group after").click()
            page.wait_for_function("location.search.includes('runs_sort')")
            page.wait_for_function("location.search.includes('runs_curve=accuracy')")
            wait_for_script(page)
            rows = page.locator("[class*=st-key-run_row_] .run")
            expect(paired).to_have_count(6)  # both are drawn anew, and may not be there yet
            expect(rows).to_have_count(6)
            link, told, listed = page.url, paired.all_inner_texts(), rows.all_inner_texts()

        other = open_context(browser)
        with watching(other) as watched:
            page = watched.page
            page.set_default_timeout(PATIENCE)
            page.goto(link)
            wait_for_script(page)
            expect(page.get_by_text("6 runs ticked")).to_be_visible()
            paired = page.locator(".st-key-card_runs_paired tbody tr")
            expect(paired).to_have_count(6)
            expect(paired).to_have_text(told, use_inner_text=True)
            rows = page.locator("[class*=st-key-run_row_] .run")
            expect(rows).to_have_text(listed, use_inner_text=True)
            expect(page.get_by_role("radio", name="Training accuracy")).to_be_checked()
        other.close()
