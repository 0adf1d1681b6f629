"""``python -m masktune run``."""

import argparse
from pathlib import Path
from typing import Any

from masktune import pipeline
from masktune.checkpoints.settings import add_options, run_config
from masktune.cli.terminal import answer, shown
from masktune.compute import first_process


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    add_options(command)
    command.add_argument(
        "--out", type=Path, help="run folder; by default a new one in $MASKTUNE_HOME/runs"
    )


def carry_out(chosen: argparse.Namespace) -> None:
    """Carry out a run and say what it came to; of several processes only the first speaks."""
    config = run_config(chosen)
    if not first_process():
        pipeline.run(config, out=chosen.out)
        return
    with shown() as watcher:
        result = pipeline.run(config, out=chosen.out, watcher=watcher)
    document = result.document
    gaps = document.get("bg_gap")
    answer(
        chosen,
        document,
        *document.get("data", {}).get("findings", ()),
        *(_sentence(name, scores) for name, scores in document["test"].items()),
        *([f"BG-gap: {gaps['before']:.1%} before, {gaps['after']:.1%} after"] if gaps else []),
        f"Report: {result.folder / 'report.html'}",
    )


def _sentence(name: str, scores: dict[str, Any]) -> str:
    before, after = scores["before"], scores["after"]
    return (
        f"{name}: average {before['average']:.1%} before, {after['average']:.1%} after; "
        f"worst {after['worst_is']} {before['worst_group']:.1%} before, "
        f"{after['worst_group']:.1%} after ({after['worst_name']})"
    )
