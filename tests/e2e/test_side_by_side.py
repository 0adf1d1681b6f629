"""Several columns of one sheet: the same pictures at one threshold, by keyboard, at every width."""

import json
import re
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from masktune.heat.keep import keep_masks
from masktune.heat.xgradcam import upsample
from tests.e2e.conftest import serving, wait_for_script
from tests.e2e.scrubber_app import make_sheet
from tests.e2e.scrubbing import FINGERPRINT, SCRUB_TO, open_sheet, opened, python_has, slider
from tests.e2e.test_scrubber_pixels import READ_HIDDEN


def shares(sheet, k):
    heat = [upsample(torch.from_numpy(one.heat), (28, 28)) for one in sheet.columns]
    return [float((~keep_masks(one, k)).double().mean()) for one in heat]


def test_the_strip_says_what_every_column_hides_at_the_one_threshold(watched, scrub_server):
    page = open_sheet(watched, scrub_server, columns=4, quiet=1)
    sheet = make_sheet("digits", "positive", columns=4)

    slider(page).evaluate(SCRUB_TO, 1.0)

    said = ", ".join(f"way {c + 1} {share:.1%}" for c, share in enumerate(shares(sheet, 1.0)))
    expect(page.locator(".hides")).to_have_text(f"hides: {said}")
    expect(slider(page)).to_have_attribute("aria-valuetext", f"k 1.00, hides {said}")
    expect(page.locator(".sheet canvas")).to_have_count(96)
    assert watched.traffic.sent == []


def test_arrow_keys_go_from_column_to_column_and_from_picture_to_picture(watched, scrub_server):
    page = open_sheet(watched, scrub_server, columns=2)
    shows = page.locator(".loupe .shows")
    page.get_by_role("button", name="Look closely at picture 2, way 1: picture 2").click()
    expect(shows).to_have_text("way 1: hidden pixels hatched")
    python_has(page, selected=1)
    first = page.locator(".loupe .large").evaluate(FINGERPRINT)

    page.keyboard.press("ArrowRight")

    expect(shows).to_have_text("way 2: hidden pixels hatched")
    expect(page.locator(".loupe .name")).to_have_text("picture 2")
    assert page.locator(".loupe .large").evaluate(FINGERPRINT) != first
    page.keyboard.press("ArrowRight")
    expect(page.locator(".loupe .name")).to_have_text("picture 3")
    expect(shows).to_have_text("way 1: hidden pixels hatched")
    page.keyboard.press("ArrowDown")
    expect(shows).to_have_text("way 1: hidden pixels hatched")
    across = page.locator(".sheet").evaluate(
        "(node) => getComputedStyle(node).gridTemplateColumns.split(' ').length"
    )
    expect(page.locator(".loupe .name")).to_have_text(f"picture {3 + across}")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".loupe .name")).to_have_text("picture 3")
    pressed = page.locator(".choose[aria-pressed=true]")
    expect(pressed).to_have_count(1)
    expect(pressed).to_be_focused()


def test_the_column_in_the_loupe_survives_while_the_scrubber_is_away(watched, scrub_server):
    page = open_sheet(watched, scrub_server, columns=3)
    page.get_by_role("button", name="Look closely at picture 2, way 3: picture 2").click()
    python_has(page, selected=1, column=2)

    away = page.get_by_text("Away")
    away.click()
    expect(page.locator(".scrubber")).to_have_count(0)
    away.click()
    page.wait_for_selector(".scrubber.ready")

    expect(page.locator(".loupe .shows")).to_have_text("way 3: hidden pixels hatched")
    pressed = page.locator(".choose[aria-pressed=true]")
    expect(pressed).to_have_accessible_name("Look closely at picture 2, way 3: picture 2")
    python_has(page, selected=1, column=2)


def test_the_loupe_shows_one_picture_by_every_explainer_at_the_same_k(watched, scrub_server):
    page = open_sheet(watched, scrub_server, quiet=1)
    sheet = make_sheet("digits", "positive")
    page.get_by_role("button", name="Look closely at picture 5: picture 5").click()

    button = page.get_by_role("button", name="Same picture, all explainers")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".way")).to_have_count(2)
    python_has(page, selected=4)
    expect(button).to_have_attribute("aria-expanded", "true")
    slider(page).evaluate(SCRUB_TO, 0.8)

    expect(page.locator(".way").last).to_have_text("second: It has no channels.")
    heat = upsample(torch.from_numpy(sheet.columns[0].heat[4:5]), (28, 28))
    keep = keep_masks(heat, 0.8)[0].numpy()
    expect(page.locator(".way").first).to_have_text(f"first {1 - keep.mean():.1%}")
    script = READ_HIDDEN.replace(".sheet canvas", ".way canvas")
    (bits,) = page.locator(".scrubber").evaluate(script, [28])
    assert np.array_equal(np.array(list(bits)).reshape(28, 28) == "1", ~keep)
    page.get_by_role("button", name="Look closely at picture 6: picture 6").click()
    label = page.locator(".way canvas")
    expect(label).to_have_attribute("aria-label", re.compile("^picture 6, first: "))
    button.click()
    expect(page.locator(".way")).to_have_count(0)


@pytest.mark.parametrize("width", [1440, 900, 390])
def test_columns_wrap_rather_than_stick_out(browser, scrub_server, width):
    with opened(browser, viewport={"width": width, "height": 1000}) as watched:
        page = open_sheet(watched, scrub_server, columns=4)
        root = page.locator(".scrubber")
        tile = page.locator(".tile").first
        places = set()

        for k in (0, 1, 2.5, 3):
            slider(page).evaluate(SCRUB_TO, k)
            places.add(tuple(tile.bounding_box().values()))

        assert len(places) == 1
        assert root.evaluate("(node) => node.scrollWidth <= node.clientWidth")
        assert page.locator(".print").first.bounding_box()["width"] >= 90


def test_a_column_is_chosen_by_keyboard_stays_in_the_address_and_a_picture_opens(
    browser, tmp_path_factory
):
    home = str(tmp_path_factory.mktemp("home"))
    with (
        serving("app/main.py", environment={"MASKTUNE_HOME": home}) as server,
        opened(browser) as watched,
    ):
        page = watched.page
        page.goto(f"{server.url}/mask?dataset=biased-mnist-5k&mask_pictures=6")
        page.wait_for_selector(".scrubber.ready")
        wait_for_script(page)

        page.get_by_role("combobox", name="Side by side with").focus()
        page.keyboard.type("eigen")
        expect(page.get_by_role("option", name="eigencam")).to_be_visible()
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")  # or the open list hides the rest of the page from roles

        expect(page.locator(".several .print")).to_have_count(12)
        expect(page.locator(".print .column").nth(1)).to_have_text("eigencam")
        wait_for_script(page)
        page.wait_for_url("**columns=**")
        query = dict(parse_qsl(urlsplit(page.url).query))
        assert json.loads(query["columns"]) == ["explainer:eigencam"]
        name = page.locator(".loupe .name").inner_text()
        number = re.search(r"no\. (\d+)", name)[1]
        page.get_by_role("button", name="Open this picture").press("Enter")
        expect(page.get_by_role("heading", level=1)).not_to_have_text("Mask")
        page.wait_for_url(re.compile(rf"/picture\?.*picture=train%2F{number}\b"))
