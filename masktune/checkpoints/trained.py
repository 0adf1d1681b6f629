"""A folder that holds a model trained here, given in place of a file. Without PyTorch."""

import json
import os.path
from pathlib import Path

from masktune.config import BUNDLED, RunConfig
from masktune.errors import ConfigError
from masktune.files import written_path

BEFORE = "before.safetensors"
"""The model before in the folder of a run or of a training."""

CONFIG = "config.json"


def trained_in(path: str) -> Path | None:
    """Return the model in the folder of a run or of a training; None for all other paths."""
    file = written_path(path) / BEFORE
    return file if path != BUNDLED and is_file(file) else None


def is_file(path: str | Path) -> bool:
    """Tell whether there is a file; an address may have made the path up."""
    return os.path.isfile(path)  # noqa: PTH113 - pathlib raises where a name is too long


def settings_of(model: Path) -> RunConfig | None:
    """Return how a model was trained that lies in such a folder; None where that is not said."""
    try:
        return RunConfig.from_json(json.loads((model.parent / CONFIG).read_text("utf-8")))
    except (OSError, ValueError, AttributeError, ConfigError):
        return None
