import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from masktune.heat.keep import keep_masks
from masktune.heat.xgradcam import upsample
from tests.e2e.conftest import draw, wait_for_script
from tests.e2e.scrubber_app import RUDE, make_sheet
from tests.e2e.scrubbing import (
    FINGERPRINT,
    SCRUB_TO,
    count_runs,
    open_sheet,
    opened,
    press_at,
    python_has,
    show,
    slider,
)


def test_other_pictures_take_the_place_of_the_first_at_the_same_k(watched, scrub_server):
    page = open_sheet(watched, scrub_server)
    press_at(page, 0.8)
    page.mouse.up()
    python_has(page, k=0.8)
    page.get_by_role("button", name="Look closely at picture 3: picture 3").click()
    python_has(page, selected=2)

    page.get_by_text("Other pictures").click()
    python_has(page, k=0.8, selected=0)

    expect(page.locator(".tile")).to_have_count(6)
    expect(page.locator(".loupe .name")).to_have_text(RUDE)
    expect(page.locator(".tile .after").nth(1)).to_have_text("still 20%")
    expect(slider(page)).to_have_value("0.8")


def test_a_tile_keeps_the_focus_when_new_answers_change_the_order(watched, scrub_server):
    page = open_sheet(watched, scrub_server, slow=1)
    page.get_by_label("Order").select_option("What changes most first")
    first = page.locator(".sheet button").first.get_attribute("aria-label")
    press_at(page, 1.0)
    page.mouse.up()

    chosen = page.get_by_role("button", name="Look closely at picture 9: picture 9")
    chosen.click()
    expect(page.locator(".tile .after").nth(1)).to_have_text(re.compile("25%"))

    assert page.locator(".sheet button").first.get_attribute("aria-label") != first
    expect(chosen).to_be_focused()


def test_a_drag_repaints_and_sends_nothing_until_release_then_k_once(watched, scrub_server):
    page = open_sheet(watched, scrub_server)
    canvas = page.locator(".sheet canvas").first
    runs = count_runs(page)

    left, unit, y = press_at(page, 1.5)
    seen = set()
    for k in np.linspace(1.5, 0.4, 24):
        page.mouse.move(left + unit * k, y)
        draw(page)
        seen.add(canvas.evaluate(FINGERPRINT))
    page.wait_for_timeout(600)
    sent_while_held = list(watched.traffic.sent)
    page.mouse.up()
    python_has(page, k=0.4)
    wait_for_script(page)

    assert len(seen) > 5
    assert sent_while_held == []
    assert len(watched.traffic.sent) == 1
    assert count_runs(page) == runs + 1


def test_a_touch_scrubs_too(browser, scrub_server):
    with opened(browser, has_touch=True, viewport={"width": 700, "height": 1000}) as watched:
        page = open_sheet(watched, scrub_server, quiet=1)
        box = slider(page).bounding_box()
        finger = page.context.new_cdp_session(page)

        def touch(kind, *spots):
            points = [{"x": x, "y": box["y"] + 60} for x in spots]
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        right = box["x"] + box["width"] - 2
        touch("touchStart", box["x"] + box["width"] / 2)
        for x in np.linspace(box["x"] + box["width"] / 2, right, 8):
            touch("touchMove", float(x))
        expect(slider(page)).to_have_value("3")
        assert watched.traffic.sent == []
        touch("touchEnd")

        python_has(page, k=3.0)
        assert len(watched.traffic.sent) == 1


def test_the_keyboard_moves_k_over_its_range(watched, scrub_server):
    page = open_sheet(watched, scrub_server)
    handle = slider(page)
    handle.focus()

    for key, value in [
        ("ArrowRight", "1.51"),
        ("ArrowLeft", "1.5"),
        ("Home", "0"),
        ("PageUp", "0.3"),
        ("End", "3"),
        ("PageDown", "2.7"),
    ]:
        page.keyboard.press(key)
        expect(handle).to_have_value(value)
    expect(handle).to_have_attribute("aria-valuetext", re.compile(r"^k 2\.70, hides \d+\.\d%$"))
    assert handle.evaluate("(node) => getComputedStyle(node).outlineStyle") == "solid"

    python_has(page, k=2.7)


