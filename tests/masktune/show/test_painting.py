import base64

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from masktune.errors import DataError
from masktune.show.painting import (
    CIVIDIS,
    INK,
    LESS,
    MORE,
    STRIPE,
    WHITE,
    data_uri,
    difference_over,
    enlarged,
    heat_over,
    hidden_over,
    jpeg_bytes,
    model_sees,
    picture_of,
    png_bytes,
    sheet,
)

STOPS = (0x00224E, 0x123570, 0x3B496C, 0x575D6D, 0x707173, 0x8A8678, 0xA59C74, 0xC3B369, 0xE1CC55)


def plain(value, height=1, width=1):
    return np.full((height, width, 3), value, dtype=np.uint8)


def square(side, top, left, bottom, right):
    keep = np.ones((side, side), dtype=bool)
    keep[top:bottom, left:right] = False
    return keep


def test_heat_has_the_256_colours_of_cividis():
    # The published stops, a ninth of the way apart; between two entries a stop may be one off.
    stops = np.array([[stop >> 16, stop >> 8 & 255, stop & 255] for stop in STOPS])
    ours = CIVIDIS[np.rint(np.linspace(0, 255, 10)[:9]).astype(int)].astype(int)

    assert CIVIDIS.shape == (256, 3)
    assert np.abs(ours - stops).max() <= 1
    assert tuple(CIVIDIS[0]) == (0x00, 0x22, 0x4E)
    assert tuple(CIVIDIS[255]) == (0xFE, 0xE8, 0x38)


def test_an_image_tensor_becomes_rows_of_rgb():
    image = torch.zeros(3, 2, 4, dtype=torch.uint8)
    image[0, 1, 3], image[2, 0, 0] = 7, 9

    picture = picture_of(image)

    assert picture.shape == (2, 4, 3)
    assert picture[1, 3].tolist() == [7, 0, 0]
    assert picture[0, 0].tolist() == [0, 0, 9]


def test_heat_is_mixed_over_a_dimmed_grey_picture():
    # Grey 100 dimmed is 80. Heat 0 mixes 12 % of (0, 34, 78), heat 1 mixes 90 % of (254, 232, 56).
    picture = plain(100, width=2)

    over = heat_over(picture, np.array([[0.0, 1.0]]))

    assert over[0, 0].tolist() == [70, 74, 80]
    assert over[0, 1].tolist() == [237, 217, 58]


def test_a_coloured_picture_turns_grey_under_heat():
    red = np.array([[[255, 0, 0]]], dtype=np.uint8)

    over = heat_over(red, np.zeros((1, 1)))

    # Luminance 76 of pure red, dimmed to 61, 12 % of (0, 34, 78) mixed in.
    assert over[0, 0].tolist() == [54, 58, 63]


def test_the_difference_is_amber_where_the_model_looks_more_and_blue_where_less():
    picture = plain(0, width=3)
    before = np.array([[0.0, 1.0, 0.5]])
    after = np.array([[1.0, 0.0, 0.6]])

    over = difference_over(picture, before, after)

    assert over[0, 0].tolist() == [round(0.85 * c) for c in MORE]
    assert over[0, 1].tolist() == [round(0.85 * c) for c in LESS]
    assert over[0, 2].tolist() == [0, 0, 0]


def test_a_difference_grows_from_twelve_hundredths_on():
    # |d| = 0.52 gives alpha 1.15 * 0.40 = 0.46.
    over = difference_over(plain(0), np.array([[0.0]]), np.array([[0.52]]))

    assert over[0, 0].tolist() == [round(0.46 * c) for c in MORE]


def test_hidden_pixels_are_striped_and_their_edge_lined_white_inside_dark_outside():
    # 56 pixels: stripes 4 apart, lines 1 wide. Hidden are rows and columns 10 .. 29.
    keep = square(56, 10, 10, 30, 30)

    over = hidden_over(plain(90, 56, 56), keep)

    assert (over[10, 10:30] == WHITE).all()
    assert (over[9, 9:31] == INK).all()
    assert (over[8, 8] == 90).all()
    inner = over[11:29, 11:29]
    assert {tuple(colour) for colour in inner.reshape(-1, 3).tolist()} == {STRIPE, INK}
    # 38 % of a period of 4: the first two of every four diagonals.
    assert tuple(over[12, 12]) == STRIPE
    assert tuple(over[12, 13]) == STRIPE
    assert tuple(over[12, 14]) == INK
    assert tuple(over[13, 12]) == STRIPE


def test_stripes_run_at_45_degrees_and_are_a_fourteenth_of_the_tile_apart():
    keep = np.zeros((224, 224), dtype=bool)

    striped = (hidden_over(plain(0, 224, 224), keep) == STRIPE).all(axis=2)

    assert (striped[0, 16:32] == striped[0, :16]).all()
    assert (striped[5, :100] == striped[0, 5:105]).all()
    assert striped[0, :16].sum() == 7


def test_the_frame_border_is_no_edge():
    over = hidden_over(plain(90, 56, 56), square(56, 0, 0, 20, 56))

    assert not (over[0] == WHITE).all(axis=1).any()
    assert (over[19] == WHITE).all()


