"""One picture in a real browser: painted, patched, brought as a file; what is shown is asked."""

import base64
import io
import re
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import expect

from masktune.checkpoints.checkpoint import bundled_checkpoint, load_checkpoint
from masktune.config import MaskingConfig, RunConfig
from masktune.data.fills import blurred
from masktune.data.frame import Frame
from masktune.data.images import read_framed
from masktune.datasets.catalogue import load
from masktune.heat.layers import heat_layer
from masktune.heat.one_picture import answer_picture, hide_hot
from masktune.pipeline import run
from masktune.recipes import recipe
from masktune.runs.open import OpenRun
from masktune.show.painting import picture_of
from masktune.show.wording import percent
from tests.e2e.conftest import draw, serving, wait_for_script

DEMO = "biased-mnist-5k"

READ = """(canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let text = "";
    for (const byte of data) text += String.fromCharCode(byte);
    return btoa(text);
}"""

BRING = """(root, [kind, name, content]) => {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    const files = new DataTransfer();
    files.items.add(new File([bytes], name, { type: "image/png" }));
    const options = { bubbles: true, cancelable: true, composed: true };
    root.dispatchEvent(
        kind === "paste"
            ? new ClipboardEvent(kind, { ...options, clipboardData: files })
            : new DragEvent(kind, { ...options, dataTransfer: files }),
    );
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base, home = recipe(DEMO), tmp_path_factory.mktemp("home")
    config = RunConfig(
        dataset=DEMO,
        recipe=base.name,
        arch=base.arch,
        training=base.training,
        masking=MaskingConfig(),
        model="bundled",
    )
    return run(config, out=home / "runs" / "demo").folder


@pytest.fixture(scope="module")
def server(folder, browser):
    environment = {"MASKTUNE_HOME": str(folder.parents[1])}
    with serving("app/main.py", environment=environment) as running:
        yield running


@pytest.fixture(scope="module")
def digits():
    return load(DEMO).validation


@pytest.fixture(scope="module")
def number(digits):
    """Give a picture with the square of its class."""
    return int(((digits.attributes == 1) & (digits.labels == 0)).nonzero()[0])


@pytest.fixture
def page(watched, server, number):
    watched.page.goto(f"{server.url}/picture?dataset={DEMO}&run=demo&picture=validation/{number}")
    watched.page.wait_for_selector(".easel.ready")
    wait_for_script(watched.page)
    expect(watched.page.locator(".answers")).to_contain_text("After: ")
    watched.traffic.forget()
    return watched.page


def canvas(page, board="main"):
    return page.locator(f".board.{board} canvas").first


def pixels(page, board="main"):
    data = np.frombuffer(base64.b64decode(canvas(page, board).evaluate(READ)), dtype=np.uint8)
    side = round((len(data) / 4) ** 0.5)
    assert (data[3::4] == 255).all()
    return data.reshape(side, side, 4)[..., :3]


def spot(page, place, board="main"):
    """Give where the middle of a picture's pixel, (column, row), is on the page."""
    box, (column, row) = canvas(page, board).bounding_box(), place
    unit = box["width"] / 28
    return box["x"] + (column + 0.5) * unit, box["y"] + (row + 0.5) * unit


def drag(page, start, end, board="main"):
    canvas(page, board).scroll_into_view_if_needed()
    page.mouse.move(*spot(page, start, board))
    page.mouse.down()
    page.mouse.move(*spot(page, end, board), steps=6)


def paint(page, start, end):
    drag(page, start, end)
    page.mouse.up()
    answered(page)


def choose(page, label):
    page.get_by_role("radio", name=label, exact=True).check()


def answered(page):
    wait_for_script(page)
    expect(page.locator(".answers")).to_contain_text("After: ")


def said(folder, picture):
    """Ask both models what they say about a picture, in the words of the page."""
    view = OpenRun(folder)
    before = load_checkpoint(bundled_checkpoint(DEMO)).model
    image = torch.from_numpy(picture.copy()).permute(2, 0, 1).contiguous()
    words = []
    for name, model in (("Before", before), ("After", view.after.model)):
        one = answer_picture(model, image, layer=None, preprocess=view.preprocess)
        words.append(f"{name}: {view.bundle.card.classes[one.answer]}, {percent(one.confidence)}.")
    return " ".join(words)


