"""What stands round every page: the tab's title, light or dark, focus, Streamlit's own buttons."""

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import ROOT, open_context, serving, wait_for_script, watching

DEMO = "biased-mnist-5k"

UNDER_THE_HEADER = """() => {
  const under = new Set();
  for (const part of document.querySelectorAll('header button, [data-testid=stStatusWidget]')) {
    const { left, right, top, bottom } = part.getBoundingClientRect();
    for (const x of [left + 1, (left + right) / 2, right - 1])
      for (const y of [top + 1, (top + bottom) / 2, bottom - 1])
        for (const found of document.elementsFromPoint(x, y))
          if (found.closest('[data-testid=stMainBlockContainer] [data-testid=stVerticalBlock] *'))
            { under.add(found.closest('a, .st-key-stepper')?.className ?? found.outerHTML); break; }
  }
  return [...under];
}"""
"""The topmost part of the page's content below each of Streamlit's own buttons."""

RUNS = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  const look = () => { window.ran ||= app.dataset.testScriptState === "running"; };
  new MutationObserver(look).observe(app, { attributes: true });
}"""
"""Notes that the script has run, however shortly."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as running:
        yield running


def test_dark_chosen_on_one_page_holds_on_every_page_after_a_reload(server, browser):
    context = open_context(browser, color_scheme="light")
    with watching(context) as watched:
        page = watched.page
        page.goto(f"{server.url}/load?dataset={DEMO}")
        wait_for_script(page)
        page.get_by_test_id("stMainMenu").get_by_role("button").click()
        page.get_by_role("menuitemradio", name="Dark").click()
        expect(page.locator(".stApp")).to_have_css("color-scheme", "dark")

        for name in ("", "load", "mask", "finetune", "compare", "abstain", "picture", "runs"):
            page.goto(f"{server.url}/{name}")
            wait_for_script(page)
            expect(page.locator(".stApp"), name).to_have_css("color-scheme", "dark")
    context.close()


def test_every_page_has_a_title_of_its_own(server, watched):
    titles = {
        "": "MaskTune Studio",
        "load": "Load · Biased MNIST · MaskTune Studio",  # the demo, until told
        "mask": "Mask · MaskTune Studio",
        "finetune": "Finetune · MaskTune Studio",
        "compare": "Compare · MaskTune Studio",
        "abstain": "Abstain · MaskTune Studio",
        "picture": "One picture · MaskTune Studio",
        "runs": "Runs · MaskTune Studio",
    }
    for name, title in titles.items():
        watched.page.goto(f"{server.url}/{name}")
        expect(watched.page).to_have_title(title)


def test_focus_on_a_link_of_the_navigation_is_an_outline(server, watched):
    page = watched.page
    page.goto(f"{server.url}/compare")
    wait_for_script(page)
    link = page.get_by_role("link", name="Mask").last

    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")

    expect(link).to_be_focused()
    expect(link).to_have_css("outline-style", "solid")
    expect(link).to_have_css("outline-width", "3px")


@pytest.mark.parametrize("width", [390, 1440, 1920])
def test_streamlits_buttons_lie_over_nothing_on_a_scrolled_page(width, server, browser):
    context = open_context(browser, viewport={"width": width, "height": 700})
    with watching(context) as watched:
        page = watched.page
        page.goto(f"{server.url}/load?dataset={DEMO}")
        wait_for_script(page)
        # A click that makes the server work shows the sign of it.
        page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 500)")
        page.evaluate(RUNS)
        page.get_by_role("link", name="Mask").last.evaluate("link => link.click()")
        page.wait_for_function("window.ran")
        page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 500)")
        page.wait_for_timeout(700)  # the sign comes half a second after the click

        found = page.evaluate(UNDER_THE_HEADER)

        assert all("st-key-stepper" in part for part in found), found
    context.close()


def test_more_settings_stay_open_when_what_is_hidden_changes(server, watched):
    page = watched.page
    page.goto(f"{server.url}/finetune?dataset={DEMO}")
    wait_for_script(page)
    page.get_by_text("More settings").click()
    expect(page.get_by_text("How it learns")).to_be_visible()

    page.get_by_text("Other", exact=True).click()

    expect(page.get_by_text("Rule", exact=True)).to_be_visible()
    expect(page.get_by_text("How it learns")).to_be_visible()


WRITES = """async (source) => {
  const app = document.createElement("div")
  app.className = "stApp"
  document.body.append(app)
  const { default: write } = await import(`data:text/javascript,${encodeURIComponent(source)}`)
  const written = []
  const tell = (query, turn, pages) => {
    write({ data: { query, turn, pages }, setTriggerValue: () => {} })
    written.push(window.location.search)
  }
  tell("k=1", [1, 0], ["mask"])
  tell("k=2", [1, 1])
  tell("k=1", [1, 0], ["mask"])
  tell("k=3", [2, 0], ["mask"])
  tell("k=2", [1, 1])
  tell("k=1", [1, 2])
  tell("k=4", [2, 1])
  return written
}"""
"""Tells the address what runs of a page and of its fragments know, some late and some again."""


def test_what_is_drawn_late_or_again_writes_no_older_address(server, watched):
    watched.page.goto(f"{server.url}/_stcore/health")

    written = watched.page.evaluate(WRITES, (ROOT / "app" / "shared" / "tab.js").read_text("utf-8"))

    assert written == ["?k=1", "?k=2", "?k=2", "?k=3", "?k=3", "?k=3", "?k=4"]
