"""What the scrubber's browser side receives: one blob a sheet, and nothing that scrubbing changes.

Layout, little-endian: 8 bytes magic, 16 bytes identity (hexadecimal digits of a digest of all that
follows), uint16 count of pictures, uint16 count of columns, uint32 length of the header, the header
as JSON, then the sections it names by offset and length. Every section starts at a multiple of 8,
so the browser reads floats in place.
"""

import hashlib
import json
import math
import struct
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from masktune.errors import DataError
from masktune.show.painting import CIVIDIS, SMALL, Picture, jpeg_bytes, png_bytes, sheet

MAGIC = b"MTSCRUB2"
PREAMBLE = 32
COLUMNS = 4
"""Columns a sheet has at most."""

MOST = 96
"""Prints a sheet holds at most, pictures times columns: more would not repaint within a frame."""

BLOCK = 16
"""JPEG codes colour in 16 x 16 blocks; tiles of whole blocks do not bleed into each other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """What one model says about the pictures of a sheet, by one explainer at one layer.

    Attributes:
        heat: (N, h, w) float32, coarse, as ``HeatStore`` holds it.
        mu: (N,) float64, mean heat of each picture as ``heat_statistics`` gives it.
        sigma: (N,) float64, its standard deviation.
        answers: the model's answer on the whole picture, by name.
        confidences: (N,) the probability of that answer, in [0, 1].
        title: what tells it from the other columns; not shown where it is the only one.
    """

    heat: npt.NDArray[np.float32]
    mu: npt.NDArray[np.float64]
    sigma: npt.NDArray[np.float64]
    answers: tuple[str, ...]
    confidences: npt.NDArray[np.float64]
    title: str = ""

    def __post_init__(self) -> None:
        _check_array("heat", self.heat, np.float32, ("N", "h", "w"))
        for name in ("mu", "sigma", "confidences"):
            _check_array(name, getattr(self, name), np.float64, ("N",))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sheet:
    """Pictures to scrub, with the heat and the statistics their masks follow from.

    Attributes:
        pictures: (N, H, W, 3) uint8, the frames the model sees; N times columns from 1 to 96.
        columns: one to four, each of which shows all pictures at the same threshold.
        names: what each picture is, the title of the loupe ("Digit 1, with square").
        groups: the group each belongs to, by name.
        labels: the right answer, by name; empty when unknown.
        keeps_hot: hide the other way round, as ``keep_hot`` does.
    """

    pictures: npt.NDArray[np.uint8]
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    groups: tuple[str, ...]
    labels: tuple[str, ...] = ()
    keeps_hot: bool = False

    def __post_init__(self) -> None:
        _check_array("pictures", self.pictures, np.uint8, ("N", "H", "W", 3))
        count, columns = len(self), len(self.columns)
        if not 1 <= columns <= COLUMNS:
            raise DataError(
                f"A sheet of {columns} columns cannot be scrubbed.", f"Show 1 to {COLUMNS} columns."
            )
        if not 1 <= count <= MOST // columns:
            raise DataError(
                f"A sheet of {count} pictures in {columns} columns cannot be scrubbed.",
                f"Show 1 to {MOST // columns} pictures.",
            )
        counted = [("names", self.names), ("groups", self.groups)]
        if self.labels:
            counted.append(("labels", self.labels))
        for column in self.columns:
            counted += [
                (field.name, getattr(column, field.name))
                for field in fields(column)
                if field.name != "title"
            ]
        for name, values in counted:
            if len(values) != count:
                raise DataError(
                    f"The sheet has {count} pictures but {len(values)} {name}.",
                    "Give one for each picture.",
                )

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.pictures)


def encode(content: Sheet) -> bytes:
    """Pack a sheet for the browser.

    Equal sheets give equal blobs, and k is not part of them: Streamlit sends a blob once and never
    again while the sheet stays. Pictures up to 64 pixels wide travel without loss, photographs as
    JPEG; which pixels are hidden depends on neither.
    """
    count, height, width, _ = content.pictures.shape
    sprite, columns, pitch = _sprite(content.pictures)
    sections = {"palette": CIVIDIS.tobytes(), "sprite": sprite}
    for number, column in enumerate(content.columns):
        sections[f"heat{number}"] = column.heat.astype("<f4").tobytes()
        sections[f"mu{number}"] = column.mu.astype("<f8").tobytes()
        sections[f"sigma{number}"] = column.sigma.astype("<f8").tobytes()
    places: dict[str, tuple[int, int]] = {}
    body = bytearray()
    for name, section in sections.items():
        body += bytes(-len(body) % 8)
        places[name] = (len(body), len(section))
        body += section
    header = {
        "size": [height, width],
        "sprite": {"columns": columns, "pitch": pitch},
        "sections": places,
        "keepsHot": content.keeps_hot,
        "names": content.names,
        "groups": content.groups,
        "labels": content.labels,
        "columns": [
            {
                "title": column.title,
                "coarse": list(column.heat.shape[1:]),
                "answers": column.answers,
                "confidences": [round(float(share), 4) for share in column.confidences],
            }
            for column in content.columns
        ],
    }
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    rest = struct.pack("<HHI", count, len(content.columns), len(text)) + text + bytes(body)
    return MAGIC + hashlib.blake2b(rest, digest_size=8).hexdigest().encode() + rest


def preamble(blob: bytes) -> tuple[str, int, int]:
    """Give the digest that names a blob's sheet, and how many pictures and columns it has."""
    if len(blob) < PREAMBLE or not blob.startswith(MAGIC):
        raise DataError("These bytes are not a sheet.", "Give what encode returned.")
    count, columns = struct.unpack_from("<HH", blob, 24)
    return blob[8:24].decode(), count, columns


def groups_of(blob: bytes) -> frozenset[str]:
    """Name the groups that a blob's pictures belong to."""
    (length,) = struct.unpack_from("<I", blob, 28)
    return frozenset(json.loads(blob[PREAMBLE : PREAMBLE + length])["groups"])


def _sprite(pictures: npt.NDArray[np.uint8]) -> tuple[bytes, int, list[int]]:
    """Lay all pictures into one image; give its bytes, columns and a tile's (height, width)."""
    count, height, width, _ = pictures.shape
    columns = math.ceil(math.sqrt(count))
    if max(height, width) <= SMALL:
        return png_bytes(sheet(list(pictures), columns)), columns, [height, width]
    room = ((0, -height % BLOCK), (0, -width % BLOCK), (0, 0))
    tiles: list[Picture] = [np.pad(picture, room, mode="edge") for picture in pictures]
    return jpeg_bytes(sheet(tiles, columns)), columns, list(tiles[0].shape[:2])


def _check_array(
    name: str, array: npt.NDArray[np.generic], dtype: type[np.generic], shape: tuple[object, ...]
) -> None:
    fits = array.ndim == len(shape) and (shape[-1] != 3 or array.shape[-1] == 3)
    if array.dtype != dtype or not fits or 0 in array.shape[1:]:
        letters = ", ".join(str(size) for size in shape)
        raise DataError(
            f"The sheet's {name} are {array.dtype} of shape {array.shape}.",
            f"Give {np.dtype(dtype)} of shape ({letters}).",
        )
    if array.dtype != np.uint8 and not np.isfinite(array).all():
        raise DataError(f"The sheet's {name} hold values that are not numbers.", "Compute it anew.")
