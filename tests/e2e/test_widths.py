"""Every page at every width, light and dark: nothing scrolls sideways, no word is broken, and
axe-core finds nothing serious."""

import shutil

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from app.compare.confusion import matrix_table
from app.shared.pages import LOOK
from masktune.config import MaskingConfig, RunConfig
from masktune.pipeline import run
from masktune.recipes import recipe
from masktune.show.markup import piece
from masktune.show.tables import html
from tests.e2e.conftest import open_context, serving, wait_for_script, watching

WIDTHS = (390, 768, 1280, 1440, 2560)
PAGES = ("", "load", "mask", "finetune", "compare", "abstain", "picture", "runs")
DEMO = "biased-mnist-5k"

SIDEWAYS = """() => [...document.querySelectorAll(
    '[data-testid=stMain], [data-testid=stMainBlockContainer]')]
  .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.dataset.testid)"""
"""Which part of the page can be scrolled sideways."""

STICKING_OUT = """() => [...document.querySelectorAll('.mt, .mt *, p, h1, h2, label, button')]
  .filter(e => e.checkVisibility() && !e.closest('.wide, .sheet.rows, [data-testid=stDataFrame]'))
  .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(e => e.className + ': ' + e.textContent.slice(0, 40))"""
"""What lies beyond the right edge of the window, where nobody sees it."""

FLAT = """() => [...document.querySelectorAll('.js-plotly-plot')]
  .filter(e => e.checkVisibility() && e._fullLayout && e._fullLayout._size.w < 120)
  .map(e => e.closest('[class*=st-key-card_]')?.className ?? 'a chart')"""
"""Charts whose plotting area has collapsed beside its labels."""

BROKEN = """() => {
  const broken = [];
  const walker = document.createTreeWalker(
    document.querySelector('[data-testid=stMain]'), NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const holder = node.parentElement;
    if (!holder.checkVisibility() || holder.closest('code, textarea')) continue;
    for (const word of node.data.matchAll(/[\\p{L}]{3,18}|\\d–\\d/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (lines.size > 1) broken.push(word[0] + ' in ' + node.data.trim().slice(0, 40));
    }
  }
  return broken;
}"""
"""Words, and ranges such as 5–9, that stand on two lines."""

CUT = """() => [...document.querySelectorAll(
    '.st-key-stepper p span, [data-testid=stMetricLabel] *')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.clientWidth)
  .map(e => e.textContent + ' is cut')"""
"""Words of the stepper and of the metric cards that end in an ellipsis."""

STEPPER = """() => {
  const links = [...document.querySelectorAll('.st-key-stepper a, .st-key-copy_link_page')]
    .filter(e => e.checkVisibility());
  const said = links.map(e => e.textContent.trim() || 'Copy link');
  const boxes = links.map(e => e.getBoundingClientRect());
  const wrong = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
    const over = a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1
      && b.top < a.bottom - 1;
    if (over) wrong.push(said[i] + ' lies over ' + said[i + 1 + j]);
  }));
  links.forEach((link, i) => {
    const words = link.closest('[class*=st-key-step_]') && link.querySelector('p');
    if (!words) return;
    const range = document.createRange();
    range.selectNodeContents(words.firstChild);
    if (range.getBoundingClientRect().right > boxes[i].right + 1) wrong.push(said[i] + ' is cut');
  });
  const missing = ['picture', 'runs'].filter(
    page => !links.some(e => e.pathname === '/' + page));
  if (!said.includes('Copy link')) missing.push('Copy link');
  return [...wrong, ...missing.map(name => name + ' is missing')];
}"""
"""What of the stepper lies over something else, is cut or cannot be reached."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    base = recipe(DEMO)
    config = RunConfig(
        dataset=DEMO,
        recipe=base.name,
        arch=base.arch,
        training=base.training,
        masking=MaskingConfig(),
        model="bundled",
    )
    run(config, out=home / "runs" / "demo")
    shutil.copytree(home / "runs" / "demo", home / "runs" / "other")
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as running:
        yield running


def barriers(page: Page) -> list[str]:
    """Say what axe-core calls serious or critical."""
    page.keyboard.press("Tab")  # what scrolls is made a stop as the first is asked for
    return [
        f"{each['id']}: {node['target']}"
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def settled(page: Page) -> None:
    wait_for_script(page)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    page.wait_for_timeout(600)  # Plotly draws once more after its place is known


def judged(page: Page, *scripts: str, axe: bool = False) -> list[str]:
    """Return what is wrong on a page; one that is still being laid out is not judged."""
    for _ in range(10):
        wrong = [each for script in scripts for each in page.evaluate(script)]
        wrong += barriers(page) if axe else []
        if not wrong:
            break
        page.wait_for_timeout(1000)
    return wrong[:12]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_sticks_out_no_word_is_broken_and_no_barrier_stands(name, scheme, server, browser):
    context = open_context(browser, color_scheme=scheme)
    with watching(context) as watched:
        page = watched.page
        page.goto(f"{server.url}/{name}?dataset={DEMO}&run=demo")
        found = {}
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 1000})
            settled(page)
            axe = width in (390, 1280)
            if wrong := judged(page, SIDEWAYS, STICKING_OUT, FLAT, BROKEN, CUT, axe=axe):
                found[width] = wrong

        assert found == {}
    context.close()


STATES = {
    "compare": "test=original&shown=flip:original:fixed",
    "mask": "columns=%5B%22explainer%3Agradcam%22%2C+%22layer%3Afeatures.3%22%5D&mask_pictures=6",
    "load": "model=train",
    "picture": "picture=original/7&picture_other=validation/1",
    "runs": "ticked=demo,other",
}
"""What else lies open on a page: the drawer, columns, settings of training, a picture to cut
patches from, runs side by side."""


OPEN = {
    "compare": "[role=dialog] a.picture",
    "mask": ".scrubber.ready.several",
    "load": "[class*=st-key-train_more]",
    "picture": ".board.other canvas",
    "runs": ".st-key-card_runs_paired",
}
"""What shows that it lies open."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_opened_on_a_page_fits_and_has_no_barrier_either(scheme, server, browser):
    context = open_context(browser, color_scheme=scheme, viewport={"width": 1280, "height": 1000})
    # Colours change no place: one scheme is enough for what fits.
    widths = (2560, 1280, 768, 390) if scheme == "light" else (1280, 390)
    found = {}
    for name, state in STATES.items():
        with watching(context) as watched:
            page = watched.page
            page.goto(f"{server.url}/{name}?dataset={DEMO}&run=demo&{state}")
            expect(page.locator(OPEN[name]).first).to_be_visible()
            for width in widths:
                page.set_viewport_size({"width": width, "height": 1000})
                wait_for_script(page)
                page.wait_for_timeout(600)  # Plotly draws once more after its place is known
                if wrong := judged(page, SIDEWAYS, STICKING_OUT, axe=width in (390, 1280)):
                    found[name, width] = wrong
    context.close()

    assert found == {}


