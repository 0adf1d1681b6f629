"""``python -m masktune bench``."""

import argparse

from masktune.cli.terminal import answer, shown
from masktune.studies.bench.ratios import document, measure, text


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    command.add_argument("--quick", action="store_true", help="fewer repetitions, rougher")


def carry_out(chosen: argparse.Namespace) -> None:
    """Measure and say what was found."""
    with shown() as watcher:
        figures, notes = measure(quick=chosen.quick, watcher=watcher)
    answer(chosen, document(figures, notes), text(figures))
