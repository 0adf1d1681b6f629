"""Waterbirds: birds cut out and put before land or water, in every layout it is shared in."""

from collections.abc import Sequence
from pathlib import Path

from masktune.data.card import UNKNOWN, DataSettings
from masktune.data.frame import Frame
from masktune.data.listing import (
    PARTS,
    Box,
    Listing,
    Row,
    compared,
    first_folder,
    first_names,
    grouped,
    pictures_in,
)
from masktune.data.table import pixels, read_sheet, read_spaced, whole
from masktune.errors import DataError
from masktune.progress import Watcher

FRAME = Frame(resize=(256, 256), crop=(224, 224))
RELEASE = "waterbird_complete95_forest2water2"

CUB = "CUB_200_2011"
BOXES, NAMES = "bounding_boxes.txt", "images.txt"
"""CUB's lists: number, left, top, width, height; and number, name."""

ORIGINAL = {
    "train": (3498, 184, 56, 1057),
    "validation": (467, 466, 133, 133),
    "test": (2255, 2255, 642, 642),
}
"""Pictures of the original release by group 2 * label + place."""

MISLABELLED = ("eastern_towhee", "western_meadowlark", "western_wood_pewee")
"""Land birds that the original release calls waterbirds, as its authors say themselves."""


def read(root: Path, _settings: DataSettings, _watcher: Watcher) -> Listing:
    """Read Waterbirds and say which release it is."""
    rows, layout = _find(root)
    found = (f"Read as: {layout}.", release_of(rows))
    things = _birds(root)
    if things is None:
        return Listing(rows=rows, findings=found, frame=FRAME)
    told = f"Where the birds are is known from CUB's {BOXES}."
    return Listing(
        rows=rows, findings=(*found, told), frame=FRAME, things=things, background_tells=True
    )


def _birds(root: Path) -> dict[str, list[Box]] | None:
    """Read the birds' boxes by file name where CUB-200-2011's lists lie beside; None without.

    A picture of Waterbirds is as large as the one of CUB that its bird was cut from, and the bird
    is at the same place, so the boxes fit as they are.
    """
    folders = [root, *(root / name for name in _NESTED)]
    beside = [*folders, *(folder / CUB for folder in (*folders, root.parent))]
    held = next((f for f in beside if (f / BOXES).is_file() and (f / NAMES).is_file()), None)
    if held is None:
        return None
    boxes = read_spaced(held / BOXES, header=("number", "left", "top", "width", "height"))
    names = read_spaced(held / NAMES, header=("number", "name"))
    sides = [boxes.values(side, pixels) for side in ("left", "top", "width", "height")]
    found = {
        number: (left, top, left + width, top + height)
        for number, left, top, width, height in zip(
            boxes.values("number", whole), *sides, strict=True
        )
    }
    # The corrected release has other folders than CUB; no two birds share a file's name.
    return {
        name.rsplit("/", 1)[-1]: [found[number]]
        for number, name in zip(names.values("number", whole), names.files("name"), strict=True)
        if number in found
    }


def release_of(rows: Sequence[Row]) -> str:
    """Say in a sentence whether this is the original release, the corrected one or a part."""
    total, here = sum(map(sum, ORIGINAL.values())), len(rows)
    labels = {row.label for row in rows if row.path.name.lower().startswith(MISLABELLED)}
    if labels == {0}:
        return (
            f"This is the corrected release, {here:,} pictures, with the towhees, meadowlarks and "
            "pewees as landbirds. Do not compare it with numbers for the original one."
        )
    if labels == {0, 1}:
        return (
            "Some towhees, meadowlarks and pewees are landbirds and some waterbirds here: this "
            "is neither the original nor the corrected release."
        )
    # Without places there are no groups to count.
    known = all(row.attribute != UNKNOWN for row in rows)
    found = compared(rows, ORIGINAL) if known else "part" if here < total else "other"
    if found == "whole":
        return f"This is the original release, all {total:,} pictures."
    if found == "other":
        return (
            f"The groups are larger than in the original release: {here:,} pictures, not {total:,}."
        )
    share = f"{here:,} of {total:,} pictures"
    if labels == {1}:
        return f"This is a subset of the original release: {share}."
    return (
        f"This is a subset of a release, {share}; without any towhee, meadowlark or pewee the "
        "original and the corrected labels look the same."
    )


def _find(root: Path) -> tuple[tuple[Row, ...], str]:
    folders = [root, *(root / name for name in _NESTED)]
    if (corrected := first_folder(folders, holding=("images/train",))) is not None:
        return _from_folders(corrected)
    if (folder := first_folder(folders, holding=("metadata.csv",))) is not None:
        columns = ("img_filename", "y", "split", "place")
        layout = "metadata.csv as in group_DRO and WILDS"
        return grouped(folder / "metadata.csv", columns, folder=lambda _: folder), layout
    if (listed := first_folder(folders, holding=("metadata_waterbirds.csv",))) is not None:
        pictures = first_folder((listed / "waterbirds" / RELEASE, listed / RELEASE), holding=(".",))
        columns = ("filename", "y", "split", "a")
        layout = "metadata_waterbirds.csv as in BalancingGroups and SubpopBench"
        path = listed / "metadata_waterbirds.csv"
        return grouped(path, columns, folder=lambda _: pictures or listed), layout
    raise DataError(
        f"{root} holds no Waterbirds: neither {root / 'metadata.csv'} nor "
        f"{root / 'metadata_waterbirds.csv'} nor {root / 'images' / 'train'} exists; it holds "
        f"{first_names(root)}.",
        f"Give the folder that holds metadata.csv, usually {RELEASE} or waterbirds_v1.0.",
    )


_NESTED = (RELEASE, "waterbirds_v1.0", f"cub/data/{RELEASE}", "waterbirds", f"waterbirds/{RELEASE}")


def _from_folders(root: Path) -> tuple[tuple[Row, ...], str]:
    """Read images/{train,val,test}/{0,1}; the folder is the label, whatever a table says."""
    rows: list[Row] = []
    for folder, split in zip(("train", "val", "test"), PARTS, strict=True):
        for label in (0, 1):
            place = root / "images" / folder / str(label)
            if not place.is_dir():
                raise DataError(
                    f"The corrected layout lacks the folder {place}.",
                    "Unpack the whole release again.",
                )
            rows += [Row(path, label, split) for path in pictures_in(place)]
    places = _places(root / "metadata.csv", [row.path for row in rows])
    placed = tuple(row._replace(attribute=a) for row, a in zip(rows, places, strict=True))
    return placed, "images/{train,val,test}/{0,1} as in the corrected release, " + (
        "places from metadata.csv"
        if rows and UNKNOWN not in places
        else "without places, so the worst class stands in for the worst group"
    )


def _places(path: Path, pictures: Sequence[Path]) -> list[int]:
    """Look up each picture's place by its base name; unknown when there is no table."""
    if not path.is_file():
        return [UNKNOWN] * len(pictures)
    sheet = read_sheet(path, known=("img_filename", "place"))
    names = [name.rsplit("/", 1)[-1] for name in sheet.values("img_filename", str)]
    places = sheet.numbers("place", allowed=(0, 1))
    known = dict(zip(names, places, strict=True))
    if absent := [picture for picture in pictures if picture.name not in known]:
        raise DataError(
            f"{len(absent):,} of {len(pictures):,} pictures have no row in {path}, first "
            f"{absent[0]}.",
            "Add their rows, or rename metadata.csv to go on without places.",
        )
    return [known[picture.name] for picture in pictures]
