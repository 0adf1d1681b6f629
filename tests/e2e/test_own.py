"""Somebody's own pictures and weights, uploaded, from the first heat to weights for their code."""

import io
import zipfile
from pathlib import Path

import pytest
import torch
from PIL import Image
from playwright.sync_api import Page, expect

from masktune.models.build import build
from tests.e2e.conftest import serving, wait_for_script, watching
from tests.e2e.test_journey import MINUTES, button, no_problem


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as running:
        yield running


@pytest.fixture
def pictures(tmp_path) -> Path:
    """Give a ZIP of 20 + 20 stripes, upright and lying, one folder a class, and a broken file."""
    path = tmp_path / "stripes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20):
            for name, size in (("upright", (4, 32)), ("lying", (32, 4))):
                picture = Image.new("RGB", (32, 32), (10 * number, 40, 90))
                picture.paste((255, 255, 255), (5, 5, 5 + size[0] // 2, 5 + size[1] // 2))
                file = io.BytesIO()
                picture.save(file, "PNG")
                archive.writestr(f"stripes/{name}/{number}.png", file.getvalue())
        archive.writestr("stripes/lying/broken.png", b"<html>")
        archive.writestr("__MACOSX/stripes/._lying", b"junk")
    return path


@pytest.fixture
def weights(tmp_path) -> Path:
    """Give a resnet20 as a training script of somebody else saved it."""
    state = {f"module.{name}": value for name, value in build("resnet20", 2).state_dict().items()}
    path = tmp_path / "best.pth"
    torch.save({"state_dict": state, "best_prec1": 50.0}, path)
    return path


def upload(page: Page, label: str, path: Path) -> None:
    place = page.get_by_test_id("stFileUploader").filter(has_text=label)
    place.locator("input[type=file]").set_input_files(path)


def test_an_uploaded_zip_and_checkpoint_reach_a_finetune_and_go_home_in_their_own_layout(
    server, context, pictures, weights
):
    with watching(context) as watched:
        page = watched.page
        page.goto(f"{server.url}/load")
        wait_for_script(page)
        page.get_by_text("Upload", exact=True).first.click()
        upload(page, "ZIP of pictures", pictures)
        expect(page.get_by_text("Weights file")).to_be_visible()
        upload(page, "Weights file", weights)

        expect(page.get_by_text("resnet20, 2 classes")).to_be_visible()
        expect(page.get_by_text("1 file left out, unusable")).to_be_visible()
        expect(page.get_by_text("Layer for heat: layer3")).to_be_visible()
        wait_for_script(page)
        no_problem(page)
        button(page, "Look at the heat").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Mask")
        expect(page.get_by_role("slider").first).to_be_visible()
        wait_for_script(page)
        no_problem(page)
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
            button(page, "Weights after, as best.pth came").click()
        saved = torch.load(arriving.value.path(), weights_only=True)
        before = torch.load(weights, weights_only=True)
        assert saved["best_prec1"] == 50.0
        assert saved["state_dict"].keys() == before["state_dict"].keys()
        moved = "module.linear.weight"
        assert not torch.equal(saved["state_dict"][moved], before["state_dict"][moved])
