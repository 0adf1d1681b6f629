"""Where MaskTune keeps its own files."""

import os
from pathlib import Path


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
