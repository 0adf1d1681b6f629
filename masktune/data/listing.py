"""Lists of picture files with labels, and what finding them in folders takes. Without PyTorch."""

import difflib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from masktune.data.card import UNKNOWN
from masktune.data.frame import Frame
from masktune.data.table import read_sheet
from masktune.errors import DataError, shortened
from masktune.files import is_there

TRAIN = "train"
VALIDATION = "validation"
TEST = "test"
PARTS = (TRAIN, VALIDATION, TEST)
NO_ATTRIBUTE = "No attribute is recorded: the worst class stands in for the worst group."
NO_GROUPS = "; no attribute, so the worst class stands in for the worst group"
MOST_ATTRIBUTES = 100
"""More values than that are no attribute but a name or number of each picture."""

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".avif", ".jp2", ".heic", ".heif"),
)
"""How the names of picture files end, in lower case; HEIC so that it is told of, not passed by."""


class Row(NamedTuple):
    """A picture file and what is known about it: its class's number, its attribute's.

    The split is "train", "validation" or the name of a test set. All rows of a list have an
    attribute, or all have ``UNKNOWN``.
    """

    path: Path
    label: int
    split: str = TRAIN
    attribute: int = UNKNOWN


Box = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels of the upright file; pixels whose centres are in it."""

Boxes = Mapping[str, Sequence[Box]]
"""Boxes by a file's name, or by the end of its path; a file that is not named has none."""

Named = tuple[Path, str, str, str | None]
"""A row with names where ``Row`` has numbers; None when no attribute is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a dataset of files reads from its folder; what it leaves out is as on the card."""

    rows: tuple[Row, ...]
    findings: tuple[str, ...]  # what was recognised, one sentence each
    frame: Frame | None = None  # what the model sees of each picture; None: small ones as they are
    classes: tuple[str, ...] | None = None  # names by label
    attributes: tuple[str, ...] | None = None  # names by number
    root: Path | None = None  # the folder the files lie in; None for the one that was given
    title: str = ""
    pool: tuple[int, ...] = ()
    things: Boxes | None = None  # round what the label tells of
    background_tells: bool = False  # whether all but the things is the clue


def numbered(named: Sequence[Named], *, root: Path, where: str, remedy: str) -> Listing:
    """Return a list of somebody's own pictures, with numbers for names and without findings.

    Raises:
        DataError: more attributes than groups could be made of; it says ``where`` and the remedy.
    """
    classes = in_order(label for _, label, _, _ in named)
    attributes = in_order(attribute for *_, attribute in named if attribute is not None)
    if len(attributes) > MOST_ATTRIBUTES:
        raise DataError(
            f"{where} has {len(attributes):,} different attributes; at most {MOST_ATTRIBUTES} are "
            "possible.",
            remedy,
        )
    label_of = {name: number for number, name in enumerate(classes)}
    number_of: dict[str | None, int] = {name: number for number, name in enumerate(attributes)}
    rows = tuple(
        Row(path, label_of[label], split, number_of.get(attribute, UNKNOWN))
        for path, label, split, attribute in named
    )
    return Listing(rows=rows, findings=(), classes=classes, attributes=attributes, root=root)


def grouped(
    path: Path, columns: tuple[str, str, str, str], *, folder: Callable[[str], Path]
) -> tuple[Row, ...]:
    """Read a CSV file with columns for file, label, split and attribute, 0 or 1 (split to 2).

    ``folder`` says where the pictures lie, given the first file's name.
    """
    sheet = read_sheet(path, known=columns)
    file, label, split, attribute = columns
    names = sheet.files(file)
    held = folder(names[0])
    paths = [held / name for name in names]
    labels = sheet.numbers(label, allowed=(0, 1))
    splits = [PARTS[number] for number in sheet.numbers(split, allowed=(0, 1, 2))]
    attributes = sheet.numbers(attribute, allowed=(0, 1))
    require(paths, listed_in=path)
    return tuple(map(Row, paths, labels, splits, attributes))


