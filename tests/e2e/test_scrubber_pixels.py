import base64

import numpy as np
import pytest
import torch

from masktune.heat.keep import keep_hot, keep_masks
from masktune.heat.xgradcam import upsample
from masktune.show.painting import heat_over
from tests.e2e.scrubber_app import SHEETS, make_sheet
from tests.e2e.scrubbing import FINGERPRINT, SCRUB_TO, open_sheet, show, slider

KS = (
    *(2.0, 2.01, 1.99, 0.0, 0.01, 3.0, 2.99, 0.5, 0.49, 0.7, 1.0),
    *(1.01, 1.1, 0.33, 1.37, 1.36, 1.33, 2.2, 2.5, 2.62, 2.6, 2.35),
)
"""Thresholds, in an order that moves both ways, by one step and by leaps."""

READ_HIDDEN = """(root, [side]) => [...root.querySelectorAll(".sheet canvas")].map((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const scale = canvas.width / side;
    let bits = "";
    for (let y = 0; y < side; y++) {
        for (let x = 0; x < side; x++) {
            let count = 0;
            for (let v = 0; v < scale; v++) {
                for (let u = 0; u < scale; u++) {
                    const p = (y * scale + v) * canvas.width + x * scale + u;
                    if (data[4 * p + 3] < 255) count++;
                }
            }
            bits += count === 0 ? "0" : count === scale * scale ? "1" : "?";
        }
    }
    return bits;
})"""
"""Every tile's pixels as text: 1 hidden, 0 kept, ? when only part of an enlarged pixel is."""

READ_PIXELS = """(canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let text = "";
    for (const byte of data) text += String.fromCharCode(byte);
    return btoa(text);
}"""


@pytest.mark.parametrize(
    ("name", "statistics", "view", "rule", "columns"),
    [
        ("digits", "positive", "Hidden", keep_masks, 1),
        ("digits", "all", "Model sees", keep_masks, 1),
        ("photos", "positive", "Model sees", keep_masks, 1),
        ("photos", "all", "Hidden", keep_masks, 1),
        ("ties", "positive", "Hidden", keep_masks, 1),
        ("digits", "positive", "Hidden", keep_hot, 1),
        ("photos", "all", "Model sees", keep_hot, 1),
        ("ties", "positive", "Hidden", keep_hot, 1),
        ("digits", "positive", "Model sees", keep_masks, 4),
        ("photos", "positive", "Hidden", keep_masks, 4),
        ("digits", "all", "Hidden", keep_hot, 4),
    ],
)
def test_the_canvas_hides_exactly_the_pixels_of_the_core_in_every_column(
    watched, scrub_server, name, statistics, view, rule, columns
):
    count, side, _ = SHEETS[name]
    sheet = make_sheet(name, statistics, columns=columns)
    heat = [upsample(torch.from_numpy(one.heat), (side, side)) for one in sheet.columns]
    more = {"cold": 1} if rule is keep_hot else {}
    more |= {"sheet": name, "statistics": statistics, "columns": columns}
    page = open_sheet(watched, scrub_server, quiet=1, **more)
    show(page, view)
    root = page.locator(".scrubber")
    shares = []

    differing = 0
    for k in KS:
        slider(page).evaluate(SCRUB_TO, k)
        read = root.evaluate(READ_HIDDEN, [side])
        hidden = np.array([list(bits) for bits in read]).reshape(count, columns, side, side)
        kept = torch.stack([rule(one, k, statistics=statistics) for one in heat], dim=1)
        expected = np.where(~kept.numpy(), "1", "0")
        differing += int((hidden != expected).sum())
        shares.append(float((expected == "1").mean()))

    assert len(set(KS)) >= 20
    assert differing == 0
    assert max(shares) > 0.1 or name == "ties"


