"""Boxes that somebody drew over pictures, in a CSV file."""

from itertools import chain
from pathlib import Path

from masktune.data.csvs import COLUMNS
from masktune.data.images import FileImages, Images
from masktune.data.listing import Box
from masktune.data.regions import BoxRegions, boxed
from masktune.data.table import Sheet, pixels, read_sheet
from masktune.errors import DataError, shortened

SIDES = ("left", "top", "right", "bottom")
EXAMPLE = "a CSV of the columns file, left, top, right, bottom in pixels of the file, one box a row"
"""What such a file looks like, for people."""


def read_boxes(path: Path, images: Images) -> BoxRegions:
    """Read boxes over picture files; a picture that is not named has none.

    A name is a file's own, with folders before it where two files share one.

    Raises:
        DataError: the file cannot be read, a box is none, or a name fits no picture or several.
    """
    if not isinstance(images, FileImages):
        raise DataError(
            f"{path.name} names files, and these pictures are made in memory: their pixels are no "
            "file's.",
            "Leave the boxes out, or choose pictures that are read as they lie, such as a folder.",
        )
    sheet = read_sheet(path, known=chain(SIDES, COLUMNS["picture"]))
    names = sheet.files(_column(sheet, COLUMNS["picture"]))
    sides = [sheet.values(_column(sheet, (side,)), pixels) for side in SIDES]
    boxes: dict[str, list[Box]] = {}
    for line, name, left, top, right, bottom in zip(sheet.lines, names, *sides, strict=True):
        if not (left < right and top < bottom):
            raise DataError(
                f"Line {line.number} of {path.name}: the box from {left:g}, {top:g} to {right:g}, "
                f"{bottom:g} holds no pixel.",
                "Write left before right and top before bottom, in pixels of the file.",
            )
        boxes.setdefault(name, []).append((left, top, right, bottom))
    _check_names(boxes, images, path)
    return boxed(images, boxes)


def _check_names(boxes: dict[str, list[Box]], images: FileImages, path: Path) -> None:
    fits = dict.fromkeys(boxes, 0)
    for file in images.paths:
        ends = ("/".join(file.parts[start:]) for start in range(len(file.parts)))
        for end in ends:
            if end in fits:
                fits[end] += 1
    if unknown := [name for name, number in fits.items() if number == 0]:
        raise DataError(
            f"{path.name} names {len(unknown):,} of {len(boxes):,} files that are no training "
            f"pictures: {shortened(unknown, most=3)}.",
            "Write the names of training pictures, such as "
            f"{'/'.join(images.paths[0].parts[-2:])}, and take the others out.",
        )
    if several := [name for name, number in fits.items() if number > 1]:
        raise DataError(
            f"{path.name} has names that fit more than one training picture: "
            f"{shortened(several, most=3)}.",
            "Write the folder before the name.",
        )


def _column(sheet: Sheet, wanted: tuple[str, ...]) -> str:
    found = next((name for name in wanted if name in sheet.keys), None)
    if found is None:
        raise DataError(
            f"{sheet.path.name} has no column '{'file' if len(wanted) > 1 else wanted[0]}'; it has "
            f"{', '.join(sheet.header[:8])}.",
            f"Give {EXAMPLE}.",
        )
    return sheet.header[sheet.keys.index(found)]
