"""In a real browser: a dot opens its pictures, one of them its page; links show it elsewhere."""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, TimeoutError, expect

from masktune.pipeline import run
from masktune.runs.folder import new_run_path
from tests.app.conftest import DEMO, demo_config
from tests.e2e.conftest import open_context, serving, wait_for_script, watching


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKTUNE_HOME", str(home))
        config = demo_config()
        made = run(config, out=new_run_path(config)).folder
    # One at another k, whose worst group lies far below its average; nobody else looks at it.
    other = shutil.copytree(made, home / "runs" / "20000101-000000-other-k")
    settings = json.loads((other / "config.json").read_text())
    settings["masking"]["k"] = 1.0
    (other / "config.json").write_text(json.dumps(settings))
    result = json.loads((other / "result.json").read_text())
    groups = result["test"]["original"]["after"]["groups"]
    next(group for group in groups if group["count"])["accuracy"] = 0.1
    (other / "result.json").write_text(json.dumps(result))
    return home


@pytest.fixture(scope="module")
def server(home):
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as running:
        yield running


@pytest.fixture
def compare(home, server) -> str:
    """Give the address of Compare with the finished run."""
    name = max(path.name for path in (home / "runs").iterdir())
    return f"{server.url}/compare?dataset={DEMO}&run={name}&test=original"


def drawer(page: Page):
    return page.get_by_role("dialog")


def opened(page: Page, title: str) -> int:
    """Wait for the drawer of a title; return how many pictures it says to hold."""
    heading = drawer(page).get_by_role("heading", name=title).first
    expect(heading).to_be_visible()
    expect(drawer(page).locator("a.picture").first).to_be_visible()
    wait_for_script(page)
    return int(re.search(r": ([\d,]+) pictures?$", heading.inner_text())[1].replace(",", ""))


def click_where(page: Page, chart: str, where: Callable[[], tuple[float, float]]) -> None:
    """Click a place of a chart once Plotly knows it; a chart that is drawn anew forgets it."""
    hover = page.locator(f".st-key-chart_{chart} .hoverlayer .hovertext").first
    for _ in range(30):
        x, y = where()
        page.mouse.move(x - 2, y)
        page.mouse.move(x, y)
        with suppress(TimeoutError):
            hover.wait_for(timeout=2000)
            page.mouse.click(x, y)
            return
    raise AssertionError(f"Plotly knows nothing of what is pointed at in the chart {chart}.")


def middle(mark: Locator) -> tuple[float, float]:
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def click_dot(page: Page, *, row: int) -> None:
    """Click the solid dot of a group."""
    dots = page.locator(".st-key-chart_groups .scatterlayer .trace").last.locator("path.point")
    click_where(page, "groups", lambda: middle(dots.nth(row)))


def test_a_dot_of_the_demo_opens_its_pictures_one_of_them_its_page_and_back_goes_back(
    compare, context
):
    with watching(context) as watched:
        page = watched.page
        page.goto(compare)
        expect(page.get_by_text("Accuracy by group")).to_be_visible()
        wait_for_script(page)
        before = page.evaluate("history.length")

        click_dot(page, row=1)
        said = page.locator(".st-key-chart_groups [aria-label]").first.get_attribute("aria-label")
        number = int(re.search(r"5–9, no square after: .*?n = ([\d,]+)", said)[1])
        assert opened(page, "5–9, no square") == number
        page.wait_for_url("**shown=group%3Aoriginal%3A2**")
        assert page.evaluate("history.length") == before + 1
        page.go_back()
        expect(drawer(page)).to_have_count(0)
        page.wait_for_url(lambda url: "shown" not in url)
        wait_for_script(page)

        click_dot(page, row=1)  # the same dot again
        opened(page, "5–9, no square")
        drawer(page).locator("a.picture").nth(3).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("One picture")
        page.wait_for_url(re.compile(r"/picture\?.*picture=original%2F\d+$"))
        wait_for_script(page)
        page.go_back()
        opened(page, "5–9, no square")
        page.keyboard.press("Escape")
        expect(drawer(page)).to_have_count(0)
        page.wait_for_url(lambda url: "shown" not in url)


LATE = """{
  const back = window.history.back.bind(window.history);
  window.history.back = () => setTimeout(back, 1500);
}"""
"""Lets the browser go back as late as a busy one does, while the page runs on."""


def test_closing_the_drawer_takes_one_entry_from_the_history_however_often_compare_runs(
    compare, server, context
):
    for by_key in (False, True):
        with watching(context) as watched:
            page = watched.page
            page.add_init_script(LATE)
            page.goto(f"{server.url}/runs")  # what lies before the page in the tab
            page.goto(compare.replace("test=original", "test=biased"))
            number = page.locator("a.mark").first
            expect(number).to_be_visible()
            wait_for_script(page)

            number.click()
            opened(page, "pictures")
            if by_key:
                page.keyboard.press("Escape")
            else:
                drawer(page).get_by_role("button", name="Close").click()
            expect(drawer(page)).to_have_count(0)
            page.wait_for_url(lambda url: "shown" not in url)
            wait_for_script(page)
            assert urlsplit(page.url).path == "/compare"

            page.go_back()
            page.wait_for_url("**/runs**")