def test_every_hidden_pixel_of_a_full_sheet_of_photographs_is_the_cores_in_all_four_columns(
    watched, scrub_server
):
    side = SHEETS["wall"][1]
    sheet = make_sheet("wall", "positive", columns=4)
    heat = [upsample(torch.from_numpy(one.heat), (side, side)) for one in sheet.columns]
    page = open_sheet(watched, scrub_server, quiet=1, sheet="wall", columns=4)
    show(page, "Hidden")

    for k in (2.0, 1.99, 0.5, 2.6):
        slider(page).evaluate(SCRUB_TO, k)

        read = page.locator(".scrubber").evaluate(READ_HIDDEN, [side])
        hidden = np.frombuffer("".join(read).encode(), dtype=np.uint8) == ord("1")
        kept = torch.stack([keep_masks(one, k) for one in heat], dim=1).numpy()
        assert kept.shape == (24, 4, 224, 224)
        assert np.array_equal(hidden.reshape(kept.shape), ~kept)
        assert "?" not in "".join(read)


def read_pixels(canvas):
    """Read a square canvas as (side, side, 3)."""
    data = np.frombuffer(base64.b64decode(canvas.evaluate(READ_PIXELS)), dtype=np.uint8)
    side = round((len(data) / 4) ** 0.5)
    return data.reshape(side, side, 4)[..., :3]


def reach(mask, distance):
    """Widen a mask by a distance in both directions, slowly."""
    wide = np.pad(mask, distance)
    size = len(mask)
    return np.any(
        [
            wide[down : down + size, right : right + size]
            for down in range(2 * distance + 1)
            for right in range(2 * distance + 1)
        ],
        axis=0,
    )


def test_hidden_pixels_are_black_within_a_white_and_a_dark_line_however_k_got_there(
    watched, scrub_server
):
    sheet = make_sheet("digits", "positive")
    page = open_sheet(watched, scrub_server, quiet=1)
    show(page, "Model sees")
    canvas = page.locator(".sheet canvas").nth(4)
    heat = upsample(torch.from_numpy(sheet.columns[0].heat[4:5]), (28, 28))

    for k in (2.0, 0.2, 0.21, 1.4, 3.0, 0.9, 0.88):
        slider(page).evaluate(SCRUB_TO, k)

        keep = keep_masks(heat, k)[0].numpy().repeat(8, axis=0).repeat(8, axis=1)
        expected = sheet.pictures[4].repeat(8, axis=0).repeat(8, axis=1)
        expected[keep & reach(~keep, 2)] = (0x14, 0x20, 0x1D)
        expected[~keep] = 0
        expected[~keep & reach(keep, 2)] = 255
        assert np.array_equal(read_pixels(canvas), expected)


def test_heat_has_the_colours_of_the_report(watched, scrub_server):
    sheet = make_sheet("digits", "positive")
    page = open_sheet(watched, scrub_server, quiet=1)
    show(page, "Heat")
    slider(page).evaluate(SCRUB_TO, 1.0)
    heat = upsample(torch.from_numpy(sheet.columns[0].heat[4:5]), (28, 28))
    keep = keep_masks(heat, 1.0)[0].numpy().repeat(8, axis=0).repeat(8, axis=1)
    expected = heat_over(sheet.pictures[4], heat[0].numpy()).repeat(8, axis=0).repeat(8, axis=1)

    shown = read_pixels(page.locator(".sheet canvas").nth(4))

    plain = ~(reach(keep, 2) & reach(~keep, 2))
    assert plain.mean() > 0.5
    assert np.abs(shown.astype(int) - expected)[plain].max() <= 2


def test_views_differ_and_the_plain_picture_does_not_change_with_k(watched, scrub_server):
    page = open_sheet(watched, scrub_server, quiet=1)
    canvas = page.locator(".sheet canvas").first
    seen = {}

    for view in ("Picture", "Heat", "Hidden", "Model sees"):
        show(page, view)
        seen[view] = []
        for k in (1.0, 0.5):
            slider(page).evaluate(SCRUB_TO, k)
            seen[view].append(canvas.evaluate(FINGERPRINT))

    assert seen["Picture"][0] == seen["Picture"][1]
    assert all(first != second for view, (first, second) in seen.items() if view != "Picture")
    assert len({first for first, _ in seen.values()}) == 4
