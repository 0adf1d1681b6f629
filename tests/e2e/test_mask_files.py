"""Keep maps and masked pictures, taken from Mask at the k that is set there."""

import csv
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import expect

from masktune.checkpoints.checkpoint import bundled_checkpoint, load_checkpoint
from masktune.data.preprocess import Preprocess
from masktune.data.splits import part
from masktune.datasets.catalogue import load
from masktune.heat.explain import explain
from masktune.heat.keep import keep_masks
from masktune.heat.layers import heat_layer
from tests.e2e.conftest import serving, wait_for_script
from tests.e2e.test_journey import MINUTES

DEMO = "biased-mnist-5k"


@pytest.fixture
def server(tmp_path_factory):
    home = str(tmp_path_factory.mktemp("home"))
    with serving("app/main.py", environment={"MASKTUNE_HOME": home}) as running:
        yield running


def arrived(page, name: str) -> tuple[str, zipfile.ZipFile]:
    wait_for_script(page)  # a click on what is drawn anew is lost
    with page.expect_download() as arriving:
        page.get_by_role("button", name=name, exact=True).click()
    content = Path(arriving.value.path()).read_bytes()
    return arriving.value.suggested_filename, zipfile.ZipFile(io.BytesIO(content))


def read(archive: zipfile.ZipFile, folder: str, number: int):
    return np.asarray(Image.open(io.BytesIO(archive.read(f"{folder}/{number:06d}.png"))))


def check(archive: zipfile.ZipFile, k: float, numbers: list[int]) -> None:
    """Compare files with what the core hides at k in the training pictures of these numbers."""
    data, model = load(DEMO), load_checkpoint(bundled_checkpoint(DEMO)).model
    few = part(data.train, torch.tensor(numbers))
    layer = heat_layer(model, None, size=(28, 28))
    usual = Preprocess(mean=data.card.mean, std=data.card.std)
    store = explain(model, few, layer=layer, preprocess=usual)
    keep = keep_masks(store.fine(torch.arange(len(numbers))), k).numpy()
    assert 0 < keep.mean() < 1
    for row, number in enumerate(numbers):
        image = few.images.batch([row])[0].permute(1, 2, 0).numpy()
        assert np.array_equal(read(archive, "keep", number), keep[row] * 255)
        assert np.array_equal(read(archive, "masked", number), image * keep[row][..., None])


def test_maps_of_the_sheet_and_of_the_whole_set_are_those_of_the_k_that_was_dragged_to(
    server, watched
):
    page = watched.page
    page.goto(f"{server.url}/mask?dataset={DEMO}&mask_pictures=6&k=1.51")
    page.wait_for_selector(".scrubber.ready")
    wait_for_script(page)
    page.get_by_role("slider", name="Threshold").press("ArrowLeft")
    expect(page.get_by_role("button", name="of this sheet at k = 1.5 (ZIP)")).to_be_visible()
    wait_for_script(page)

    name, sheet = arrived(page, "Keep maps and masked pictures of this sheet at k = 1.5 (ZIP)")

    assert name == f"{DEMO}-sheet-k1.5.zip"
    lines = csv.DictReader(io.TextIOWrapper(sheet.open("index.csv"), "utf-8"))
    numbers = [int(line["position"]) for line in lines]
    assert len(numbers) == 6
    check(sheet, 1.5, numbers)

    make = page.get_by_role("button", name="Make maps of all 3,500 at k = 1.5 (ZIP)")
    look = page.get_by_role("button", name="Look at all of them")
    expect(make.or_(look)).to_be_visible()
    if look.is_visible():  # where that would take more than a minute
        look.click()
    make.click(timeout=5 * MINUTES)
    made = page.get_by_role("button", name="Maps of all 3,500 at k = 1.5 (ZIP)", exact=True)
    expect(made).to_be_visible(timeout=5 * MINUTES)
    name, every = arrived(page, "Maps of all 3,500 at k = 1.5 (ZIP)")

    assert name == f"{DEMO}-k1.5.zip"
    assert len(every.namelist()) == 2 * 3500 + 2
    check(every, 1.5, [*numbers, 0, 3499])
