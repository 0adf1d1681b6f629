"""Unpack an uploaded zip, usually of pictures, trusting nothing it says about itself."""

import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from masktune.data.folders import is_junk
from masktune.data.listing import SUFFIXES
from masktune.errors import DataError
from masktune.files import alone, beside
from masktune.progress import Progress, Watcher, unwatched

MOST_BYTES = 2 * 10**9
"""Unpacked, of all files together."""
MOST_FILES = 200_000
MOST_RATIO = 100
"""Unpacked bytes for a byte of the zip; pictures are compressed already and stay near 1."""
FREE_BYTES = 16 * 2**20
"""Unpacked bytes before the ratio counts: a short list of names may shrink well."""

PICTURES = (*SUFFIXES, ".csv", ".tsv", ".txt", ".zip")
"""Endings of what is unpacked of pictures."""

_DIRECTORY_BYTES = MOST_FILES * 512  # of the zip's table of contents
_CHUNK = 2**20
_STEP = 64  # entries between two reports to the watcher
# NotImplementedError, a RuntimeError: features of later versions of the format.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError)
_AGAIN = "Pack the pictures again as an ordinary zip, or unpack it yourself and give the folder."


@dataclass(slots=True)
class _Budget:
    """What is unpacked so far, of a zip and the zips in it."""

    zip_bytes: int
    files: int = 0
    bytes: int = 0

    def spend(self, count: int) -> None:
        self.bytes += count
        if self.bytes > MOST_BYTES:
            raise _too_much(f"more than {MOST_BYTES / 1e9:.0f} GB")
        if self.bytes > FREE_BYTES and self.bytes > MOST_RATIO * self.zip_bytes:
            raise _too_much(f"more than {MOST_RATIO} times its own size")


def unpack(
    zip_path: Path, *, into: Path, kinds: Collection[str] = PICTURES, watcher: Watcher = unwatched
) -> Path:
    """Unpack the files of a zip that end in one of ``kinds`` into a new folder, unless it is there.

    Everything is written into a folder beside ``into`` that is renamed at the end, so that
    ``into`` is whole or absent. Files of other kinds and what macOS and Windows leave behind
    are dropped. A zip inside is unpacked into a folder of its name; a zip inside that is refused.

    Raises:
        DataError: it is no zip, damaged, encrypted, leads out of its folder, holds links or holds
            too much, or the disk is full. Nothing is left behind.
    """
    try:
        with alone(into):
            if not into.is_dir():
                into.parent.mkdir(parents=True, exist_ok=True)
                with beside(into) as part:
                    budget = _Budget(zip_path.stat().st_size)
                    _unpack(zip_path, part, kinds=kinds, budget=budget, watcher=watcher)
                    part.rename(into)
    except _DAMAGE as error:
        raise DataError(
            f"{zip_path.name} is no zip file, or a damaged one: {error}.", _AGAIN
        ) from error
    except OSError as error:
        raise DataError(
            f"{zip_path.name} cannot be unpacked: {error.strerror or error}.",
            "Free some disk space or give another zip, then try again.",
        ) from error
    return into


def _unpack(
    zip_path: Path,
    target: Path,
    *,
    kinds: Collection[str],
    budget: _Budget,
    watcher: Watcher,
    inner: bool = False,
) -> None:
    _refuse_long_directory(zip_path)
    with zipfile.ZipFile(zip_path) as archive:
        tops = {PurePosixPath(name).parts[:1] for name in archive.namelist() if not _dropped(name)}
        if inner and tops == {(target.name,)}:  # it brings a folder of its name along
            target = target.parent
        entries = [entry for entry in archive.infolist() if _wanted(entry, kinds)]
        _refuse_hostile(archive.infolist(), zip_path=zip_path)
        _refuse_claims(entries, target=target, budget=budget)
        for done, entry in enumerate(entries, start=1):
            path = target / PurePosixPath(entry.filename)
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(archive, entry, path, budget=budget)
            if path.suffix.lower() == ".zip":
                if inner:
                    raise DataError(f"'{path.name}' is a zip in a zip in a zip.", _AGAIN)
                own = path.with_suffix("")
                _unpack(path, own, kinds=kinds, budget=budget, watcher=watcher, inner=True)
                path.unlink()
            if not inner and (done % _STEP == 0 or done == len(entries)):
                watcher(Progress(stage="unpack", done=done, total=len(entries)))


