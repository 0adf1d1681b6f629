"""Lists of picture files, in tables and in folders, each problem named with its place."""

import csv
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from masktune.data.picture import SUFFIXES
from masktune.errors import DataError

_NAMED = 3  # missing files an error names


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Some columns of a table, row by row.

    Attributes:
        path: the file they come from.
        rows: the cells of each row, in the order asked for.
        first: number of the first row in the file, for messages.
    """

    path: Path
    rows: list[tuple[str, ...]]
    first: int

    def texts(self, column: int) -> list[str]:
        """Give a column as it is written."""
        return [row[column] for row in self.rows]

    def numbers(self, column: int, *, name: str, allowed: Sequence[int]) -> list[int]:
        """Give a column of whole numbers, refusing any that is not ``allowed``."""
        known = {str(number): number for number in allowed}
        try:
            return [known[row[column]] for row in self.rows]
        except KeyError:
            for row, cells in enumerate(self.rows, self.first):
                if cells[column] not in known:
                    raise DataError(
                        f"Row {row} of {self.path} has {name} '{cells[column]}'.",
                        f"Give {' or '.join(known)} in that column.",
                    ) from None
            raise


def read_csv(path: Path, columns: Sequence[str]) -> Cells:
    """Read the named columns of a CSV file; their order and what else is there do not matter."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            return _cells(path, csv.reader(file), columns, first=2)
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(
                f"{path} cannot be read as CSV: {error}.", "Save it as UTF-8 CSV with commas."
            ) from error


def read_celeba_text(path: Path, columns: Sequence[str]) -> Cells:
    """Read columns of a CelebA text table: a count, the attribute names, then a row a picture.

    The first column, the picture's name, has no heading there; it is called "image_id" here.
    """
    with path.open(encoding="utf-8-sig") as file:
        try:
            next(file, "")
            heading = ["image_id", *next(file, "").split()]
            lines = (line.split() for line in file if line.strip())
            return _cells(path, iter([heading, *lines]), columns, first=3)
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not a text file.", "Download it again.") from error


def _cells(path: Path, lines: Iterator[list[str]], columns: Sequence[str], *, first: int) -> Cells:
    heading = [name.strip() for name in next(lines, [])]
    if absent := [name for name in columns if name not in heading]:
        raise DataError(
            f"{path} has no column {' or '.join(repr(name) for name in absent)}; it has "
            f"{', '.join(heading[:8]) or 'no columns'}.",
            f"Give a table with the columns {', '.join(columns)}.",
        )
    places = [heading.index(name) for name in columns]
    rows = []
    for number, line in enumerate(lines, first):
        if not line:
            continue
        if len(line) != len(heading):
            raise DataError(
                f"Row {number} of {path} has {len(line)} cells, not {len(heading)}.",
                "Correct this row, or download the file again.",
            )
        rows.append(tuple(line[place].strip() for place in places))
    if not rows:
        raise DataError(f"{path} lists no pictures.", "Download it again.")
    return Cells(path=path, rows=rows, first=first)


def inside(folder: Path, names: Sequence[str], *, listed_in: Path) -> tuple[Path, ...]:
    """Give the files of these names in ``folder``; names that lead out of it are refused."""
    for name in names:
        pure = PurePosixPath(name)
        if not name or pure.is_absolute() or ".." in pure.parts or "\0" in name:
            raise DataError(
                f"{listed_in} lists '{name}', which is no file inside {folder}.",
                "Give names relative to that folder.",
            )
    return tuple(folder / name for name in names)


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
    """Give the first folder that holds one of these files or folders."""
    return next((f for f in candidates if any((f / name).exists() for name in holding)), None)


def first_names(folder: Path, *, most: int = 5) -> str:
    """Say what a folder holds, for an error about what it does not."""
    names = sorted(path.name for path in islice(folder.iterdir(), 1000)) if folder.is_dir() else []
    if not names:
        return "nothing"
    return ", ".join(names[:most]) + (" and more" if len(names) > most else "")
