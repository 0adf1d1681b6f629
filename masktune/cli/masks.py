"""``python -m masktune masks``."""

import argparse

from masktune.cli.export import add_arguments as add_arguments
from masktune.cli.export import exported
from masktune.cli.terminal import shown
from masktune.runs.export import write_masks
from masktune.runs.open import OpenRun


def carry_out(chosen: argparse.Namespace) -> None:
    """Write keep maps and masked pictures."""
    with shown() as watcher:
        written = write_masks(OpenRun(chosen.run, arch=chosen.arch), chosen.export, watcher=watcher)
    exported(chosen, pictures=written)
