"""Write files whole or not at all, one at a time, tables as CSV; and know where home is."""

import csv
import hashlib
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from filelock import FileLock, Timeout

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

_WAIT = 0.5  # seconds between two reports while somebody else has the lock


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give a new name in the folder of ``path``; what is left under it is removed at the end.

    No other thread or process has this name, so nobody's bytes mix.
    """
    part = path.with_name(f".{path.name[:40]}.{uuid4().hex}.part")
    try:
        yield part
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to be written; it appears under its name when all of it is on the disk."""
    with beside(path) as part:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


@contextmanager
def alone(path: Path, *, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Let one thread of one process at a time make what belongs at ``path``.

    Whoever comes second looks again whether it is there. The lock itself lies under ``home()``;
    ``waiting`` is called now and then while somebody else is at it, and raises to stop waiting.
    """
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:24]
    lock = home() / "locks" / f"{name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    held = FileLock(lock)
    while not held.is_locked:
        try:
            held.acquire(timeout=_WAIT)
        except Timeout:
            waiting()
    try:
        yield
    finally:
        held.release()


def stamp(path: str) -> tuple[int, int, int] | None:
    """Return what tells a file from what it was before, None where there is none."""
    try:
        # Pages ask for every run in the home, and pathlib takes three times as long.
        stat = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    # Files are replaced, not changed: two within one tick of the clock are still two inodes.
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def is_there(path: str | Path) -> bool:
    """Tell whether there is a file or a folder; an address may have made the path up."""
    return os.path.exists(path)  # noqa: PTH110 - pathlib raises where a name is too long


def is_file(path: str | Path) -> bool:
    """Tell whether there is a file, likewise."""
    return os.path.isfile(path)  # noqa: PTH113


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
    numbers stay as they are at full precision, also negative ones; None is empty.
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
    """Return the folder that runs and downloads live in: $MASKTUNE_HOME, or ~/.masktune."""
    if given := os.environ.get("MASKTUNE_HOME"):
        return Path(given)
    try:
        return Path.home() / ".masktune"
    except RuntimeError as error:
        raise ConfigError(
            "This account has no home folder to keep runs and downloads in.",
            "Set MASKTUNE_HOME to a folder that can be written.",
        ) from error


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
