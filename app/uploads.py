"""Files that came through the browser, kept by content. Knows nothing of Streamlit."""

import hashlib
import io
import re
import shutil
from pathlib import Path

from masktune.cache import Cache
from masktune.data.kept import tidy, used
from masktune.errors import DataError
from masktune.files import home, replace_file

_DIGESTS = Cache(most=64)

LONGEST = 80
"""Letters of a file name that are kept."""

UPLOADED = re.compile(r"file:([0-9a-f]{16})/(?!\.)([\w.-]{1,80})")
"""The address of a file that was brought: the digest of its content, and its name."""


def uploads_home() -> Path:
    """Give the folder that holds uploaded files."""
    return home() / "uploads"


def keep_upload(name: str, content: io.BytesIO, *, upload: str | None = None) -> Path:
    """Write an uploaded file to the disk; the same content is written once.

    Args:
        name: as the browser gave it; only its last part is used, and only plain letters of that.
        content: read from its start.
        upload: what the server calls this upload; one that is known is not hashed again.
    """

    def hashed() -> str:
        content.seek(0)
        return hashlib.file_digest(content, "sha256").hexdigest()[:16]

    digest = hashed() if upload is None else _DIGESTS.get(upload, hashed)
    path = uploads_home() / digest / plain_name(name)
    if not path.is_file():
        content.seek(0)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path) as file:
                shutil.copyfileobj(content, file)
        except OSError as error:
            raise DataError(
                f"The upload cannot be kept in {path.parent}: {error.strerror or error}.",
                "Free some disk space, or give the file's path instead of uploading it.",
            ) from error
    used(path.parent)
    tidy(uploads_home())
    return path


def address_of(path: Path) -> str | None:
    """Return the address of a file that was brought; None where it is no such file."""
    if not path.is_relative_to(uploads_home()):
        return None
    where = f"file:{path.relative_to(uploads_home()).as_posix()}"
    return where if UPLOADED.fullmatch(where) else None


def plain_name(name: str) -> str:
    """Give a file name that means the same on every disk.

    >>> plain_name("../../etc/my model (1).pth")
    'my_model__1_.pth'
    >>> plain_name("..")
    'upload'
    """
    last = re.split(r"[/\\]", name)[-1]
    kept = re.sub(r"[^\w.-]", "_", last)[-LONGEST:].lstrip(".")
    return kept or "upload"
