"""Attributes that somebody wrote down for picture files, in a CSV file."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

import torch

from masktune.data.csvs import COLUMNS
from masktune.data.images import FileImages
from masktune.data.listing import MOST_ATTRIBUTES, NO_ATTRIBUTE, NO_GROUPS, in_order
from masktune.data.table import Sheet, read_sheet, whole
from masktune.data.types import DatasetBundle, Split
from masktune.errors import DataError, shortened

EXAMPLE = "a CSV with a header and the columns file and attribute, one picture a row"
"""What such a file looks like, for people."""

NAMED = 3
"""Files that are named where something is wrong with them; the rest are counted."""


def with_attributes(bundle: DatasetBundle, path: Path) -> DatasetBundle:
    """Return a dataset whose pictures have the attributes that a CSV file says.

    They take the place of those that the dataset records, and with these goes where their clue
    lies. The columns are found by name, else they are the first two. A name is a file's own, with
    folders before it where two files share one. Every picture must be named, so that every group
    is whole; rows of files that are no pictures of the dataset are said in ``findings``.

    Raises:
        DataError: the pictures are in no files, or the file cannot be read, leaves pictures out,
            names one twice with different attributes, or has one attribute or too many.
    """
    splits = (bundle.train, bundle.validation, *bundle.tests.values())
    paths: list[Path] = []
    for split in splits:
        if not isinstance(split.images, FileImages):
            raise DataError(
                f"{path.name} names files, and the pictures of '{bundle.card.key}' are in no files "
                "of their own.",
                "Leave the attributes out, or choose a dataset of picture files.",
            )
        paths += split.images.paths
    sheet = read_sheet(path, known=chain(COLUMNS["picture"], COLUMNS["attribute"]))
    picture, attribute = _columns(sheet)
    said, repeated = _said(sheet, picture, attribute)
    found, unknown = _matched(said, paths, path)
    names = in_order(found.values())
    _check_number(names, attribute, path)
    number_of = {name: number for number, name in enumerate(names)}

    def with_own(split: Split) -> Split:
        numbers = [number_of[found[file]] for file in split.images.files]
        return replace(split, attributes=torch.tensor(numbers, dtype=torch.int64), clue=None)

    before = bundle.card.attributes
    instead = f" in place of {shortened(before)}" if before else ""
    return replace(
        bundle,
        card=replace(bundle.card, attributes=names),
        train=with_own(bundle.train),
        validation=with_own(bundle.validation),
        tests={name: with_own(split) for name, split in bundle.tests.items()},
        findings=(
            *(told.replace(NO_GROUPS, "") for told in bundle.findings if told != NO_ATTRIBUTE),
            f"Attributes from the column '{attribute}' of {path.name}{instead}: "
            f"{shortened(names)}.",
            *sheet.findings,
            *_odd_rows(path, unknown, repeated),
        ),
    )


def _columns(sheet: Sheet) -> tuple[str, str]:
    """Return the columns of file and attribute: by their names, else the first two."""
    named = [
        next((name for name in COLUMNS[what] if name in sheet.keys), None)
        for what in ("picture", "attribute")
    ]
    if named[0] is not None and named[1] is not None:
        first, second = (sheet.header[sheet.keys.index(name)] for name in named if name)
        return first, second
    if len(sheet.header) < 2:
        raise DataError(
            f"{sheet.path.name} has one column, '{sheet.header[0][:40]}'.", f"Give {EXAMPLE}."
        )
    return sheet.header[0], sheet.header[1]


def _said(sheet: Sheet, picture: str, attribute: str) -> tuple[dict[str, str], list[str]]:
    """Return the attribute of each file that is named, and the files that are named again."""
    said: dict[str, str] = {}
    repeated: dict[str, None] = {}
    different: dict[str, None] = {}
    for name, value in zip(sheet.files(picture), sheet.values(attribute, whole), strict=True):
        if name in said:
            (repeated if said[name] == value else different)[name] = None
        said.setdefault(name, value)
    if different:
        raise DataError(
            f"{sheet.path.name} gives {_files(different)} two attributes: "
            f"{shortened([*different], most=NAMED)}.",
            "Keep one row for each picture.",
        )
    return said, [*repeated]


def _matched(
    said: Mapping[str, str], paths: Iterable[Path], path: Path
) -> tuple[dict[Path, str], list[str]]:
    """Return the attribute of every picture, and the names that are of none."""
    fits: dict[str, set[Path]] = {name: set() for name in said}
    found: dict[Path, str] = {}
    absent: list[str] = []
    for file in dict.fromkeys(paths):
        ends = ("/".join(file.parts[start:]) for start in range(len(file.parts)))
        named = [end for end in ends if end in fits]
        if not named:
            absent.append("/".join(file.parts[-2:]))
            continue
        found[file] = said[named[0]]  # the longest says most
        fits[named[0]].add(file)
    unknown = [name for name, files in fits.items() if not files]
    if not found:
        raise DataError(
            f"{path.name} names {_files(said)}, and no picture of the dataset: "
            f"{shortened(unknown, most=NAMED)}.",
            f"Write names such as {absent[0]}, or {absent[0].rpartition('/')[2]} alone.",
        )
    if several := [name for name, files in fits.items() if len(files) > 1]:
        raise DataError(
            f"{path.name} has names that fit more than one picture: "
            f"{shortened(several, most=NAMED)}.",
            "Write the folder before the name.",
        )
    if absent:
        raise DataError(
            f"{path.name} gives no attribute to {len(absent):,} of {len(absent) + len(found):,} "
            f"pictures: {shortened(absent, most=NAMED)}.",
            "Add a row for each; pictures of which it is not known may share a word, such as "
            "other.",
        )
    return found, unknown


def _check_number(names: tuple[str, ...], attribute: str, path: Path) -> None:
    if len(names) == 1:
        raise DataError(
            f"Every picture has the attribute '{names[0][:40]}' in {path.name}.",
            "Give at least two attributes, or leave the file out.",
        )
    if len(names) > MOST_ATTRIBUTES:
        raise DataError(
            f"Column '{attribute}' of {path.name} has {len(names):,} different attributes; at "
            f"most {MOST_ATTRIBUTES} are possible.",
            "Name the column that holds the attribute 'attribute', or join its values into few.",
        )


def _odd_rows(path: Path, unknown: list[str], repeated: list[str]) -> Iterable[str]:
    if unknown:
        yield (
            f"{path.name} also names {_files(unknown)} that the dataset has no picture of: "
            f"{shortened(unknown, most=NAMED)}."
        )
    if repeated:
        yield (
            f"{path.name} names {_files(repeated)} more than once, with the same attribute: "
            f"{shortened(repeated, most=NAMED)}."
        )


def _files(names: Iterable[str]) -> str:
    number = len([*names])
    return "1 file" if number == 1 else f"{number:,} files"
