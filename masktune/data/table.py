"""The one table reader: any separator, byte order mark, quotes, old encodings, 1.0 for 1."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from masktune.errors import DataError

MOST_BYTES = 256 * 2**20
T = TypeVar("T")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Line(NamedTuple):
    """A row and the line of the file it ends on, from 1."""

    number: int
    cells: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table of text."""

    path: Path
    header: tuple[str, ...]  # column names as written
    keys: tuple[str, ...]  # in lower case, with underscores for blanks and dashes
    lines: tuple[Line, ...]  # rows that are not empty, none longer than the header
    findings: tuple[str, ...]  # how the file was read, where that was not the plain way

    def values(self, column: str, read: Callable[[str], T]) -> list[T]:
        """Return a column, each cell as ``read`` gives it; the column and each cell must be there.

        The error of a cell that ``read`` refuses is told with line and column before it.
        """
        if column not in self.header:
            raise DataError(
                f"{self.path} has no column '{column}'; it has "
                f"{', '.join(self.header[:8]) or 'no columns'}.",
                f"Give a table with the column '{column}', or download the file again.",
            )
        position, values = self.header.index(column), []
        for line in self.lines:
            try:
                values.append(read(_filled(line, position)))
            except DataError as error:
                where = f"Line {line.number} of {self.path.name}, column '{column}'"
                raise DataError(f"{where}: {error.problem}", error.remedy) from None
        return values

    def numbers(self, column: str, *, allowed: Sequence[int]) -> list[int]:
        """Return a column of whole numbers, refusing any that is not ``allowed``."""
        known = {str(number): number for number in allowed}

        def number(text: str) -> int:
            text = whole(text)
            if text not in known:
                raise DataError(f"it is '{text[:40]}'.", f"Write {' or '.join(known)} there.")
            return known[text]

        return self.values(column, number)

    def files(self, column: str) -> list[str]:
        """Return a column of file names relative to the dataset; none may lead out of it."""

        def file(text: str) -> str:
            parts = text.replace("\\", "/").split("/")
            if not parts[0] or ".." in parts or parts[0].startswith("~") or parts[0][1:2] == ":":
                raise DataError(
                    f"'{text[:80]}' leads out of the dataset's folder.",
                    f"Write file names relative to {self.path.name}.",
                )
            return "/".join(parts)

        return self.values(column, file)


def _filled(line: Line, position: int) -> str:
    text = line.cells[position].strip() if position < len(line.cells) else ""
    if not text:
        raise DataError("it is empty.", "Fill it in, or take the row out of the file.")
    return text


@lru_cache(maxsize=4096)
def whole(text: str) -> str:
    """Write 1.0, as pandas saves whole numbers beside empty cells, and 01 as 1.

    >>> whole("1.0"), whole("-01"), whole("cat")
    ('1', '-1', 'cat')
    """
    match = re.fullmatch(r"(-?)0*([0-9]{1,17})(?:\.0*)?", text)
    return f"{match[1]}{match[2]}" if match else text


def pixels(text: str) -> float:
    """Read a number of pixels."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"it is '{text[:40]}'.", "Write a number of pixels there.")
    return number


def read_spaced(path: Path, *, header: Sequence[str] = ()) -> Sheet:
    """Read a table whose columns are parted by blanks, as CelebA's text files are.

    Without ``header`` the names of the columns stand on the second line, below a count, and the
    first column, which has none there, is called "image_id".
    """
    text, findings = _text(path)
    lines = [
        Line(number, line.split())
        for number, line in enumerate(text.splitlines(), 1)
        if line.split()
    ]
    if not header:
        header = ("image_id", *(lines[1].cells if len(lines) > 1 else ()))
        lines = lines[2:]
    for line in lines:
        if len(line.cells) != len(header):
            raise _unfitting(path, line, len(header), "Correct this line, or download it again.")
    if not lines:
        raise DataError(f"{path} lists no pictures.", "Download it again.")
    return Sheet(
        path=path,
        header=tuple(header),
        keys=tuple(map(_key, header)),
        lines=tuple(lines),
        findings=tuple(findings),
    )


def read_sheet(path: Path, *, known: Iterable[str]) -> Sheet:
    """Read a CSV file; the separator is the one that finds most of the ``known`` columns.

    Raises:
        DataError: it is no text, too large, empty, or has rows that cannot be read.
    """
    text, findings = _text(path)
    known = frozenset(map(_key, known))
    if "\0" in text:
        raise DataError(
            f"Line {text[: text.index(chr(0))].count(chr(10)) + 1} of {path.name} holds NUL "
            "characters, so it is no plain text.",
            "Save it again as CSV (UTF-8).",
        )
    first = text.lstrip("\r\n").partition("\n")[0]
    found = {m: sum(_key(n.strip(' "')) in known for n in first.split(m)) for m in _SEPARATORS}
    separator = max(_SEPARATORS, key=lambda mark: (found[mark], first.count(mark)))
    if separator != ",":
        findings.append(f"{path.name} is separated by {_SEPARATORS[separator]}.")
    lines = _lines(path, text, separator=separator)
    if not lines:
        raise DataError(f"{path.name} is empty.", "Give a CSV file with a header and rows.")
    header = tuple(name.strip() for name in lines[0].cells)
    if len(lines) == 1:
        raise DataError(f"{path.name} has a header and no rows.", "List one picture a row.")
    return Sheet(
        path=path,
        header=header,
        keys=tuple(_key(name) for name in header),
        lines=tuple(_fitted(path, line, len(header)) for line in lines[1:]),
        findings=tuple(findings),
    )


def _text(path: Path) -> tuple[str, list[str]]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise DataError(
                f"{path.name} is larger than {MOST_BYTES // 2**20} MB, too large for a list.",
                "Give a CSV file with one row a picture.",
            )
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}.", "Give a CSV file this account may read."
        ) from error
    try:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return content.decode("utf-16"), [f"{path.name} was read as UTF-16."]
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        note = f"{path.name} is not UTF-8 and was read as Latin-1; check names with accents."
        return content.decode("latin-1"), [note]


def _key(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")


def _lines(path: Path, text: str, *, separator: str) -> list[Line]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    lines = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                lines.append(Line(reader.line_num, cells))
    except csv.Error as error:
        raise DataError(
            f"Line {max(reader.line_num, 1)} of {path.name} cannot be read: {error}.",
            "Save the list again as CSV, with quotes closed and one row a picture.",
        ) from error
    return lines


def _fitted(path: Path, line: Line, width: int) -> Line:
    if len(line.cells) <= width:
        return line
    if any(cell.strip() for cell in line.cells[width:]):
        raise _unfitting(path, line, width, "Put quotes round fields that hold the separator.")
    return Line(line.number, line.cells[:width])


def _unfitting(path: Path, line: Line, width: int, remedy: str) -> DataError:
    fields = f"has {len(line.cells)} fields, its header {width}"
    return DataError(f"Line {line.number} of {path.name} {fields}.", remedy)