def test_keys_in_quick_succession_are_told_once(watched, scrub_server):
    page = open_sheet(watched, scrub_server)

    # Timers fire in the order they are due, so on a slow machine too no pause lies between keys.
    slider(
        page
    ).evaluate("""(slider) => [1.51, 1.52, 1.53, 1.54].forEach((k, i) => setTimeout(() => {
        slider.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
        slider.value = k;
        slider.dispatchEvent(new Event("input"));
        slider.dispatchEvent(new Event("change"));
    }, 60 * i))""")
    python_has(page, k=1.54)
    wait_for_script(page)

    assert len(watched.traffic.sent) == 1


def test_answers_after_hiding_belong_to_the_k_they_were_asked_at(watched, scrub_server):
    page = open_sheet(watched, scrub_server)
    cow, camel = page.locator(".tile .after").nth(0), page.locator(".tile .after").nth(1)
    # At k = 1.5 every answer is camel at a confidence of 1.5 / 4; the first was cow.
    expect(cow).to_have_text("→ camel, 38%")
    expect(camel).to_have_text("still 38%")
    expect(page.locator(".fact-after")).to_have_text("→ camel, 38%")

    left, unit, y = press_at(page, 1.5)
    page.mouse.move(left + unit * 1.0, y)
    expect(cow).to_have_text("…")
    expect(page.locator(".fact-after")).to_have_text("…")
    page.mouse.up()

    expect(cow).to_have_text("→ camel, 25%")
    expect(camel).to_have_text("still 25%")


def test_a_second_move_is_not_undone_by_the_run_for_the_first(watched, scrub_server):
    page = open_sheet(watched, scrub_server, slow=1)

    for k in ("1", "0.6"):
        press_at(page, float(k))
        page.mouse.up()
        expect(slider(page)).to_have_value(k)
    values = set()
    while page.locator("[data-test-script-state=running]").count():
        values.add(slider(page).input_value())
    python_has(page, k=0.6)

    assert values | {slider(page).input_value()} == {"0.6"}
    expect(page.locator(".tile .after").nth(1)).to_have_text("still 15%")


TELL = """(root, [k, turn]) => {
    const meeting = globalThis[Symbol.for("masktune.scrubber")];
    const [[sheet, news]] = meeting.news;
    meeting.news.set(sheet, { ...news, k, turn });
    for (const ear of meeting.ears) ear(sheet);
    return root.querySelector(".slider").value;
}"""
"""Brings news as Python would, at a moment of the test's choice."""


def test_news_move_the_slider_unless_the_hand_moved_after_them(watched, scrub_server):
    page = open_sheet(watched, scrub_server)
    press_at(page, 0.6)
    page.mouse.up()
    python_has(page, k=0.6)
    wait_for_script(page)
    root = page.locator(".scrubber")
    late, soon = 1, 10**15  # turns count milliseconds

    assert root.evaluate(TELL, [2.5, late]) == "0.6"
    assert root.evaluate(TELL, [2.5, soon]) == "2.5"
    slider(page).evaluate(SCRUB_TO, 1.2)  # and not let go
    assert root.evaluate(TELL, [0.3, soon]) == "1.2"


STATE_LAST = """
    const news = new Map();
    const meeting = { news, ears: new Set() };
    globalThis[Symbol.for("masktune.scrubber")] = meeting;
    let held;
    news.set = (sheet, told) => {
        if (!told.after) { held = told; return; }
        Map.prototype.set.call(news, sheet, told);
        delete news.set;
        setTimeout(() => {
            news.set(sheet, { ...held, ...told });
            for (const ear of meeting.ears) ear(sheet);
        }, 300);
    };
"""
"""Holds the first message back until the answers after hiding have come."""


def test_answers_that_come_before_the_state_wait_for_it(watched, scrub_server):
    watched.page.add_init_script(STATE_LAST)

    page = open_sheet(watched, scrub_server, slow=1)

    expect(page.get_by_text("BidiComponent Error")).to_have_count(0)
    expect(page.locator(".loupe .name")).to_have_text(RUDE)
    expect(page.locator(".tile .after").nth(1)).to_have_text("still 38%")


def test_nothing_is_sent_while_the_hand_moves_not_even_a_choice_made_just_before(
    watched, scrub_server
):
    page = open_sheet(watched, scrub_server)

    slider(page).evaluate("""(slider) => {
        slider.closest(".scrubber").querySelectorAll(".sheet button")[1].click();
        slider.value = 1;
        slider.dispatchEvent(new Event("input"));
    }""")
    page.wait_for_timeout(600)
    sent_while_held = list(watched.traffic.sent)
    slider(page).evaluate("(slider) => slider.dispatchEvent(new Event('change'))")
    python_has(page, k=1.0, selected=1)
    wait_for_script(page)

    assert sent_while_held == []
    assert len(watched.traffic.sent) == 1


