"""Hands and eyes for the scrubber's page."""

import re
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.e2e.conftest import open_context, wait_for_script, watching

SCRUB_TO = """(slider, k) => new Promise((resolve) => {
    const root = slider.closest(".scrubber");
    root.addEventListener("painted", () => resolve(), { once: true });
    slider.value = k;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
})"""

FINGERPRINT = """(canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.reduce((sum, byte, i) => (sum * 31 + byte + i) % 1000003, 7);
}"""


@contextmanager
def opened(browser, **options):
    context = open_context(browser, **options)
    with watching(context) as watched:
        yield watched
    context.close()


def open_sheet(watched, server, **query):
    page = watched.page
    address = "&".join(f"{name}={value}" for name, value in query.items())
    page.goto(f"{server.url}/?{address}", wait_until="commit")
    page.wait_for_selector(".scrubber.ready")
    wait_for_script(page)
    watched.traffic.forget()
    return page


def slider(page):
    return page.get_by_role("slider", name="Threshold")


def show(page, view):
    page.get_by_role("radio", name=view).check()


def python_has(page, **wanted):
    for name, value in wanted.items():
        told = page.get_by_text(re.compile(rf"python has .*\b{name} {re.escape(str(value))}(?!\S)"))
        expect(told).to_be_visible()


def count_runs(page):
    return int(page.get_by_text(re.compile(r"^run \d+$")).inner_text().split()[1])


def press_at(page, k):
    """Press the mouse on the chart at k; gives the pixels a unit of k is wide."""
    box = slider(page).bounding_box()
    left, width = box["x"] + 11, box["width"] - 22  # half a thumb at either end
    page.mouse.move(left + width * k / 3, box["y"] + 30)
    page.mouse.down()
    return left, width / 3, box["y"] + 30
