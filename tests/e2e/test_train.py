"""Own pictures and a network for other classes: new head, trained, looked at, tuned, taken home."""

import json
import re
from pathlib import Path

import pytest
import torch
from PIL import Image
from playwright.sync_api import Page, expect

from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.models.build import build
from tests.e2e.conftest import serving, wait_for_script, watching
from tests.e2e.test_journey import MINUTES, button, no_problem
from tests.e2e.test_own import upload


@pytest.fixture
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def server(home):
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as running:
        yield running


@pytest.fixture
def pictures(tmp_path) -> Path:
    """Give a folder of 20 + 20 stripes, upright and lying, one folder a class."""
    for number in range(20):
        for name, size in (("upright", (4, 28)), ("lying", (28, 4))):
            picture = Image.new("RGB", (32, 32), (10 * number, 40, 90))
            picture.paste((255, 255, 255), (2, 2, 2 + size[0], 2 + size[1]))
            (tmp_path / "stripes" / name).mkdir(parents=True, exist_ok=True)
            picture.save(tmp_path / "stripes" / name / f"{number}.png")
    return tmp_path / "stripes"


@pytest.fixture
def ten(tmp_path) -> Path:
    """Give a resnet20 for ten classes, as a training script of somebody else saved it."""
    path = tmp_path / "ten.pth"
    torch.save({"state_dict": build("resnet20", 10, seed=3).state_dict()}, path)
    return path


def fill(page: Page, label: str, text: str) -> None:
    field = page.get_by_label(label, exact=True).first
    field.fill(text)
    field.press("Tab")
    wait_for_script(page)


def test_a_network_for_ten_classes_is_given_a_new_head_trained_here_and_finetuned(
    server, home, context, pictures, ten
):
    with watching(context) as watched:
        page = watched.page
        page.goto(f"{server.url}/load")
        wait_for_script(page)
        page.get_by_text("Folder", exact=True).first.click()
        fill(page, "Folder, CSV or ZIP on this computer", str(pictures))
        expect(page.get_by_text("Now choose a model for these pictures.")).to_be_visible()
        upload(page, "Weights file", ten)

        # The refusal offers what helps.
        expect(page.get_by_text("tells 10 classes apart, the dataset has 2")).to_be_visible()
        button(page, "Give it a new last layer").click()
        expect(page.get_by_text("so its last layer is new")).to_be_visible()
        wait_for_script(page)
        fill(page, "Epochs", "2")
        fill(page, "Name of the model", "Stripes by me")
        button(page, "Start the training").click()

        # Its model is there by itself, on this page and the next, without a second training.
        expect(button(page, "Look at the heat")).to_be_visible(timeout=5 * MINUTES)
        chosen = page.get_by_role("combobox", name="Trained here, or what a run started from")
        expect(chosen).to_have_value(re.compile("Stripes by me"))
        expect(page.get_by_text("resnet20, 2 classes")).to_be_visible()
        wait_for_script(page)
        no_problem(page)
        (trained,) = (home / "runs").glob("*/before.safetensors")
        new, old = load_checkpoint(trained).model.state_dict(), build("resnet20", 10).state_dict()
        assert new["linear.weight"].shape == (2, 64)
        assert old["linear.weight"].shape == (10, 64)
        with page.expect_download() as arriving:
            button(page, "Weights").click()
        assert arriving.value.suggested_filename == "Stripes_by_me.safetensors"
        assert Path(arriving.value.path()).read_bytes() == trained.read_bytes()
        button(page, "Look at the heat").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Mask")
        slider = page.get_by_role("slider").first
        expect(slider).to_be_visible()
        wait_for_script(page)
        no_problem(page)
        slider.press("ArrowLeft")
        wait_for_script(page)
        chosen_k = float(slider.input_value())
        page.wait_for_url(re.compile(rf"[?&]k={chosen_k:g}(&|$)"))
        button(page, "Finetune with this k").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Finetune")
        button(page, "Finetune for one epoch").click()
        go_on = button(page, "Compare before and after")
        expect(go_on).to_be_visible(timeout=5 * MINUTES)
        wait_for_script(page)
        go_on.click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
        wait_for_script(page)
        no_problem(page)
        button(page, "More").click()
        with page.expect_download() as arriving:
            page.get_by_role("button", name="Weights after").first.click()
        after = load_checkpoint(Path(arriving.value.path())).model.state_dict()
        assert after["linear.weight"].shape == (2, 64)
        assert not torch.equal(after["linear.weight"], new["linear.weight"])
        (finetuned,) = (home / "runs").glob("*/after.safetensors")
        # What was hidden is what Mask showed.
        assert chosen_k == 1.99
        config = json.loads((finetuned.parent / "config.json").read_text())
        assert config["masking"]["k"] == chosen_k
        result = json.loads((finetuned.parent / "result.json").read_text())
        assert [each["k"] for each in result["masking"]["rounds"]] == [chosen_k]
        # The finetune took the trained model as it was: no second training.
        kept = load_checkpoint(finetuned.with_name("before.safetensors")).model.state_dict()
        assert all(torch.equal(kept[name], new[name]) for name in new)
        assert '"train"' not in (finetuned.parent / "events.jsonl").read_text()