def test_python_moves_the_slider_and_a_move_back_is_heard(watched, scrub_server):
    page = open_sheet(watched, scrub_server)

    page.get_by_role("button", name="Set k to 2").click()
    expect(slider(page)).to_have_value("2")
    expect(page.locator(".value")).to_have_text("k = 2.00")
    press_at(page, 1.5)
    page.mouse.up()

    python_has(page, k=1.5)


def test_k_view_and_picture_survive_while_the_scrubber_is_away(watched, scrub_server):
    page = open_sheet(watched, scrub_server)
    press_at(page, 0.8)
    page.mouse.up()
    python_has(page, k=0.8)
    show(page, "Heat")
    python_has(page, view="heat")
    page.get_by_role("button", name="Look closely at picture 3: picture 3").click()
    python_has(page, selected=2)

    away = page.get_by_text("Away")
    away.click()
    expect(page.locator(".scrubber")).to_have_count(0)
    away.click()
    page.wait_for_selector(".scrubber.ready")

    python_has(page, k=0.8, view="heat", selected=2)
    expect(slider(page)).to_have_value("0.8")
    expect(page.get_by_role("radio", name="Heat")).to_be_checked()
    expect(page.locator(".loupe .name")).to_have_text("picture 3")


def test_a_rerun_does_not_send_the_sheet_again(watched, scrub_server):
    page = watched.page
    page.goto(f"{scrub_server.url}/?sheet=photos", wait_until="commit")
    page.wait_for_selector(".scrubber.ready")
    wait_for_script(page)
    first = sum(watched.traffic.received)
    watched.traffic.forget()

    press_at(page, 0.6)
    page.mouse.up()
    python_has(page, k=0.6)
    wait_for_script(page)

    assert first > 150_000
    assert sum(watched.traffic.received) < 20_000


def test_the_loupe_shows_the_chosen_picture_and_its_facts(watched, scrub_server):
    page = open_sheet(watched, scrub_server)
    sheet = make_sheet("digits", "positive")
    large = page.locator(".loupe .large")
    expect(page.locator(".loupe .name")).to_have_text(RUDE)
    first = large.evaluate(FINGERPRINT)

    page.get_by_role("button", name="Look closely at picture 2: picture 2").click()

    expect(page.locator(".loupe .name")).to_have_text("picture 2")
    assert large.evaluate(FINGERPRINT) != first
    heat = upsample(torch.from_numpy(sheet.columns[0].heat[1:2]), (28, 28))
    hidden = 1 - keep_masks(heat, 1.5).double().mean().item()
    tau = sheet.columns[0].mu[1] + 1.5 * sheet.columns[0].sigma[1]
    expect(page.locator(".fact-share")).to_have_text(f"{hidden:.1%}")
    expect(page.locator(".fact-threshold")).to_have_text(f"{tau:.3f}")
    expect(page.locator(".fact-answer")).to_have_text(
        f"camel, {sheet.columns[0].confidences[1]:.0%}"
    )
    page.keyboard.press("ArrowRight")
    expect(page.locator(".loupe .name")).to_have_text("picture 3")
    python_has(page, selected=2)
    page.locator(".loupe .small").filter(has_text="Model sees").click()
    expect(page.get_by_role("radio", name="Model sees")).to_be_checked()


def test_every_picture_says_in_words_what_it_shows(watched, scrub_server):
    page = open_sheet(watched, scrub_server, quiet=1)
    images = page.locator(".sheet").get_by_role("img")

    labels = images.evaluate_all("(nodes) => nodes.map((node) => node.ariaLabel)")

    assert len(labels) == 24
    assert labels[1].startswith("picture 2: hidden pixels hatched. The model answers camel; ")
    assert re.search(r"; \d+\.\d% hidden\.$", labels[1])
    assert labels[-1].endswith("; nothing hidden.")
    expect(page.locator(".tile").last.locator(".share")).to_have_text("nothing hidden")
    expect(page.locator(".empty")).to_have_text("nothing hidden in 1 of 24")
    show(page, "Heat")
    expect(images.nth(1)).to_have_attribute("aria-label", re.compile("heat, line at the threshold"))


def test_heat_fades_without_asking_the_server(watched, scrub_server):
    page = open_sheet(watched, scrub_server, quiet=1)
    show(page, "Heat")
    python_has(page, view="heat")
    wait_for_script(page)
    watched.traffic.forget()
    canvas = page.locator(".sheet canvas").first
    full = canvas.evaluate(FINGERPRINT)

    page.get_by_role("slider", name="Heat over picture").evaluate(SCRUB_TO, 30)

    assert canvas.evaluate(FINGERPRINT) != full
    assert watched.traffic.sent == []