def test_both_models_answer_to_exactly_what_is_painted_once_the_hand_lifts(
    page, watched, folder, digits, number
):
    untouched = picture_of(digits[number].image)
    assert np.array_equal(pixels(page), untouched)
    expect(page.locator(".answers")).to_have_text(said(folder, untouched))

    drag(page, (1, 1), (5, 5))
    draw(page)
    page.wait_for_timeout(400)
    shown = pixels(page)
    sent_while_held = list(watched.traffic.sent)
    page.mouse.up()
    expect(page.locator(".answers")).to_have_text(said(folder, shown))

    assert sent_while_held == []
    assert len(watched.traffic.sent) == 1
    assert np.array_equal(pixels(page), shown)
    assert (shown != untouched).any()
    assert said(folder, shown) != said(folder, untouched)
    wait_for_script(page)  # the answers are told before the button is drawn
    with page.expect_download() as file:
        page.get_by_role("button", name="Picture and figures (ZIP)").click()
    with zipfile.ZipFile(file.value.path()) as archive:
        saved = Image.open(io.BytesIO(archive.read("picture.png")))
        assert np.array_equal(np.asarray(saved), shown)


def test_the_button_that_copies_a_link_says_what_it_leaves_out(page):
    button = page.get_by_role("button", name="Copy link")

    expect(button).to_have_attribute("title", "Copy a link to this view, without what you painted")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.resolve() }")
    button.click()

    expect(page.get_by_text("Link copied, without what you painted")).to_be_visible()


def test_the_narrowest_brush_paints_the_pixel_under_it_also_beside_its_middle(page):
    first = pixels(page)
    row, column = np.argwhere(first.min(axis=2) > 200)[0]
    page.locator(".size").fill("1")
    canvas(page).scroll_into_view_if_needed()
    page.mouse.move(*spot(page, (column - 0.4, row - 0.4)))
    page.mouse.down()
    page.mouse.up()
    answered(page)

    expected = first.copy()
    expected[row, column] = 0
    assert np.array_equal(pixels(page), expected)


def test_the_blurring_brush_paints_the_picture_out_of_focus_pixel_by_pixel(page, digits, number):
    image = digits[number].image
    soft = picture_of((blurred(image[None] / 255) * 255).round().to(torch.uint8)[0])
    choose(page, "Blur")
    page.locator(".size").fill("1")

    paint(page, (2, 3), (9, 3))

    expected = picture_of(image).copy()
    expected[3, 2:10] = soft[3, 2:10]
    assert (expected != picture_of(image)).any()
    assert np.array_equal(pixels(page), expected)


def test_every_tool_works_by_keys(page, digits, number):
    untouched = picture_of(digits[number].image)
    canvas(page).focus()
    for key, times in (("[", 10), ("ArrowLeft", 14), ("ArrowUp", 14), ("ArrowDown", 2)):
        for _ in range(times):
            page.keyboard.press(key)
    expect(page.locator(".said")).to_have_text("Column 1, row 3.")
    choose(page, "Mean colour")
    canvas(page).focus()

    page.keyboard.down("Enter")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.up("Enter")
    answered(page)
    mean = np.rint(untouched.reshape(-1, 3).mean(axis=0))
    expected = untouched.copy()
    expected[2, 0:4] = mean
    assert np.array_equal(pixels(page), expected)

    choose(page, "Copy a patch")
    canvas(page).focus()
    page.keyboard.press("Enter")  # from column 4 on
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    answered(page)
    stamped = pixels(page)
    assert (stamped != expected).any(axis=2).sum() <= 2
    assert (stamped[6, 2:4] == mean).all()

    page.keyboard.press("Escape")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    answered(page)
    assert np.array_equal(pixels(page), untouched)
    page.keyboard.press("Control+Shift+z")
    answered(page)
    assert np.array_equal(pixels(page), expected)


def test_a_patch_is_moved_and_one_of_another_picture_is_stamped(page, digits, number):
    untouched = picture_of(digits[number].image)
    choose(page, "Move a patch")
    drag(page, (0, 0), (4, 4))
    page.mouse.up()
    page.mouse.move(*spot(page, (20, 23)))
    page.mouse.down()
    page.mouse.up()
    answered(page)
    moved = untouched.copy()
    moved[0:5, 0:5] = 0
    moved[21:26, 18:23] = untouched[0:5, 0:5]
    assert np.array_equal(pixels(page), moved)

    choose(page, "one to cut patches from")
    page.locator(".examples button").nth(1).click()
    expect(page.locator(".board.other")).to_be_visible()
    other = pixels(page, "other")
    assert np.array_equal(pixels(page), moved)
    choose(page, "Copy a patch")
    drag(page, (8, 8), (18, 18), "other")
    page.mouse.up()
    page.mouse.move(*spot(page, (13, 13)))
    page.mouse.down()
    page.mouse.up()
    answered(page)
    moved[8:19, 8:19] = other[8:19, 8:19]
    assert np.array_equal(pixels(page), moved)


