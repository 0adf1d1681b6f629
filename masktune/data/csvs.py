"""Pictures listed in a CSV file with their labels, attributes and splits."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from masktune.data.listing import (
    NO_GROUPS,
    TEST,
    TRAIN,
    VALIDATION,
    Listing,
    numbered,
    split_named,
)
from masktune.data.table import Sheet, read_sheet, whole
from masktune.errors import DataError, shortened
from masktune.files import is_file

COLUMNS = {
    "picture": ("filename", "img_filename", "file_name", "path", "image", "file", "image_id"),
    "label": ("y", "label", "target", "class"),
    "attribute": ("a", "place", "attr", "attribute", "confounder", "background", "group"),
    "split": ("split",),
}
"""Column names by what they hold, the first that is there counts; in any case."""

MOST_CLASSES = 1000
_SUFFIXES = (".csv", ".tsv")
_NUMBERED = {"0": TRAIN, "1": VALIDATION, "2": TEST}  # as Waterbirds, CelebA and WILDS have it
_ENDINGS = ("", ".jpg", ".png", ".jpeg", ".webp")  # an image_id often comes without one
_TRIED = 50  # rows that show where the pictures lie


class NoListError(DataError):
    """A CSV file that lists no pictures with labels: it may be about something else."""


def find_csv(root: Path) -> Path | None:
    """Choose the CSV file of a folder: metadata.csv, metadata_*.csv, labels.csv or the only one.

    Raises:
        NoListError: there are several of them and none stands out.
    """
    if root.is_file():
        return root
    files = sorted(
        path
        for path in root.iterdir()
        if path.suffix.lower() in _SUFFIXES and not path.name.startswith(".") and path.is_file()
    )
    for pattern in (r"metadata", r"metadata_.*", r"labels", r".*"):
        chosen = [path for path in files if re.fullmatch(pattern, path.stem.lower())]
        if len(chosen) > 1:
            raise NoListError(
                f"{root} holds {len(chosen)} CSV files that may list the pictures: "
                f"{', '.join(path.name for path in chosen[:5])}.",
                "Give the path of the one to use instead of the folder.",
            )
        if chosen:
            return chosen[0]
    return None


def read_csv(path: Path) -> Listing:
    """Read a list of pictures from a CSV file.

    Pictures lie beside the file or in a folder ``images`` beside it; names without an ending get
    the one that fits.

    Raises:
        DataError: the file or one of its rows cannot be used; line and column are named.
    """
    sheet = read_sheet(path, known=chain(*COLUMNS.values()))
    columns, count = _columns(sheet), len(sheet.lines)
    names = sheet.files(columns["picture"])
    labels = sheet.values(columns["label"], _label)
    attributes: Sequence[str | None] = [None] * count
    if "attribute" in columns:
        attributes = sheet.values(columns["attribute"], whole)
    splits = sheet.values(columns["split"], _split) if "split" in columns else [TRAIN] * count
    _refuse_odd_classes(sheet, columns["label"], labels=labels)
    base, ending = _place(path.parent, names)
    paths = [base / f"{name}{ending}" for name in names]
    name = columns.get("attribute", "")
    listing = numbered(
        list(zip(paths, labels, splits, attributes, strict=True)),
        root=path.parent,
        where=f"Column '{name}' of {path.name}",
        remedy=f"Rename the column '{name}' if it holds no attribute, or join its values into few.",
    )
    findings = _findings(sheet, columns, listing=listing, base=base, ending=ending)
    return replace(listing, findings=tuple(findings))


def _columns(sheet: Sheet) -> dict[str, str]:
    """Return the name of each of ``COLUMNS`` that is there; picture and label must be."""
    columns: dict[str, str] = {}
    for what, names in COLUMNS.items():
        said = "picture's file name" if what == "picture" else what
        name = next((name for name in names if name in sheet.keys), None)
        if name is not None and sheet.keys.count(name) > 1:
            raise DataError(
                f"{sheet.path.name} has {sheet.keys.count(name)} columns named '{name}'.",
                f"Rename all but the one that holds the {said}.",
            )
        if name is not None:
            columns[what] = sheet.header[sheet.keys.index(name)]
        elif what in ("picture", "label"):
            raise NoListError(
                f"{sheet.path.name} has no column for the {said}; its columns are "
                f"{', '.join(repr(name[:40]) for name in sheet.header[:12])}.",
                f"Name the column that holds it '{names[0]}' (or {', '.join(names[1:])}).",
            )
    return columns


def _label(text: str) -> str:
    label = whole(text)
    if re.fullmatch(r"-[0-9.]+", label):
        raise DataError(
            f"the label {label[:40]} is negative.",
            "Number the classes from 0, or write their names.",
        )
    return label


def _split(text: str) -> str:
    text = whole(text)
    split = _NUMBERED.get(text) or split_named(text)
    if split is None:
        raise DataError(f"'{text[:40]}' is no split.", "Write 0, 1 or 2, or train, val or test.")
    return split


def _refuse_odd_classes(sheet: Sheet, column: str, *, labels: Sequence[str]) -> None:
    classes = set(labels)
    if len(classes) < 2:
        raise DataError(
            f"Every picture of {sheet.path.name} has the label '{labels[0][:40]}'.",
            "List pictures of at least two classes.",
        )
    if len(classes) > MOST_CLASSES:
        raise DataError(
            f"Column '{column}' of {sheet.path.name} has {len(classes):,} different labels for "
            f"{len(labels):,} pictures; at most {MOST_CLASSES:,} classes are possible.",
            "Name another column 'y' that holds the class.",
        )


def _place(folder: Path, names: Sequence[str]) -> tuple[Path, str]:
    """Find out where most of the first pictures lie, and the ending their names lack."""
    tried = names[:_TRIED]
    best, most = (folder, ""), 0
    for base in (folder, folder / "images"):
        for ending in _ENDINGS:
            count = sum(is_file(base / f"{name}{ending}") for name in tried)
            if count > most:
                best, most = (base, ending), count
    return best


def _findings(
    sheet: Sheet, columns: dict[str, str], *, listing: Listing, base: Path, ending: str
) -> Iterator[str]:
    path, rows = sheet.path, listing.rows
    told = ", ".join(f"{what} from '{column}'" for what, column in columns.items())
    free = "" if "attribute" in columns else NO_GROUPS
    yield f"Read as: the list {path.name}, {told}{free}."
    for names in COLUMNS.values():
        rest = [sheet.header[sheet.keys.index(name)] for name in names if name in sheet.keys][1:]
        if rest:
            yield f"Columns not used: {', '.join(rest)}."
    yield from sheet.findings
    yield f"Classes in order: {shortened(listing.classes or ())}."
    if base != path.parent:
        yield f"The pictures lie in the folder '{base.name}' beside {path.name}."
    if ending:
        yield f"File names are listed without their ending {ending}."
    if often := [file for file, count in Counter(row.path for row in rows).items() if count > 1]:
        splits = Counter(file for file, _ in {(row.path, row.split) for row in rows})
        leaked = sum(count > 1 for count in splits.values())
        across = f", {leaked:,} of them in more than one part" if leaked else ""
        yield f"{len(often):,} files are listed more than once ({often[0].name}){across}."
