"""Without a pointer: training a model, what Load offers, columns and orders of Mask, Runs."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect
from safetensors.torch import save_file

from masktune.checkpoints.checkpoint import bundled_checkpoint, read_tensors
from tests.e2e.conftest import serving, wait_for_script
from tests.e2e.test_journey import MINUTES, no_problem
from tests.old_runs import DEMO as OLD
from tests.old_runs import put

DEMO = "biased-mnist-5k"
MOST = 150
"""Stops that may lie between two controls of a page, at most."""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(home):
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as running:
        yield running


@pytest.fixture
def page(watched, monkeypatch):
    """Give a page whose pointer cannot be used."""

    def refused(*_, **__):
        raise AssertionError("There is no pointer.")

    for name in ("click", "check", "fill", "focus", "press", "hover", "tap"):
        monkeypatch.setattr(Locator, name, refused)
    return watched.page


def go_to(page: Page, control: Locator) -> None:
    """Press Tab until a control has the focus."""
    expect(control).to_be_visible()
    wait_for_script(page)
    for _ in range(MOST):
        # In a shadow tree the document knows its host only: the tree is asked.
        if control.evaluate("node => node.getRootNode().activeElement === node"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {control}.")


def press(page: Page, control: Locator, *keys: str) -> None:
    go_to(page, control)
    for key in keys:
        page.keyboard.press(key)
    wait_for_script(page)


def write(page: Page, control: Locator, text: str) -> None:
    go_to(page, control)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
    page.keyboard.press("Tab")
    wait_for_script(page)


def choose(page: Page, name: str) -> None:
    """Go to the chosen one of several by Tab, and on from there by the arrows."""
    wanted = page.get_by_role("radio", name=name, exact=True)
    expect(wanted).to_be_visible()
    chosen = page.get_by_role("radiogroup").filter(has=wanted).get_by_role("radio", checked=True)
    go_to(page, chosen.first)
    for _ in range(8):
        if wanted.evaluate("node => document.activeElement === node"):
            break
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(wanted).to_be_checked()
    wait_for_script(page)


def query(page: Page) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page.url).query))


def test_a_model_is_trained_and_looked_at(page, server, home):
    page.goto(f"{server.url}/load?dataset={DEMO}")

    choose(page, "Train here")
    press(page, page.get_by_role("combobox", name="Frozen layers"), "ArrowDown", "Enter")
    write(page, page.get_by_role("spinbutton", name="Epochs"), "1")
    write(page, page.get_by_role("textbox", name="Name of the model"), "By keys")
    press(page, page.get_by_role("button", name="Start the training"), "Enter")

    look = page.get_by_role("button", name="Look at the heat")
    expect(look).to_be_visible(timeout=5 * MINUTES)
    (config,) = (home / "runs").glob("*/config.json")
    training = json.loads(config.read_text())["training"]
    assert (training["epochs"], training["freeze"]) == (1, "body")
    press(page, look, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Mask")
    no_problem(page)


def test_another_normalisation_is_tried_and_taken(page, server):
    page.goto(f"{server.url}/load?dataset={DEMO}")

    press(page, page.get_by_role("button", name="Try other normalisations"), "Enter")
    press(page, page.get_by_role("button", name="Take half"), "Space")

    expect(page.get_by_role("button", name="Take the usual")).to_be_visible()
    page.wait_for_url("**normalise=half**")
    no_problem(page)


def test_another_order_of_the_classes_is_taken_and_given_back(page, server, tmp_path):
    tensors, _ = read_tensors(bundled_checkpoint(DEMO))
    head = [name for name, value in tensors.items() if value.shape[:1] == (2,)]
    swapped = {n: v.flip(0).contiguous() if n in head else v for n, v in tensors.items()}
    save_file(swapped, tmp_path / "swapped.safetensors", metadata={"arch": "small-cnn"})
    page.goto(f"{server.url}/load?dataset={DEMO}&model={tmp_path / 'swapped.safetensors'}")

    press(page, page.get_by_role("button", name="Take this order of the classes"), "Enter")
    page.wait_for_url("**class_order=1%2C0**")
    press(page, page.get_by_role("button", name="Take the classes as they are"), "Enter")

    page.wait_for_url(re.compile("^((?!class_order).)*$"))
    no_problem(page)


def test_columns_are_added_and_taken_away_and_the_sheet_is_put_in_another_order(page, server):
    page.goto(f"{server.url}/mask?dataset={DEMO}&mask_pictures=6")
    page.wait_for_selector(".scrubber.ready")

    press(page, page.get_by_role("combobox", name="Shown first"), "ArrowDown", "Enter")
    offer = page.get_by_role("button", name="Ask about all of them")
    first = page.get_by_text("wrong answers first")
    expect(offer.or_(first)).to_be_visible()
    if offer.is_visible():  # where asking would take more than some seconds
        press(page, offer, "Enter")
    expect(first).to_be_visible()
    beside = page.get_by_role("combobox", name="Side by side with")
    go_to(page, beside)
    page.keyboard.type("eigen")
    expect(page.get_by_role("option", name="eigencam")).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator(".several .print")).to_have_count(12)
    page.wait_for_url("**columns=**")
    assert json.loads(query(page)["columns"]) == ["explainer:eigencam"]
    assert query(page)["mask_order"] == "wrong"

    press(page, beside, "Backspace")

    expect(page.locator(".several .print")).to_have_count(0)
    page.wait_for_url(re.compile("^((?!columns).)*$"))
    press(page, page.get_by_role("button", name="Other pictures"), "Enter")
    page.wait_for_url("**draw=1**")
    no_problem(page)


def test_a_run_is_ticked_tagged_pinned_deleted_and_brought_back(page, server, home):
    put(OLD, home / "runs")
    page.goto(f"{server.url}/runs")
    row = page.locator(f".st-key-run_row_{OLD}")

    press(page, row.get_by_role("checkbox"), "Space")
    expect(page.get_by_text("1 run ticked")).to_be_visible()
    press(page, page.get_by_role("button", name="Name, note, tags"), "Enter")
    write(page, page.get_by_role("textbox", name="Tags"), "paper")
    press(page, page.get_by_role("button", name="Save", exact=True), "Enter")
    expect(row).to_contain_text("paper")
    page.keyboard.press("Escape")
    press(page, page.get_by_role("button", name="Pin", exact=True), "Enter")
    expect(row).to_contain_text("★")
    press(page, page.get_by_role("button", name="Delete", exact=True), "Enter")
    expect(row).to_have_count(0)
    press(page, page.get_by_role("button", name="Undo"), "Enter")

    expect(row).to_contain_text("paper")
    no_problem(page)


def test_a_run_that_lies_elsewhere_is_imported(page, server, home, tmp_path):
    shutil.move(put(OLD, tmp_path), tmp_path / "elsewhere")
    page.goto(f"{server.url}/runs")

    press(page, page.get_by_role("button", name="Import"), "Enter")
    write(page, page.get_by_role("textbox", name="Or the folder of a run"), f"{tmp_path}/elsewhere")

    expect(page.get_by_text("1 run ticked")).to_be_visible()
    assert (home / "runs" / "elsewhere" / "result.json").is_file()
    no_problem(page)


def test_a_grid_is_queued_cancelled_and_deleted(page, server, home):
    page.goto(f"{server.url}/runs?dataset={DEMO}")
    card = page.locator(".st-key-card_runs_grid")

    write(page, card.get_by_role("textbox", name="Thresholds k"), "1,2,3")
    write(page, card.get_by_role("textbox", name="Seeds"), "0,1")
    press(page, card.get_by_role("button", name="Queue the grid"), "Enter")
    expect(card.get_by_text(re.compile("^(Waiting|Running): "))).to_be_visible()
    press(page, card.get_by_role("button", name="Cancel"), "Enter")
    press(page, page.get_by_role("button", name="Stop the grid"), "Enter")
    expect(card.get_by_text(re.compile("^Cancelled: "))).to_be_visible()
    press(page, card.get_by_role("button", name="more_vert"), "Enter")
    press(page, page.get_by_role("button", name="Delete", exact=True).last, "Enter")

    expect(card.get_by_text("Cancelled: ")).to_have_count(0)
    assert [*(home / "studies").glob("*/study.json")] == []
    no_problem(page)