def test_at_every_width_the_stepper_is_whole_and_leads_to_the_pages_beside_the_steps(
    server, browser
):
    context = open_context(browser)
    with watching(context) as watched:
        page = watched.page
        page.goto(f"{server.url}/mask?dataset={DEMO}")
        found = {}
        for width in (390, 560, 561, 700, 768, 840, 841, 960, 961, 1280, 2560):
            page.set_viewport_size({"width": width, "height": 1000})
            settled(page)
            if wrong := judged(page, STEPPER):
                found[width] = wrong

        assert found == {}
    context.close()


def test_a_name_with_underscores_breaks_after_them_and_only_where_it_must(browser):
    caption = piece(
        "fact", before="long_haired", after="5–9", label="short_haired", score="0.5", state="fixed"
    )
    page = browser.new_page()
    for width, lines in ((50, 2), (110, 1)):
        page.set_content(
            f"<style>{LOOK.read_text('utf-8')}</style><div data-testid='stMain' class='stApp mt' "
            f"style='width: {width}px'><figcaption>{caption}</figcaption></div>"
        )
        name = page.locator(".held").last

        assert page.evaluate(BROKEN) == []
        assert name.evaluate("e => Math.round(e.offsetHeight / 17)") == lines
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_matrix_of_many_classes_scrolls_in_its_own_box_beside_the_names_of_its_rows(
    scheme, browser
):
    counts = np.arange(400).reshape(20, 20)
    names = [f"long_haired class {number}" for number in range(20)]
    table = html(matrix_table(counts, names, name="after", split="test"))
    page = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 1000})
    page.set_content(
        f"<!doctype html><html lang='en' style='color-scheme: {scheme}'><title>Matrix</title>"
        f"<style>{LOOK.read_text('utf-8')}</style><main class='stApp' data-testid='stMain' "
        f"style='background: var(--card)'><h1>Matrix</h1><div class='mt'>"
        f"{piece('pair', both=[table, table])}</div></main></html>"
    )
    box, head = page.locator(".wide").first, page.locator("tbody th").first
    cell = page.locator("a.mark").last
    left = head.bounding_box()["x"]

    box.evaluate("e => e.scrollLeft = e.scrollWidth")

    assert box.evaluate("e => e.scrollLeft") > 100
    assert head.bounding_box()["x"] == left
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert min(cell.bounding_box()[side] for side in ("width", "height")) >= 24  # for a finger
    name = "long_haired class 19, answered long_haired class 19 after: 399, 5.1% of the class"
    expect(cell).to_have_accessible_name(name)
    assert page.evaluate(BROKEN) == []
    assert barriers(page) == []
    page.close()


def test_a_click_anywhere_in_a_row_of_start_opens_its_run(server, browser):
    context = open_context(browser)
    with watching(context) as watched:
        page = watched.page
        page.goto(server.url)
        settled(page)

        # By force: the row's link lies over the cell.
        page.get_by_role("row").last.get_by_role("cell").last.click(force=True)

        expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
        page.wait_for_url("**run=demo**")
    context.close()