_SPLITS = {
    **dict.fromkeys(("train", "training"), TRAIN),
    **dict.fromkeys(("validation", "valid", "val"), VALIDATION),
    **dict.fromkeys(("test", "testing"), TEST),
}
_SHORT = {"tr": TRAIN, "va": VALIDATION, "dev": VALIDATION, "te": TEST}


def split_named(text: str, *, short: bool = True) -> str | None:
    """Return the split that a word means, None when it means none.

    Words that begin with "test" and go on after a dash, dot or underscore are test sets of their
    own. Short words may mean something else: tr is Turkish too.

    >>> split_named("Valid"), split_named("tr"), split_named("test_water"), split_named("cat")
    ('validation', 'train', 'test_water', None)
    >>> split_named("tr", short=False)
    """
    word = text.strip().casefold()
    known = _SPLITS.get(word) or (_SHORT.get(word) if short else None)
    return known or (word if re.fullmatch(r"test[-_.].+", word) else None)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort different names as text, which is torchvision's order, but numbers as numbers.

    >>> in_order(["10", "2"]), in_order(["b10", "b2", "B"])
    (('2', '10'), ('B', 'b10', 'b2'))
    """
    different = set(names)
    if all(re.fullmatch(r"-?[0-9]{1,18}", name) for name in different):
        return tuple(sorted(different, key=lambda name: (int(name), name)))
    return tuple(sorted(different))


def compared(
    rows: Sequence[Row], published: Mapping[str, tuple[int, ...]]
) -> Literal["whole", "part", "other"]:
    """Tell whether a release of two classes and two attributes is whole, a part or another.

    ``published`` is how many pictures each part has by group 2 * label + attribute.
    """
    tally = Counter((row.split, 2 * row.label + row.attribute) for row in rows)
    wanted = {(split, n): count for split in PARTS for n, count in enumerate(published[split])}
    if all(tally[group] == count for group, count in wanted.items()):
        return "whole"
    return "part" if all(tally[group] <= count for group, count in wanted.items()) else "other"


def require(paths: Sequence[Path], *, listed_in: Path) -> None:
    """Refuse a list some of whose files are not there, naming the first and their number."""
    folders: dict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        folders[path.parent].append(path)
    missing: list[Path] = []
    for folder, wanted in folders.items():
        # One listing instead of a question for each of CelebA's 202,599 files.
        names = set(os.listdir(folder)) if folder.is_dir() else set()  # noqa: PTH208
        missing += [path for path in wanted if path.name not in names]
    if missing:
        raise DataError(
            f"{len(missing):,} of the {len(paths):,} pictures listed in {listed_in} are missing: "
            f"{shortened([str(path) for path in missing], most=3)}.",
            f"Unpack the pictures there again, or take their rows out of {listed_in.name}.",
        )


def pictures_in(folder: Path) -> list[Path]:
    """List the picture files of a folder in order, without hidden ones."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )


def first_folder(candidates: Sequence[Path], *, holding: Sequence[str]) -> Path | None:
    """Return the first folder that holds one of these files or folders."""
    return next((f for f in candidates if any((f / name).exists() for name in holding)), None)


def first_names(folder: Path, *, like: str = "", most: int = 5) -> str:
    """Say what a folder holds, for an error about what it does not; names ``like`` one alone.

    Hidden files are not named.
    """
    try:
        found = (path.name for path in folder.iterdir() if not path.name.startswith("."))
        names = sorted(islice(found, 1000))
    except OSError:
        names = []
    if not names:
        return "nothing"
    names = difflib.get_close_matches(like, names, most) or names
    return ", ".join(names[:most]) + (" and more" if len(names) > most else "")


def refuse_missing(place: Path) -> None:
    """Refuse a path that does not exist, naming what lies beside it."""
    above = next((p for p in (place, *place.parents) if is_there(p)), Path())
    if above == place:
        return
    where = "beside it there is" if above == place.parent else f"{above} holds"
    raise DataError(
        f"The folder {place} does not exist; {where} {first_names(above, like=place.name)}.",
        "Correct the path, or put the pictures there.",
    )
