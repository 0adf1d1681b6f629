"""Read a CSV file as people save it: any separator, byte order mark, quotes, old encodings."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from masktune.errors import DataError

MOST_BYTES = 256 * 2**20
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class Line(NamedTuple):
    """A row and the line of the file it ends on, from 1."""

    number: int
    cells: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table of text.

    Attributes:
        path: its file.
        header: column names as written.
        keys: column names in lower case, with underscores for blanks and dashes.
        lines: rows that are not empty, none longer than the header.
        findings: how the file was read, where that was not the plain way.
    """

    path: Path
    header: tuple[str, ...]
    keys: tuple[str, ...]
    lines: tuple[Line, ...]
    findings: tuple[str, ...]


def read_sheet(path: Path, *, known: frozenset[str]) -> Sheet:
    """Read a CSV file; the separator is the one that finds most of the ``known`` columns.

    Raises:
        DataError: it is no text, too large, empty, or has rows that cannot be read.
    """
    text, findings = _text(path)
    if "\0" in text:
        raise DataError(
            f"Line {text[: text.index(chr(0))].count(chr(10)) + 1} of {path.name} holds NUL "
            "characters, so it is no plain text.",
            "Save it again as CSV (UTF-8).",
        )
    first = text.lstrip("\r\n").partition("\n")[0]
    separator = max(_SEPARATORS, key=lambda mark: (_score(first, mark, known), first.count(mark)))
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


def _score(first: str, separator: str, known: frozenset[str]) -> int:
    return sum(_key(name.strip(' "')) in known for name in first.split(separator))


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
        raise DataError(
            f"Line {line.number} of {path.name} has {len(line.cells)} fields, its header {width}.",
            "Put quotes round fields that hold the separator.",
        )
    return Line(line.number, line.cells[:width])
