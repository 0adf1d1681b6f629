"""Write files whole or not at all, and tables as CSV."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from masktune.errors import ConfigError

Value = str | float | int | None
"""What a place of a table holds."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a text begins with that spreadsheet programs take for a formula."""

_INSTALLED = Path(__file__).resolve().parents[1]
STUDIO = next(p for p in (_INSTALLED / "masktune_studio", _INSTALLED) if p.is_dir())
"""What holds ``app``, ``assets`` and ``.streamlit``: the clone, or a folder of the wheel."""

ASSETS = STUDIO / "assets"
"""The bundled demo checkpoints, digits and pictures."""


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to be written; it appears under its name when everything went well."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that a user asked for and that must not exist yet."""
    if path.exists():
        raise ConfigError(f"{path} exists already.", "Name a new file by --export.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as file:
            file.write(content)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Choose a place on a disk with room that you may write to.",
        ) from error


def csv_bytes(heads: Sequence[str], rows: Iterable[Sequence[Value]], *, end: str = "\n") -> bytes:
    """Return a table as UTF-8 text, comma separated, one head line.

    A text that begins like a formula gets a quote before it, or spreadsheet programs would run it;
    numbers stay as they are, also negative ones.

    Args:
        heads: names of the columns.
        rows: values at full precision; None is empty.
        end: of a line.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end)
    writer.writerows([_guarded(value) for value in row] for row in (heads, *rows))
    return text.getvalue().encode()


def _guarded(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    # The csv module leaves a bare carriage return unquoted, and the rest would begin a line.
    text = value.replace("\r", " ")
    return f"'{text}" if value.startswith(FORMULA) else text


def home() -> Path:
    """Give the folder that runs and downloads live in: $MASKTUNE_HOME, or ~/.masktune."""
    return Path(os.environ.get("MASKTUNE_HOME") or Path.home() / ".masktune")


def written_path(text: str | Path) -> Path:
    """Give a path as somebody wrote it, ~ for a home; the ~ of a user who is not known stays.

    >>> written_path("~nobody-of-this-name/pictures").as_posix()
    '~nobody-of-this-name/pictures'
    """
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path
