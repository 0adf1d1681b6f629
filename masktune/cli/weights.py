"""``python -m masktune weights``."""

import argparse
from typing import get_args

from masktune.cli import export
from masktune.errors import ConfigError
from masktune.files import write_new
from masktune.runs.export import FileFormat, weights_bytes
from masktune.runs.open import OpenRun

LAYOUTS = get_args(FileFormat)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    export.add_arguments(command)
    command.add_argument("--layout", default="original", help=f"one of {', '.join(LAYOUTS)}")


def carry_out(chosen: argparse.Namespace) -> None:
    """Write the tuned weights."""
    if chosen.layout not in LAYOUTS:
        raise ConfigError(
            f"There is no layout '{chosen.layout}'.", f"Choose {' or '.join(LAYOUTS)}."
        )
    model = OpenRun(chosen.run, arch=chosen.arch).after
    write_new(chosen.export, weights_bytes(model, file_format=chosen.layout)[1])
    export.exported(chosen, layout=chosen.layout)
