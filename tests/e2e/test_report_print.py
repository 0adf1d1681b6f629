"""The report on paper: every picture on it, nothing cut, no buttons."""

import re

import pytest

from masktune.report.page import report_html
from tests.masktune.report.test_page import a_view

PAPER = 718
"""CSS pixels between the margins of an A4 page, 12 mm each."""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_html(a_view(side=96)), "utf-8")
    return path


@pytest.fixture
def paper(context, report):
    page = context.new_page()
    page.set_viewport_size({"width": PAPER, "height": 1000})
    page.goto(report.as_uri())
    page.locator(".main-svg").first.wait_for()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    return page


def test_no_picture_table_or_chart_is_wider_than_the_paper(paper):
    beyond = paper.evaluate(
        """width => [...document.querySelectorAll('.tile, table, .main-svg, .card')]
            .filter(piece => piece.getBoundingClientRect().right > width + 1)
            .map(piece => piece.className || piece.tagName)""",
        PAPER,
    )
    scrolling = paper.evaluate(
        """() => [...document.querySelectorAll('.sheet, .table')]
            .filter(piece => getComputedStyle(piece).overflowX !== 'visible').length"""
    )

    assert beyond == []
    assert scrolling == 0


def test_buttons_and_links_of_the_screen_are_not_printed_and_headings_stay_with_what_follows(paper):
    assert paper.locator("button").count() > 5
    assert not any(button.is_visible() for button in paper.locator("button, nav").all())
    kept = paper.evaluate(
        """() => [...document.querySelectorAll('h2, h3, caption, .hint')]
            .map(piece => getComputedStyle(piece).breakAfter)"""
    )
    whole = paper.evaluate(
        """() => [...document.querySelectorAll('.figure, .sheet, .metric, .card, tr')]
            .map(piece => getComputedStyle(piece).breakInside)"""
    )
    assert set(kept) == set(whole) == {"avoid"}


def test_letters_of_figures_keep_their_size_and_figures_fill_the_screen_again(context, report):
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator(".main-svg").first.wait_for()
    width = "() => document.querySelector('.main-svg').getBoundingClientRect().width"
    screen = page.evaluate(width)

    page.set_viewport_size({"width": PAPER, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    drawn = page.evaluate("() => document.querySelector('.main-svg').getAttribute('width')")
    assert page.evaluate(width) == pytest.approx(float(drawn), rel=0.02)

    page.set_viewport_size({"width": 1440, "height": 1000})
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function(f"Math.abs(({width})() - {screen}) <= 2")


def test_every_picture_of_every_sheet_is_in_the_pdf(context, report):
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator(".main-svg").first.wait_for()
    tiles = page.locator(".tile").count()

    pdf = page.pdf(format="A4")

    # 8 test pictures in 4 rows, 8 training pictures in 3, mean heat of 4 groups, and the clues.
    assert tiles >= 8 * 4 + 8 * 3 + 4 + 1
    assert len(re.findall(rb"/Subtype\s*/Image", pdf)) >= tiles
    assert 5 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
