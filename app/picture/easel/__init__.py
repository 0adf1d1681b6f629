"""The easel: one picture that a hand paints on in the browser.

The browser gets the picture once and paints by itself; nothing is sent before the hand lifts, then
the whole changed picture comes to Python, byte by byte as it is shown. What the page changes by
itself goes to the browser through a second, invisible mount, as with the scrubber.
"""

import base64
import binascii
import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import streamlit as st

from masktune.show.painting import Picture

MAGIC = b"MTEASEL1"
HERE = Path(__file__).parent

As = Literal["picture", "other"]
"""What a picture that comes in becomes: the one that is asked about, or one to cut patches from."""


def _read(*names: str) -> str:
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)


_mount = st.components.v2.component(
    "masktune_easel",
    html=_read("easel.html"),
    css=_read("easel.css"),
    js=_read("painting.js", "easel.js"),
)
_tell = st.components.v2.component("masktune_easel_tell", js=_read("tell.js"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Board:
    """What stands on the easel.

    Attributes:
        picture: (H, W, 3) uint8, what the model sees.
        blurred: likewise, what the blurring brush paints.
        name: what the picture is.
        other: likewise (H, W, 3), a picture to cut patches from; None for none.
        other_name: what that is.
        examples: address, name and data URI of pictures that can be opened by a click.
    """

    picture: Picture
    blurred: Picture
    name: str
    other: Picture | None = None
    other_name: str = ""
    examples: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Painted:
    """A picture on the easel as it is now.

    Attributes:
        id: identity of the picture that was opened.
        picture: (H, W, 3) uint8, as it is shown.
        turn: number of the last change, the browser's or the page's; 0 for the untouched picture.
        over: the turn that a change of the page was made on; None where the browser made it.
    """

    id: str
    picture: Picture
    turn: int = 0
    over: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that was dropped, pasted or chosen."""

    name: str
    content: bytes
    becomes: As


def identity(picture: Picture) -> str:
    """Name a picture by its size and pixels."""
    return hashlib.blake2b(
        repr(picture.shape).encode() + picture.tobytes(), digest_size=8
    ).hexdigest()


def encode(board: Board) -> bytes:
    """Pack a board for the browser: the same board, the same bytes, which are sent once.

    Little-endian: 8 bytes magic, uint32 length of the header, the header as JSON, then the pixels
    of the picture, of the blurred one and of the other one, if any, 3 bytes each.
    """
    height, width, _ = board.picture.shape
    other = b"" if board.other is None else board.other.tobytes()
    header = {
        "id": identity(board.picture),
        "size": [height, width],
        "name": board.name,
        "mean": mean_colour(board.picture),
        "other": board.other_name if other else "",
        "otherId": "" if board.other is None else identity(board.other),
        "examples": board.examples,
    }
    text = json.dumps(header, ensure_ascii=False).encode()
    pixels = board.picture.tobytes() + board.blurred.tobytes() + other
    return MAGIC + struct.pack("<I", len(text)) + text + pixels


def mean_colour(picture: Picture) -> list[int]:
    """Return the mean colour of a picture, rounded to bytes."""
    return [int(value) for value in np.rint(picture.reshape(-1, 3).mean(axis=0))]


def easel(
    blob: bytes,
    painted: Painted,
    *,
    key: str,
    on_paint: Callable[[Painted], None],
    on_open: Callable[[str, As], None],
    on_file: Callable[[File], None],
) -> None:
    """Draw the easel.

    Args:
        blob: what ``encode`` gave.
        painted: the picture as Python knows it.
        key: unique name.
        on_paint: told, before the script runs, of what a hand has changed.
        on_open: told of an example that was clicked.
        on_file: told of a file that came in.
    """

    def hear(name: str) -> object:
        return st.session_state[key].get(name)

    def paint() -> None:
        if (now := heard(painted, hear("painted"))) is not painted:
            on_paint(now)

    def open_example() -> None:
        match hear("open"):
            case {"where": str() as where, "as": "picture" | "other" as becomes}:
                on_open(where, becomes)

    def take_file() -> None:
        if (file := file_of(hear("file"))) is not None:
            on_file(file)

    with st.container(gap=None):
        _tell(key=f"{key}_told", data=_told(painted))
        _mount(
            key=key,
            data=blob,
            on_painted_change=paint,
            on_open_change=open_example,
            on_file_change=take_file,
        )


def tell_answers(painted: Painted, words: str, *, key: str) -> None:
    """Say what the models answer under the picture, where the eyes of who paints are."""
    _tell(key=f"{key}_answers", data={"id": painted.id, "turn": painted.turn, "words": words})


def heard(painted: Painted, message: object) -> Painted:
    """Take in a message of the browser; one that makes no sense, or is of another picture, is not.

    It is a mapping of id, turn and pixels (base64 of 3 bytes each), as JSON gave it.
    """
    match message:
        case {"id": painted.id, "turn": int() as turn, "pixels": str() as text}:
            pixels = _bytes(text)
            if pixels is not None and len(pixels) == painted.picture.size:
                picture = np.frombuffer(pixels, dtype=np.uint8).reshape(painted.picture.shape)
                return replace(painted, picture=picture, turn=turn, over=None)
    return painted


def changed(painted: Painted, picture: Picture) -> Painted:
    """Return what stands on the easel once the page has changed the picture by itself."""
    return replace(painted, picture=picture, turn=painted.turn + 1, over=painted.turn)


def file_of(message: object) -> File | None:
    """Return the file in a message of the browser; None where there is none."""
    match message:
        case {
            "name": str() as name,
            "content": str() as text,
            "as": "picture" | "other" as becomes,
        }:
            content = _bytes(text)
            if content is not None:
                return File(name=name, content=content, becomes=becomes)
    return None


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


def _told(painted: Painted) -> dict[str, object]:
    told: dict[str, object] = {"id": painted.id, "turn": painted.turn}
    if painted.over is not None:
        told |= {
            "over": painted.over,
            "pixels": base64.b64encode(painted.picture.tobytes()).decode(),
        }
    return told
