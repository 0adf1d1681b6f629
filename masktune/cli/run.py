"""``python -m masktune run``: mistakes in its options are told before PyTorch is imported."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from masktune.checkpoints.settings import add_options, run_config
from masktune.cli.terminal import answer, shown


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    add_options(command)
    command.add_argument(
        "--out", type=Path, help="run folder; by default a new one in $MASKTUNE_HOME/runs"
    )


def carry_out(chosen: argparse.Namespace) -> None:
    """Carry out a run and say what it came to; of several processes only the first speaks."""
    config = run_config(chosen)
    from masktune import pipeline
    from masktune.compute import first_process

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
        *(line for name in document["test"] for line in _lines(document, name)),
        *([f"BG-gap: {gaps['before']:.1%} before, {gaps['after']:.1%} after"] if gaps else []),
        f"Report: {result.folder / 'report.html'}",
    )


def _lines(document: Mapping[str, Any], name: str) -> list[str]:
    """Return the numbers of a test set, and below them what they prove."""
    from masktune.scores.evidence import weigh_result
    from masktune.show.wording import verdict_parts

    before, after = (document["test"][name][moment] for moment in ("before", "after"))
    return [
        f"{name}: average {before['average']:.1%} before, {after['average']:.1%} after; "
        f"worst {after['worst_is']} {before['worst_group']:.1%} before, "
        f"{after['worst_group']:.1%} after ({after['worst_name']})",
        *(f"  {text}" for _, text in verdict_parts(name, weigh_result(document, name))),
    ]
