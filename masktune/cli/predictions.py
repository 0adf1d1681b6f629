"""``python -m masktune predictions``."""

import argparse

from masktune.cli.export import add_arguments as add_arguments
from masktune.cli.export import exported
from masktune.files import write_new
from masktune.runs.export import predictions_csv
from masktune.runs.open import OpenRun


def carry_out(chosen: argparse.Namespace) -> None:
    """Write every answer of both models."""
    write_new(chosen.export, predictions_csv(OpenRun(chosen.run, arch=chosen.arch)))
    exported(chosen)
