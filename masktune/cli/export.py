"""What the commands that write something of a finished run share."""

import argparse
from pathlib import Path

from masktune.cli.terminal import answer


def add_run_argument(command: argparse.ArgumentParser, *, also: str = "") -> None:
    """Add which run; ``also`` says what else may be given."""
    command.add_argument("run", type=Path, help=f"folder of a finished run {also}".rstrip())
    command.add_argument(
        "--arch", help="package.module:factory, for a run of a model class of your own"
    )


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add which run and where to."""
    add_run_argument(command)
    command.add_argument("--export", type=Path, required=True, help="where to write")


def exported(chosen: argparse.Namespace, **facts: object) -> None:
    """Say where it was written."""
    answer(chosen, {"export": str(chosen.export), **facts}, str(chosen.export))
