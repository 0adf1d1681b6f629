"""``python -m masktune train``: the model before, on its own."""

import argparse
from dataclasses import replace
from pathlib import Path

from masktune.checkpoints.settings import OPTIONS, add_options, run_config
from masktune.cli.terminal import answer, shown

GIVEN = {"model", "class_order"}  # the latter of a model that is given
TUNING = frozenset(
    GIVEN | {o.name for o in OPTIONS.values() if o.part in ("masking", "finetune")} - {"device"}
)
"""Options of a run that say nothing about how its model before is trained."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    add_options(command, without=TUNING)
    command.add_argument(
        "--out", type=Path, help="folder; by default a new one in $MASKTUNE_HOME/runs"
    )


def carry_out(chosen: argparse.Namespace) -> None:
    """Train a model and say how it does."""
    config = replace(run_config(chosen), only_before=True)
    from masktune import pipeline
    from masktune.scores.groups import group_name

    with shown() as watcher:
        result = pipeline.train_before(config, out=chosen.out, watcher=watcher)
    answer(
        chosen,
        result.to_json(),
        *result.data.findings,
        *(
            f"{name}: average {found.average:.1%}, worst {found.worst_is} "
            f"{found.worst.accuracy:.1%} ({group_name(found.worst)})"
            for name, found in result.test.items()
        ),
        f"Finetune it: masktune run --dataset {config.dataset} --model {result.folder}",
    )
