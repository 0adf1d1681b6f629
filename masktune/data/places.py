"""Where MaskTune keeps its own files."""

import os
from pathlib import Path


def home() -> Path:
    """Give the folder that runs and downloads live in: $MASKTUNE_HOME, or ~/.masktune."""
    return Path(os.environ.get("MASKTUNE_HOME") or Path.home() / ".masktune")
