"""A folder that holds a model trained here, given in place of a file. Without PyTorch."""

import json
from pathlib import Path

from masktune.config import BUNDLED, RunConfig
from masktune.errors import ConfigError
from masktune.files import is_file, written_path

BEFORE = "before.safetensors"
"""The model before in the folder of a run or of a training."""

CONFIG = "config.json"


def trained_in(path: str) -> Path | None:
    """Return the model in the folder of a run or of a training; None for all other paths."""
    file = written_path(path) / BEFORE
    return file if path != BUNDLED and is_file(file) else None


def settings_of(model: Path) -> RunConfig | None:
    """Return how a model was trained that lies in such a folder; None where that is not said."""
    try:
        return RunConfig.from_json(json.loads((model.parent / CONFIG).read_text("utf-8")))
    except (OSError, ValueError, AttributeError, RecursionError, ConfigError):
        return None
