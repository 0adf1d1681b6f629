"""The demo from the first screen to held-back answers, by clicks only, as a visitor would."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import open_context, serving, wait_for_script, watching

MINUTES = 60_000.0


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as running:
        yield running


def no_problem(page: Page) -> None:
    """Fail if a page shows an error or a traceback."""
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stAlertContentError")).to_have_count(0)


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=False).first


@pytest.mark.slow
def test_from_the_first_screen_to_a_finished_finetune_and_what_came_of_it(server, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(server.url)
        expect(page.get_by_role("heading", level=1)).to_contain_text("See what your model leans on")
        button(page, "Open the demo").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Mask")
        expect(page.get_by_role("slider").first).to_be_visible()
        expect(page.get_by_role("heading", name="All 3,500 training pictures")).to_be_visible()
        wait_for_script(page)
        no_problem(page)
        button(page, "Finetune with this k").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Finetune")
        button(page, "Finetune for one epoch").click()
        go_on = button(page, "Compare before and after")
        expect(go_on).to_be_visible(timeout=5 * MINUTES)
        wait_for_script(page)
        no_problem(page)
        go_on.click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
        expect(page.get_by_text("Worst group").first).to_be_visible()
        wait_for_script(page)
        no_problem(page)
        button(page, "Run the controls").click()
        expect(page.get_by_text("The controls are under way")).to_be_visible()
        expect(page.get_by_text("This run brings the worst")).to_be_visible(timeout=5 * MINUTES)
        wait_for_script(page)
        no_problem(page)
        page.get_by_role("link", name="Abstain").first.click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Abstain")
        expect(page.get_by_text("Target coverage").first).to_be_visible()
        wait_for_script(page)
        no_problem(page)
        page.wait_for_url("**run=**")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "load", "mask", "finetune", "compare", "abstain", "picture"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_by_its_address_and_loads_from_no_other_host(
    name, scheme, server, browser
):
    context = open_context(browser, color_scheme=scheme)
    with watching(context) as watched:  # fails if anything is asked of another host
        watched.page.goto(f"{server.url}/{name}")
        wait_for_script(watched.page)
        expect(watched.page.get_by_role("heading", level=1)).to_have_count(1)
        no_problem(watched.page)
    context.close()