def test_a_bad_file_loses_no_stroke_and_a_photograph_is_seen_as_the_model_sees_it(
    page, folder, number, tmp_path
):
    paint(page, (1, 1), (20, 20))
    painted = pixels(page)
    bad = tmp_path / "notes.png"
    bad.write_text("no picture")
    photo = tmp_path / "photo.jpg"
    colours = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(colours).resize((900, 600)).save(photo, exif=turned)

    page.locator("input.file").set_input_files(bad)
    problem = page.get_by_role("alert").filter(has_text="cannot be read as a picture")
    expect(problem).to_contain_text("what you painted stay")
    assert np.array_equal(pixels(page), painted)
    page.get_by_role("button", name="Undo").click()
    answered(page)
    page.get_by_role("button", name="Redo").click()
    answered(page)
    assert np.array_equal(pixels(page), painted)

    page.locator("input.file").set_input_files(photo)
    expect(page.locator(".board.main figcaption")).to_have_text("photo.jpg")
    answered(page)
    seen = read_framed(photo, Frame(resize=28, crop=(28, 28)))
    assert np.array_equal(pixels(page), picture_of(seen))
    page.wait_for_url("**picture=file**")

    page.get_by_label("Number", exact=True).fill(str(number))
    page.keyboard.press("Enter")
    expect(page.locator(".answers")).to_have_text(said(folder, painted))
    assert np.array_equal(pixels(page), painted)
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()


@pytest.mark.parametrize("kind", ["paste", "drop"])
def test_pictures_are_pasted_and_dropped(page, kind):
    file = io.BytesIO()
    Image.new("RGB", (50, 50), (200, 40, 0)).save(file, format="PNG")
    content = base64.b64encode(file.getvalue()).decode()

    page.locator(".easel").evaluate(BRING, [kind, "red.png", content])

    expect(page.locator(".board.main figcaption")).to_have_text("red.png")
    answered(page)
    assert (pixels(page) == (200, 40, 0)).all()


def test_a_picture_that_misses_the_easel_is_taken_too(page):
    file = io.BytesIO()
    Image.new("RGB", (50, 50), (200, 40, 0)).save(file, format="PNG")
    content = base64.b64encode(file.getvalue()).decode()

    page.get_by_role("heading", level=1).evaluate(BRING, ["drop", "red.png", content])

    expect(page.locator(".board.main figcaption")).to_have_text("red.png")


def test_what_is_dropped_and_no_file_that_can_be_read_is_said(page):
    before = page.locator(".board.main figcaption").inner_text()
    problem = page.locator(".easel .problem")

    page.locator(".easel").evaluate(
        """(root) => {
            const link = new DataTransfer();
            link.setData("text/uri-list", "https://example.org/a.png");
            const options = { bubbles: true, cancelable: true, composed: true };
            root.dispatchEvent(new DragEvent("drop", { ...options, dataTransfer: link }));
        }"""
    )
    expect(problem).to_have_text(re.compile("^What was dropped is no file"))

    page.evaluate("() => { Blob.prototype.arrayBuffer = () => Promise.reject(new Error('gone')) }")
    page.locator(".easel").evaluate(BRING, ["drop", "holiday", ""])
    expect(problem).to_have_text("“holiday” cannot be read. Choose a picture file.")
    expect(page.locator(".board.main figcaption")).to_have_text(before)


def test_hiding_what_is_hot_shows_the_pixels_that_the_core_hides_and_can_be_undone(
    page, folder, digits, number
):
    view, image = OpenRun(folder), digits[number].image
    model = load_checkpoint(bundled_checkpoint(DEMO)).model
    layer = heat_layer(model, None, size=(28, 28))
    heat = answer_picture(model, image, layer=layer, preprocess=view.preprocess).heat
    hidden, _ = hide_hot(image, heat, k=2.0)

    page.get_by_role("button", name="Hide what before looks at").click()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    answered(page)
    assert np.array_equal(pixels(page), picture_of(hidden))

    page.get_by_role("button", name="Undo").click()
    answered(page)
    assert np.array_equal(pixels(page), picture_of(image))


def test_what_would_flip_an_answer_is_said_and_hidden_by_a_click(page, digits, number):
    page.get_by_role("button", name="What would flip it").click()
    expect(page.get_by_text("Before: ", exact=False).last).to_be_visible()
    page.get_by_role("button", name="Hide these").first.click()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    answered(page)

    expect(page.locator(".answers")).to_contain_text("Before: 5–9")
