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
from masktune.data.frame import Frame, Size
from masktune.data.table import read_sheet
from masktune.errors import DataError

TRAIN = "train"
VALIDATION = "validation"
TEST = "test"
PARTS = (TRAIN, VALIDATION, TEST)
NO_ATTRIBUTE = "No attribute is recorded: the worst class stands in for the worst group."
MOST_ATTRIBUTES = 100
"""More values than that are no attribute but a name or number of each picture."""

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".avif", ".jp2", ".heic", ".heif"),
)
"""How the names of picture files end, in lower case; HEIC so that it is told of, not passed by."""

_NAMED = 3  # missing files an error names


class Row(NamedTuple):
    """A picture file and what is known about it."""

    path: Path
    label: int
    split: str = TRAIN
    attribute: int = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Picture files and what is known about each.

    Attributes:
        paths: N files.
        labels: N numbers, 0 .. K-1.
        attributes: N numbers, ``UNKNOWN`` everywhere when none is recorded.
        splits: N names: "train", "validation" or the name of a test set.
    """

    paths: tuple[Path, ...]
    labels: tuple[int, ...]
    attributes: tuple[int, ...]
    splits: tuple[str, ...]

    def __post_init__(self) -> None:
        sizes = (len(self.paths), len(self.labels), len(self.attributes), len(self.splits))
        if len(set(sizes)) != 1:
            raise DataError(
                f"The list has {sizes[0]} pictures, {sizes[1]} labels, {sizes[2]} attributes and "
                f"{sizes[3]} splits.",
                "Give one of each for every picture.",
            )
        unknown = self.attributes.count(UNKNOWN)
        if 0 < unknown < sizes[0]:
            raise DataError(
                f"{unknown:,} of {sizes[0]:,} pictures have no attribute, the others have one.",
                "Give every picture an attribute, or none.",
            )

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Table":
        """Return the rows as columns."""
        paths, labels, splits, attributes = zip(*rows, strict=True) if rows else ((), (), (), ())
        return cls(paths=paths, labels=labels, attributes=attributes, splits=splits)

    @classmethod
    def named(
        cls,
        paths: Sequence[Path],
        *,
        labels: Sequence[str],
        attributes: Sequence[str],
        splits: Sequence[str],
    ) -> "tuple[Table, tuple[str, ...], tuple[str, ...]]":
        """Return a table with numbers for names, and class and attribute names by number."""
        classes, known = in_order(labels), in_order(attributes)
        label_of = {name: number for number, name in enumerate(classes)}
        attribute_of = {name: number for number, name in enumerate(known)}
        table = cls(
            paths=tuple(paths),
            labels=tuple(label_of[name] for name in labels),
            attributes=tuple(attribute_of[name] for name in attributes) or (UNKNOWN,) * len(paths),
            splits=tuple(splits),
        )
        return table, classes, known

    @classmethod
    def grouped(
        cls, path: Path, columns: tuple[str, str, str, str], *, folder: Callable[[str], Path]
    ) -> "Table":
        """Read a CSV file with columns for file, label, split and attribute, 0 or 1 (split to 2).

        Args:
            path: the file.
            columns: the names of the four, in this order.
            folder: from the first file's name to where the pictures lie.
        """
        sheet = read_sheet(path, known=columns)
        file, label, split, attribute = (sheet.column(name) for name in columns)
        names = sheet.files(file)
        held = folder(names[0])
        table = cls(
            paths=tuple(held / name for name in names),
            labels=tuple(sheet.numbers(label, allowed=(0, 1))),
            splits=tuple(PARTS[n] for n in sheet.numbers(split, allowed=(0, 1, 2))),
            attributes=tuple(sheet.numbers(attribute, allowed=(0, 1))),
        )
        require(table.paths, listed_in=path)
        return table

    def at(self, positions: Sequence[int]) -> "Table":
        """Return some of the rows."""
        columns = (self.paths, self.labels, self.attributes, self.splits)
        paths, labels, attributes, splits = (
            tuple(column[position] for position in positions) for column in columns
        )
        return Table(paths=paths, labels=labels, attributes=attributes, splits=splits)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a dataset of files reads from its folder.

    Attributes:
        table: the files.
        findings: what was recognised, one sentence each.
        frame: what the model sees of each picture; a function chooses it knowing the different
            (H, W) of the usable pictures.
        classes: class names by label; None for those of the card.
        attributes: attribute names by number; None for those of the card.
        root: the folder the files lie in; None for the one that was given.
        title: the dataset's name; empty for the card's.
        pool: as on the card.
    """

    table: Table
    findings: tuple[str, ...]
    frame: Frame | Callable[[frozenset[Size]], Frame]
    classes: tuple[str, ...] | None = None
    attributes: tuple[str, ...] | None = None
    root: Path | None = None
    title: str = ""
    pool: tuple[int, ...] = ()


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


def refuse_many_attributes(names: Sequence[str], *, where: str, remedy: str) -> None:
    """Refuse more attributes than groups could be made of."""
    if len(names) > MOST_ATTRIBUTES:
        raise DataError(
            f"{where} has {len(names):,} different attributes; at most {MOST_ATTRIBUTES} are "
            "possible.",
            remedy,
        )


def group_counts(table: Table) -> dict[str, tuple[int, ...]]:
    """Count the pictures of train, validation and test by group 2 * label + attribute."""
    tally = Counter(zip(table.splits, table.labels, table.attributes, strict=True))
    return {split: tuple(tally[split, *divmod(group, 2)] for group in range(4)) for split in PARTS}


def compared(
    table: Table, published: Mapping[str, tuple[int, ...]]
) -> Literal["whole", "part", "other"]:
    """Tell whether a release of two classes and two attributes is whole, a part or another."""
    counts = group_counts(table)
    if counts == published:
        return "whole"
    pairs = [p for split in PARTS for p in zip(counts[split], published[split], strict=True)]
    return "part" if all(mine <= theirs for mine, theirs in pairs) else "other"


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
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        raise DataError(
            f"{len(missing):,} of the {len(paths):,} pictures listed in {listed_in} are missing: "
            f"{', '.join(map(str, missing[:_NAMED]))}{more}.",
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
    """Say what a folder holds, for an error about what it does not; names ``like`` one alone."""
    try:
        names = sorted(path.name for path in islice(folder.iterdir(), 1000))
    except OSError:
        names = []
    if not names:
        return "nothing"
    names = difflib.get_close_matches(like, names, most) or names
    return ", ".join(names[:most]) + (" and more" if len(names) > most else "")


def refuse_missing(place: Path) -> None:
    """Refuse a path that does not exist, naming what lies beside it."""
    if _exists(place):
        return
    above = next((folder for folder in place.parents if _exists(folder)), Path())
    where = "beside it there is" if above == place.parent else f"{above} holds"
    raise DataError(
        f"The folder {place} does not exist; {where} {first_names(above, like=place.name)}.",
        "Correct the path, or put the pictures there.",
    )


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except (OSError, ValueError):  # too long, or with a NUL: no file has such a path
        return False