def test_filter_and_order_wait_for_no_answer_of_the_server_which_is_told_each_once(
    watched, scrub_server
):
    page = open_sheet(watched, scrub_server, slow=1)
    sheet = make_sheet("digits", "positive")
    names = page.locator(".sheet button")

    def order():
        return names.evaluate_all(
            "(nodes) => nodes.map((node) => Number(node.ariaLabel.match(/picture (\\d+):/)[1]) - 1)"
        )

    expect(page.locator(".tile .after").first).to_have_text("→ camel, 38%")
    page.get_by_label("Group").select_option("camel on sand")
    camels = [n for n, group in enumerate(sheet.groups) if group == "camel on sand"]
    assert order() == camels
    page.get_by_label("Order").select_option("What changes most first")
    drop = {n: sheet.columns[0].confidences[n] - ((5 * n + 15) % 24) / 24 for n in camels}
    assert order() == sorted(camels, key=lambda n: -drop[n])
    page.get_by_label("Group").select_option("All groups")
    page.get_by_label("Order").select_option("Most hidden first")
    heat = upsample(torch.from_numpy(sheet.columns[0].heat), (28, 28))
    share = (~keep_masks(heat, 1.5)).double().mean(dim=(1, 2)).tolist()
    assert order() == sorted(range(24), key=lambda n: -share[n])
    expect(page.locator(".hides")).to_contain_text(f"hides {np.mean(share):.1%}")

    python_has(page, order="most")
    wait_for_script(page)
    assert len(watched.traffic.sent) == 4


def test_filter_and_order_survive_while_the_scrubber_is_away(watched, scrub_server):
    page = open_sheet(watched, scrub_server)
    page.get_by_label("Group").select_option("camel on sand")
    page.get_by_label("Order").select_option("Most hidden first")
    python_has(page, order="most")
    shown = page.locator(".sheet button")
    names = shown.evaluate_all("(nodes) => nodes.map((node) => node.ariaLabel)")

    away = page.get_by_text("Away")
    away.click()
    expect(page.locator(".scrubber")).to_have_count(0)
    away.click()
    page.wait_for_selector(".scrubber.ready")

    expect(page.get_by_label("Group")).to_have_value("=camel on sand")
    expect(page.get_by_label("Order")).to_have_value("most")
    assert shown.evaluate_all("(nodes) => nodes.map((node) => node.ariaLabel)") == names


def test_wrong_answers_are_marked_on_their_tiles(watched, scrub_server):
    page = open_sheet(watched, scrub_server, quiet=1)

    marked = page.locator(".sheet .answer").evaluate_all(
        "(nodes) => nodes.map((node) => getComputedStyle(node, '::before').content.includes('✕'))"
    )

    # Answers are cow, camel, cow, camel, cow, camel; right would be cow, camel, cow twice.
    assert marked == [False, False, False, True, True, True] * 4


def test_a_name_is_text_and_never_markup(watched, scrub_server):
    page = open_sheet(watched, scrub_server, quiet=1)

    expect(page.locator(".loupe .name")).to_have_text(RUDE)
    assert page.locator(".scrubber img").count() == 0


@pytest.mark.parametrize(("scheme", "card"), [("light", 255), ("dark", 0x16)])
def test_the_card_follows_the_theme(browser, scrub_server, scheme, card):
    with opened(browser, color_scheme=scheme) as watched:
        page = open_sheet(watched, scrub_server, quiet=1)

        ground = re.compile(rf"^rgba?\({card}, ")
        expect(page.locator(".strip")).to_have_css("background-color", ground)


@pytest.mark.parametrize("width", [1440, 900, 600])
def test_nothing_is_clipped_or_moves_while_k_does(browser, scrub_server, width):
    with opened(browser, viewport={"width": width, "height": 1000}) as watched:
        page = open_sheet(watched, scrub_server)
        root = page.locator(".scrubber")
        tile = page.locator(".tile").first
        expect(tile.locator(".after")).to_have_text("→ camel, 38%")
        places = set()

        for k in (0, 1, 2.5, 3):
            slider(page).evaluate(SCRUB_TO, k)
            places.add(tuple(tile.bounding_box().values()))

        assert len(places) == 1
        assert root.evaluate("(node) => node.scrollWidth <= node.clientWidth")
