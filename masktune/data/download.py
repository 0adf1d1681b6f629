"""Fetch files from the web: whole and checked, or not at all."""

import contextlib
import gzip
import hashlib
import http.client
import shutil
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from masktune.errors import DataError
from masktune.files import alone, beside, replace_file
from masktune.progress import Progress, Watcher, unwatched

MEGABYTE = 1 << 20
PATIENCE = 30.0  # seconds without a byte after which a server counts as gone


def fetch(url: str, *, to: Path, md5: str | None = None, watcher: Watcher = unwatched) -> Path:
    """Download a file, unless it is already there.

    It is written under another name and renamed when it is whole, so that an interrupted
    download leaves nothing behind and ``to`` can be trusted.

    Args:
        url: http or https.
        to: where the file goes; its folder is made.
        md5: what the content must hash to; None trusts the length the server states.
        watcher: hears "download" in megabytes.
    """
    if to.is_file():
        return to
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with alone(to, waiting=lambda: watcher(Progress(stage="download", done=0, total=1))):
            if not to.is_file():
                with replace_file(to) as file:
                    _stream(url, file, watcher)
                    if md5 is not None:
                        _refuse_other(Path(file.name), url=url, md5=md5)
    except (
        urllib.error.URLError,
        http.client.HTTPException,
        TimeoutError,
        ConnectionError,
    ) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection open
        raise DataError(
            f"{url} cannot be downloaded: {getattr(error, 'reason', None) or error}.",
            "Check the network, or download the file by hand and give its folder as --root.",
        ) from error
    except OSError as error:
        raise DataError(
            f"{to} cannot be written: {error.strerror or error}.",
            "Free some space, or set MASKTUNE_HOME to a folder that can be written.",
        ) from error
    return to


def _refuse_other(part: Path, *, url: str, md5: str) -> None:
    """Hash what is on the disk, not what came over the wire."""
    with part.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != md5:
        raise DataError(
            f"{url} is not the expected file: its MD5 is {found}, not {md5}.",
            "Try again later, or download it by hand and give its folder as --root.",
        )


def fetch_any(
    urls: Sequence[str], *, to: Path, md5: str | None = None, watcher: Watcher = unwatched
) -> Path:
    """Download a file from the first of several mirrors that has it."""
    for url in urls[:-1]:
        with contextlib.suppress(DataError):
            return fetch(url, to=to, md5=md5, watcher=watcher)
    return fetch(urls[-1], to=to, md5=md5, watcher=watcher)


def unpack_tar(archive: Path, *, member: str, into: Path) -> Path:
    """Unpack the folder ``member`` of a downloaded tar file, whole or not at all.

    Members that would land outside, links that lead outside and devices are refused.

    Returns:
        ``into / member``.
    """
    folder = into / member
    with _unpacking(archive), alone(folder):
        if not folder.is_dir():
            into.mkdir(parents=True, exist_ok=True)
            with beside(folder) as part, tarfile.open(archive) as tar:
                tar.extractall(part, filter="data")
                (part / member).replace(folder)
    return folder


def unpack_gzip(archive: Path, *, to: Path) -> Path:
    """Unpack a downloaded gzip file to ``to``, whole or not at all."""
    with _unpacking(archive), gzip.open(archive) as packed, replace_file(to) as file:
        shutil.copyfileobj(packed, file)
    return to


@contextmanager
def _unpacking(archive: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DataError(
            f"{archive} cannot be unpacked: {error}.", f"Delete {archive} and try again."
        ) from error


def _stream(url: str, file: BinaryIO, watcher: Watcher) -> None:
    if not url.startswith(("http://", "https://")):
        raise DataError(f"{url} is not a web address.", "Give one that starts with https://.")
    done = 0
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        stated = int(answer.headers.get("Content-Length") or 0)
        while chunk := answer.read(MEGABYTE):
            file.write(chunk)
            file.flush()
            done += len(chunk)
            steps = -(-done // MEGABYTE)
            watcher(
                Progress(stage="download", done=steps, total=max(steps, -(-stated // MEGABYTE)))
            )
        if done < stated:
            raise http.client.IncompleteRead(b"", stated - done)
