"""In a real browser: no picture of a sheet shows a part of another, however large it is drawn."""

import cv2
import numpy as np
import pytest

from app.shared.pages import LOOK
from masktune.show.markup import rows_html, sheet_html
from masktune.show.painting import Picture
from tests.e2e.conftest import open_context

ACROSS, LINES = 8, 3
SHEETS = {
    "sheet": lambda tiles, photos: sheet_html(
        tiles, [""] * len(tiles), labels=[""] * len(tiles), across=ACROSS, photos=photos
    ),
    "rows": lambda tiles, photos: rows_html(
        {str(line): tiles[line * ACROSS :][:ACROSS] for line in range(LINES)},
        [""] * ACROSS,
        labels=[""] * ACROSS,
        photos=photos,
    ),
}


def reds_and_blues() -> list[Picture]:
    """Give tiles like the fields of a chessboard, red and blue."""
    colours = np.array([(255, 0, 0), (0, 0, 255)], dtype=np.uint8)
    fields = [(place // ACROSS + place) % 2 for place in range(ACROSS * LINES)]
    return [np.tile(colours[field], (224, 224, 1)) for field in fields]


@pytest.mark.parametrize("photos", [False, True])
@pytest.mark.parametrize("kind", SHEETS)
@pytest.mark.parametrize("scale", [1, 1.25, 1.5, 2])
def test_no_picture_of_a_sheet_shows_a_line_of_the_next(browser, kind, scale, photos):
    context = open_context(browser, device_scale_factor=scale)
    page = context.new_page()
    sheet = SHEETS[kind](reds_and_blues(), photos)
    style = f"{LOOK.read_text('utf-8')} .mt .tile {{ border-radius: 0 }}"
    page.set_content(
        f'<style>{style}</style><div class="mt" style="margin-top: 0.4px">{sheet}</div>'
    )
    bled = []
    for width in (641, 700, 853, 1001, 1111, 1280, 1440):
        page.set_viewport_size({"width": width, "height": 1000})
        shot = cv2.imdecode(np.frombuffer(page.screenshot(), np.uint8), cv2.IMREAD_COLOR_RGB)
        boxes = page.locator(".tile").evaluate_all(
            "tiles => tiles.map((tile) => tile.getBoundingClientRect().toJSON())"
        )
        seen = 0
        for place, box in enumerate(boxes):
            sides = (box[side] * scale for side in ("top", "bottom", "left", "right"))
            top, bottom, left, right = (round(side) for side in sides)
            pixels = shot[top:bottom, left:right].astype(int)
            if not pixels.size:
                continue  # on a narrow screen rows scroll sideways
            seen += 1
            its, other = (0, 2) if (place // ACROSS + place) % 2 == 0 else (2, 0)
            if (pixels[..., other] > pixels[..., its]).any():
                bled.append((width, place))
        assert seen >= 2 * LINES
    context.close()
    assert bled == []
