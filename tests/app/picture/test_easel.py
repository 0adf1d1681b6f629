"""What the easel sends and hears: whole pictures, byte by byte, and nothing that makes no sense."""

import base64
import json
import struct

import numpy as np
import pytest

from app.picture.easel import (
    Board,
    File,
    Painted,
    changed,
    encode,
    file_of,
    heard,
    identity,
    mean_colour,
)


def picture(height=2, width=3):
    return np.arange(3 * height * width, dtype=np.uint8).reshape(height, width, 3)


def painted(**known):
    return Painted(id="a", picture=picture(), **known)


def message(**changes):
    pixels = base64.b64encode(bytes(range(100, 118))).decode()
    return {"id": "a", "turn": 7, "pixels": pixels, **changes}


def test_a_board_has_its_pixels_behind_a_header():
    other = picture() + 50
    blob = encode(
        Board(picture=picture(), blurred=picture() + 1, name="<i>", other=other, other_name="b")
    )

    (length,) = struct.unpack_from("<I", blob, 8)
    header = json.loads(blob[12 : 12 + length])

    assert blob[:8] == b"MTEASEL1"
    assert (header["size"], header["name"], header["other"]) == ([2, 3], "<i>", "b")
    assert header["id"] == identity(picture())
    assert header["mean"] == [8, 8, 10]  # 7.5, 8.5 and 9.5, rounded to even
    assert blob[12 + length :] == bytes(range(18)) + bytes(range(1, 19)) + bytes(range(50, 68))


def test_without_another_picture_there_is_no_third_section():
    blob = encode(Board(picture=picture(), blurred=picture(), name=""))

    (length,) = struct.unpack_from("<I", blob, 8)
    assert len(blob) == 12 + length + 36


def test_pictures_of_the_same_bytes_in_another_shape_are_others():
    assert identity(picture(2, 3)) != identity(picture(3, 2))


def test_the_mean_colour_is_of_each_channel():
    white = np.full((1, 2, 3), 255, dtype=np.uint8)
    white[0, 0] = (0, 100, 255)

    assert mean_colour(white) == [128, 178, 255]


def test_a_painted_picture_is_taken_byte_by_byte():
    now = heard(painted(), message())

    assert now.picture.tolist() == np.arange(100, 118).reshape(2, 3, 3).tolist()
    assert (now.turn, now.over) == (7, None)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "text",
        {},
        message(id="b"),
        message(turn="7"),
        message(pixels="AAAA"),
        message(pixels="no base64!"),
        message(pixels=None),
    ],
)
def test_what_makes_no_sense_or_is_of_another_picture_changes_nothing(odd):
    first = painted()

    assert heard(first, odd) is first


def test_a_change_of_the_page_is_the_next_turn_and_says_what_it_was_made_on():
    now = changed(painted(turn=5), picture() + 1)

    assert (now.turn, now.over) == (6, 5)
    assert np.array_equal(now.picture, picture() + 1)
    assert heard(now, message(turn=9)).over is None


def test_a_file_comes_with_its_name_and_what_it_becomes():
    sent = {"name": "a.png", "content": base64.b64encode(b"bytes").decode(), "as": "other"}

    assert file_of(sent) == File(name="a.png", content=b"bytes", becomes="other")
    for odd in (None, {**sent, "as": "x"}, {**sent, "content": "?"}, {**sent, "name": 1}):
        assert file_of(odd) is None
