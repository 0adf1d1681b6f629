"""In a real browser: choices made twice are kept, the address follows, Back goes back one page."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from masktune.checkpoints.settings import OPTIONS
from masktune.datasets.catalogue import CATALOGUE
from tests.e2e.conftest import serving, wait_for_script, watching
from tests.masktune.checkpoints.test_settings import NEEDS, OTHER

DEMO = "biased-mnist-5k"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with serving("app/main.py", environment={"MASKTUNE_HOME": str(home)}) as running:
        yield running


def address(page: Page) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page.url).query))


def step(page: Page, name: str):
    """Give the link to a step above the page."""
    return page.locator(f"[class*='st-key-step_'][class*='_{name}'] a").first


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text(text)
    wait_for_script(page)


def choose(page: Page, label: str, words: str) -> None:
    page.get_by_role("combobox", name=label).first.click()
    page.get_by_role("option", name=words, exact=True).click()
    wait_for_script(page)


def test_every_setting_goes_from_the_address_to_the_page_and_back(server, context):
    with watching(context) as watched:
        page = watched.page
        for name in sorted(set(OPTIONS) - {"dataset"}):
            given = {"dataset": DEMO, "model": "train", **NEEDS.get(name, {}), name: OTHER[name]}
            carried = {key: str(value) for key, value in given.items()}
            page.goto(server.url)  # so that the next address is a new tab's
            query = "&".join(f"{key}={value}" for key, value in carried.items())
            page.goto(f"{server.url}/?{query}")
            heading(page, "See what your model leans on")

            pictures = CATALOGUE[carried["dataset"]]
            if not pictures.bundled:
                del carried["model"]  # nothing else is possible
            shown = carried.get("title", pictures.title)
            expect(step(page, "load")).to_contain_text(shown)
            page.wait_for_url(lambda _, said=carried: address(page) == said)


def test_choices_made_twice_are_kept_and_carried_and_back_goes_back_one_page(server, context):
    with watching(context) as watched:
        page = watched.page
        page.goto(f"{server.url}/?dataset={DEMO}")
        heading(page, "See what your model leans on")
        step(page, "mask").click()
        heading(page, "Mask")

        for method in ("gradcam", "layercam") * 2:
            choose(page, "Explainer", method)
            page.wait_for_url(f"**method={method}**")
        choose(page, "Mean and sigma over", "all heat (paper's text)")
        page.wait_for_url("**statistics=all**")

        step(page, "finetune").click()
        heading(page, "Finetune")
        page.wait_for_url("**/finetune?**method=layercam**")
        page.get_by_role("slider", name="Threshold k").press("ArrowLeft")
        page.wait_for_url("**k=1.99**")
        expect(step(page, "mask")).to_contain_text("k = 1.99")

        page.go_back()
        heading(page, "Mask")
        page.wait_for_url("**/mask?**k=1.99**")
        page.go_back()
        heading(page, "See what your model leans on")
        page.go_forward()
        heading(page, "Mask")
        chosen = page.get_by_role("combobox", name="Explainer").first
        expect(chosen).to_have_value("layercam")