def test_where_nothing_is_hidden_the_picture_stays_as_it_is():
    picture = np.arange(28 * 28 * 3, dtype=np.uint8).reshape(28, 28, 3)
    keep = np.ones((28, 28), dtype=bool)

    assert (hidden_over(picture, keep) == picture).all()
    assert (model_sees(picture, keep) == picture).all()


def test_the_model_sees_black_where_pixels_are_hidden_and_a_line_around_it():
    sees = model_sees(plain(90, 56, 56), square(56, 10, 10, 30, 30))

    assert (sees[12:28, 12:28] == 0).all()
    assert (sees[10, 10:30] == WHITE).all()
    assert (sees[40:] == 90).all()


def test_a_soft_mask_darkens_without_a_line():
    sees = model_sees(plain(200, width=2), np.array([[0.25, 1.0]], dtype=np.float32))

    assert sees[0].tolist() == [[50, 50, 50], [200, 200, 200]]


@pytest.mark.parametrize("paint", [heat_over, hidden_over, model_sees])
def test_a_map_of_another_size_is_refused(paint):
    with pytest.raises(DataError, match=r"\(4, 4\) pixels does not fit a map of \(2, 2\)"):
        paint(plain(0, 4, 4), np.zeros((2, 2), dtype=bool))


def test_no_function_changes_the_picture_it_is_given():
    picture = plain(90, 56, 56)
    keep = square(56, 10, 10, 30, 30)

    hidden_over(picture, keep)
    model_sees(picture, keep)
    heat_over(picture, keep.astype(np.float64))

    assert (picture == 90).all()


def test_a_small_picture_grows_by_a_whole_factor_without_blur():
    picture = np.array([[[0, 0, 0], [10, 20, 30]]], dtype=np.uint8)

    large = enlarged(picture, 7)

    assert large.shape == (3, 6, 3)
    assert (large[:, :3] == 0).all()
    assert (large[:, 3:] == (10, 20, 30)).all()


def test_a_photograph_is_resized_to_the_wanted_side():
    assert enlarged(plain(50, 100, 200), 300).shape == (150, 300, 3)
    assert enlarged(plain(50, 100, 200), 50).shape == (25, 50, 3)


def test_shrinking_averages_what_falls_together():
    picture = np.zeros((128, 128, 3), dtype=np.uint8)
    picture[::2] = 100

    assert (enlarged(picture, 64) == 50).all()


def test_a_keep_stays_hard_edged_at_any_size():
    keep = np.zeros((100, 100), dtype=bool)
    keep[:, 50:] = True

    large = enlarged(keep, 150)

    assert large.dtype == np.bool_
    assert not large[:, :75].any()
    assert large[:, 75:].all()


def test_a_lone_hidden_pixel_grows_to_a_whole_square():
    keep = np.ones((70, 70), dtype=bool)
    keep[20, 30] = False

    large = enlarged(keep, 210)

    assert not large[60:63, 90:93].any()
    assert (~large).sum() == 9


@settings(deadline=None)
@given(height=st.integers(1, 200), width=st.integers(1, 200), side=st.integers(1, 260))
def test_a_picture_and_its_keep_are_enlarged_to_the_same_size(height, width, side):
    picture, keep = plain(1, height, width), np.ones((height, width), dtype=bool)

    large = enlarged(picture, side)

    assert large.shape[:2] == enlarged(keep, side).shape
    assert max(large.shape[:2]) <= side


def test_tiles_lie_row_after_row_and_the_rest_is_black():
    tiles = [plain(value, 2, 3) for value in (1, 2, 3)]

    laid = sheet(tiles, 2)

    assert laid.shape == (4, 6, 3)
    assert laid[0, :, 0].tolist() == [1, 1, 1, 2, 2, 2]
    assert laid[2, :, 0].tolist() == [3, 3, 3, 0, 0, 0]


@pytest.mark.parametrize(
    ("tiles", "columns"), [([], 2), ([plain(0, 2, 2), plain(0, 3, 2)], 2), ([plain(0)], 0)]
)
def test_a_sheet_needs_tiles_of_one_size_and_a_column(tiles, columns):
    with pytest.raises(DataError, match="make no sheet"):
        sheet(tiles, columns)


def decoded(content):
    return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]


def test_a_png_gives_back_every_pixel_in_its_colour():
    picture = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)

    assert (decoded(png_bytes(picture)) == picture).all()


def test_a_jpeg_keeps_the_colours_nearly():
    picture = np.zeros((32, 32, 3), dtype=np.uint8)
    picture[..., 0] = 200

    assert np.abs(decoded(jpeg_bytes(picture)).astype(int) - picture).max() < 6


@pytest.mark.parametrize(("encode", "kind"), [(png_bytes, "png"), (jpeg_bytes, "jpeg")])
def test_a_data_uri_names_its_kind_and_holds_the_file(encode, kind):
    content = encode(plain(5, 8, 8))

    head, body = data_uri(content).split(",")

    assert head == f"data:image/{kind};base64"
    assert base64.b64decode(body) == content