def test_from_a_dot_to_one_of_its_pictures_whose_square_is_brushed_over(compare, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(compare.replace("test=original", "test=biased"))
        expect(page.get_by_text("Accuracy by group")).to_be_visible()
        wait_for_script(page)

        click_dot(page, row=1)
        opened(page, "5–9, square")
        drawer(page).locator("a.picture").first.click()
        page.wait_for_url(re.compile(r"/picture\?.*picture=biased%2F\d+$"))
        page.wait_for_selector(".easel.ready")
        answers = page.locator(".answers")
        expect(answers).to_contain_text(re.compile(r"Before: .*After: "))
        wait_for_script(page)
        untouched = answers.inner_text()

        board = page.locator(".board.main canvas").first
        board.scroll_into_view_if_needed()
        box = board.bounding_box()
        corner = box["width"] / 7  # the square lies in the four by four pixels at the top left
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] + corner, box["y"] + corner, steps=8)
        assert answers.inner_text() == untouched  # nothing is asked while the hand paints
        page.mouse.up()

        expect(answers).not_to_have_text(untouched)
        expect(answers).to_contain_text(re.compile(r"Before: .*After: "))


def test_by_keyboard_alone_a_cell_opens_its_pictures_and_a_picture_its_page(compare, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(compare)
        cell = page.locator(".confusion a.mark").nth(1)
        expect(cell).to_be_visible()
        wait_for_script(page)
        number = int(cell.inner_text().replace(",", ""))

        cell.focus()
        page.keyboard.press("Enter")
        assert opened(page, "answered") == number
        drawer(page).get_by_role("combobox", name="Order").press("ArrowDown")
        expect(page.get_by_role("option", name="Surest first")).to_be_visible()
        page.keyboard.press("Enter")
        page.wait_for_url("**shown_order=changed**")
        wait_for_script(page)
        picture = drawer(page).locator("a.picture").first
        picture.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("One picture")


def click_point(page: Page, chart: str, *, line: str, share: float) -> str:
    """Click the point at a share of a line, over its nearest mark; return what Plotly has there."""
    box = page.locator(f".st-key-chart_{chart}")
    expect(box.locator(".scatterlayer .trace").first).to_be_attached()

    def point() -> dict[str, Any]:
        box.scroll_into_view_if_needed()
        return box.evaluate(POINT, [line, share])

    mark = point()["mark"]
    click_where(page, chart, lambda: itemgetter("x", "y")(point()))
    return mark


POINT = """(box, [line, share]) => {
  const chart = box.querySelector(".js-plotly-plot");
  const { xaxis, yaxis } = chart._fullLayout;
  const trace = chart._fullData.findIndex(({ name }) => name.startsWith(line));
  const points = chart.calcdata[trace];
  const at = Math.round(share * (points.length - 1));
  const { left, top } = chart.getBoundingClientRect();
  return {
    x: left + xaxis._offset + xaxis.c2p(points[at].x),
    y: top + yaxis._offset + yaxis.c2p(points[at].y),
    mark: chart._fullData[trace].customdata[at],
  };
}"""
"""Where on the screen a point of a line lies."""


def test_a_point_of_the_risk_coverage_curve_and_a_decile_open_their_pictures(compare, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(compare.replace("/compare?", "/abstain?"))
        expect(page.get_by_text("Wrong answers by confidence")).to_be_visible()
        wait_for_script(page)

        click_point(page, "abstain_curves", line="joint", share=0.5)
        number = opened(page, "Answered by the joint score")
        page.wait_for_url(f"**shown=answered%3Aoriginal%3Ajoint%3A{number}**")
        page.keyboard.press("Escape")
        expect(drawer(page)).to_have_count(0)
        wait_for_script(page)

        bar = page.locator(".st-key-chart_abstain_deciles .barlayer .point path").first
        click_where(page, "abstain_deciles", lambda: middle(bar))
        assert opened(page, "Decile 1 of 10 by the joint score, the least sure") == 100


def test_a_point_against_k_opens_what_that_run_says_of_its_worst_group(compare, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(compare)
        expect(page.locator(".st-key-chart_sweep .js-plotly-plot")).to_be_visible()
        wait_for_script(page)

        mark = click_point(page, "sweep", line="worst group after", share=0.0)

        assert mark.endswith(":20000101-000000-other-k")
        said = page.locator(".st-key-chart_sweep [aria-label]").first.get_attribute("aria-label")
        number = int(re.search(r"k = 1: worst group .*?, n = ([\d,]+)\.", said)[1])
        assert opened(page, "MaskTune") == number
        page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("shown") == [mark])


def test_a_clue_opens_its_pictures_and_a_point_against_k_sets_the_threshold(server, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(f"{server.url}/mask?dataset={DEMO}")
        clue = page.locator(".st-key-card_clues a.mark").first
        expect(clue).to_be_visible()
        wait_for_script(page)
        number = int(clue.inner_text().split()[0].replace(",", ""))

        clue.click()
        assert opened(page, "Clue 1") == number
        page.keyboard.press("Escape")
        expect(drawer(page)).to_have_count(0)
        wait_for_script(page)

        for share, k in ((1 / 3, "1"), (0.0, "0")):
            click_point(page, "area", line="", share=share)
            expect(page.get_by_role("slider", name="Threshold")).to_have_value(k)
            wait_for_script(page)
        page.wait_for_url("**k=0.0**")


def test_a_picture_of_a_sheet_opens_its_page_by_mouse_and_by_keyboard(compare, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(compare)
        sheet = page.locator(".st-key-card_compare_flips a.picture")
        expect(sheet.first).to_be_visible()
        wait_for_script(page)

        sheet.nth(1).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("One picture")
        page.wait_for_url(re.compile(r"/picture\?.*picture=original%2F\d+$"))
        wait_for_script(page)
        page.go_back()
        looks = page.locator(".st-key-card_compare_looks a.picture")
        expect(looks.first).to_be_visible()
        wait_for_script(page)
        looks.nth(2).focus()
        page.keyboard.press("Enter")

        expect(page.get_by_role("heading", level=1)).to_have_text("One picture")


def test_copy_link_on_abstain_shows_the_same_pictures_in_another_browser(compare, browser):
    permitted = open_context(browser, permissions=["clipboard-read", "clipboard-write"])
    with watching(permitted) as watched:
        page = watched.page
        page.goto(f"{compare.replace('/compare?', '/abstain?')}&coverage=70")
        card = page.locator(".st-key-card_abstain_pictures")
        expect(card.locator(".tile").first).to_be_visible()
        wait_for_script(page)
        card.get_by_test_id("stPaginationPage").get_by_text("2", exact=True).click()
        page.wait_for_url("**abstain_page=2**")
        wait_for_script(page)
        shown = card.locator(".tile").first.get_attribute("aria-label")
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_text("Link copied")).to_be_visible()
        link = page.evaluate("navigator.clipboard.readText()")
    permitted.close()

    other = open_context(browser)
    with watching(other) as watched:
        page = watched.page
        page.goto(link)
        card = page.locator(".st-key-card_abstain_pictures")
        expect(card.locator(".tile").first).to_have_attribute("aria-label", shown)
        expect(page.get_by_role("slider", name="Target coverage")).to_have_value("70")
    other.close()


def test_a_copied_link_shows_the_same_in_another_browser(compare, browser):
    permitted = open_context(browser, permissions=["clipboard-read", "clipboard-write"])
    with watching(permitted) as watched:
        page = watched.page
        page.goto(f"{compare}&shown=flip:original:fixed&shown_order=unsure&shown_page=2")
        number = opened(page, "Fixed")
        first = drawer(page).locator(".tile").first.get_attribute("aria-label")
        drawer(page).get_by_role("button", name="Copy link").click()
        expect(drawer(page).get_by_text("Link copied")).to_be_visible()
        link = page.evaluate("navigator.clipboard.readText()")
    permitted.close()

    other = open_context(browser)
    with watching(other) as watched:
        page = watched.page
        page.goto(link)
        assert opened(page, "Fixed") == number
        assert drawer(page).locator(".tile").first.get_attribute("aria-label") == first
    other.close()


def test_without_permission_the_link_is_shown_to_be_copied(compare, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(compare)
        wait_for_script(page)
        page.evaluate(
            "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')) }"
        )

        page.get_by_role("button", name="Copy link").click()

        shown = page.get_by_role("textbox", name="Link to this view")
        expect(shown).to_have_value(page.url)
        expect(shown).to_be_focused()


def test_dark_holds_in_a_new_tab_and_in_the_drawer(compare, server, browser):
    context = open_context(browser, color_scheme="light")
    with watching(context) as watched:
        page = watched.page
        page.goto(server.url)
        wait_for_script(page)
        page.get_by_test_id("stMainMenu").get_by_role("button").click()
        page.get_by_role("menuitemradio", name="Dark").click()
        expect(page.locator(".stApp")).to_have_css("color-scheme", "dark")
        with watching(context) as second:
            second.page.goto(f"{compare}&shown=flip:original:fixed")
            opened(second.page, "Fixed")
            expect(second.page.locator(".stApp")).to_have_css("color-scheme", "dark")
            expect(drawer(second.page)).to_have_css("color-scheme", "dark")
            expect(second.page).to_have_title("Compare · Biased MNIST · MaskTune Studio")
    context.close()