def _dropped(name: str) -> bool:
    return any(is_junk(part) for part in PurePosixPath(name).parts if part != "..")


def _wanted(entry: zipfile.ZipInfo, kinds: Collection[str]) -> bool:
    suffix = PurePosixPath(entry.filename).suffix.lower()
    return not entry.is_dir() and not _dropped(entry.filename) and suffix in kinds


def _refuse_long_directory(zip_path: Path) -> None:
    """Refuse a table of contents that would fill the memory before the first entry is seen."""
    with zip_path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 66_000))
        tail = file.read()
        end = tail.rfind(b"PK\x05\x06")
        if end < 0 or len(tail) < end + 22:
            raise zipfile.BadZipFile("it has no table of contents")
        (length,) = struct.unpack_from("<L", tail, end + 12)
        if length == 0xFFFFFFFF and end >= 20:  # the long form: its place, then its length
            _, _, place, _ = struct.unpack_from("<4sLQL", tail, end - 20)
            file.seek(min(place, size))
            (length,) = struct.unpack_from("<Q", file.read(56).ljust(56, b"\0"), 40)
    if length > _DIRECTORY_BYTES:
        raise _too_much(f"more than {MOST_FILES:,} files")


def _refuse_hostile(entries: list[zipfile.ZipInfo], *, zip_path: Path) -> None:
    for entry in entries:
        name, shown = entry.orig_filename, f"'{entry.orig_filename[:80]}'"
        slashed = PurePosixPath(name.replace("\\", "/"))
        if PureWindowsPath(name).anchor or ".." in slashed.parts:  # also of /absolute names
            raise DataError(f"{zip_path.name} holds {shown}, which leads out of it.", _AGAIN)
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise DataError(f"{zip_path.name} holds a link, {shown}.", _AGAIN)
        if entry.flag_bits & 1:
            raise DataError(
                f"{zip_path.name} is encrypted ({shown}).",
                "Pack it without a password, or unpack it yourself and give the folder.",
            )
        # Others may ask for gigabytes of memory to undo.
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            how = f"in an unusual way (method {entry.compress_type})"
            raise DataError(f"{zip_path.name} packs {shown} {how}.", _AGAIN)


def _refuse_claims(entries: list[zipfile.ZipInfo], *, target: Path, budget: _Budget) -> None:
    """Refuse at once what says itself that it is too much; what lies is caught while unpacking."""
    budget.files += len(entries)
    claimed = budget.bytes + sum(entry.file_size for entry in entries)
    if budget.files > MOST_FILES:
        raise _too_much(f"more than {MOST_FILES:,} files")
    if claimed > MOST_BYTES:
        raise _too_much(f"more than {MOST_BYTES / 1e9:.0f} GB")
    target.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(target).free
    if claimed > free:
        raise DataError(
            f"Unpacking takes {claimed / 1e6:,.0f} MB, but the disk has {free / 1e6:,.0f} MB left.",
            "Free some disk space, then try again.",
        )


def _too_much(what: str) -> DataError:
    return DataError(
        f"The zip unpacks to {what}.", "Unpack it yourself and give the folder instead."
    )


def _write(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, *, budget: _Budget
) -> None:
    try:
        with archive.open(entry) as source, path.open("xb") as file:
            while chunk := source.read(_CHUNK):
                budget.spend(len(chunk))
                file.write(chunk)
    except FileExistsError as error:
        raise DataError(f"The zip holds '{entry.filename[:80]}' twice.", _AGAIN) from error
