"""``python -m masktune run``: mistakes in its options are told before PyTorch is imported."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from masktune.checkpoints.settings import add_options, run_config
from masktune.cli.terminal import answer, first_process, shown

if TYPE_CHECKING:
    from masktune.scores.hiding import Hiding
    from masktune.scores.result import SplitResult


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    add_options(command)
    command.add_argument(
        "--out", type=Path, help="run folder; by default a new one in $MASKTUNE_HOME/runs"
    )


def carry_out(chosen: argparse.Namespace) -> None:
    """Carry out a run and say what it came to."""
    config = run_config(chosen)
    from masktune import pipeline

    with shown() as watcher:
        result = pipeline.run(config, out=chosen.out, watcher=watcher, tell=say_verdict)
    gaps = result.bg_gap
    answer(
        chosen,
        result.to_json(),
        *result.data.findings,
        *(line for test in result.test.values() for line in _lines(test)),
        *([f"BG-gap: {gaps.before:.1%} before, {gaps.after:.1%} after"] if gaps else []),
        f"Report: {result.folder / 'report.html'}",
    )


def say_verdict(hiding: "Hiding") -> None:
    """Say on standard error what hiding takes away, before the epoch."""
    from masktune.show.hiding import before_words

    if first_process():
        sys.stderr.write(f"{before_words(hiding)}\n")


def _lines(test: "SplitResult") -> list[str]:
    """Return the numbers of a test set, and below them what they prove."""
    from masktune.scores.groups import group_name
    from masktune.show.wording import verdict_parts

    before, after = test.before, test.after
    return [
        f"{test.name}: average {before.average:.1%} before, {after.average:.1%} after; "
        f"worst {after.worst_is} {before.worst.accuracy:.1%} before, "
        f"{after.worst.accuracy:.1%} after ({group_name(after.worst)})",
        *(f"  {text}" for _, text in verdict_parts(test.name, test.evidence)),
    ]
