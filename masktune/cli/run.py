"""``python -m masktune run``: mistakes in its options are told before PyTorch is imported."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from masktune.checkpoints.settings import add_options, run_config
from masktune.cli.terminal import answer, first_process, shown

if TYPE_CHECKING:
    from masktune.scores.class_order import OtherOrder
    from masktune.scores.result import SplitResult
    from masktune.training.context import Foretold
    from masktune.training.rates import FinetuneRate


LARGER = (
    "Where hiding takes away what the model leans on, try --finetune-lr {:g}; a larger rate makes "
    "harm larger too."
)


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
        result = pipeline.run(config, out=chosen.out, watcher=watcher, tell=say)
    gaps = result.bg_gap
    answer(
        chosen,
        result.to_json(),
        *result.data.findings,
        *(line for test in result.test.values() for line in _lines(test)),
        *([f"BG-gap: {gaps.before:.1%} before, {gaps.after:.1%} after"] if gaps else []),
        f"Report: {result.folder / 'report.html'}",
    )


def say(foretold: "Foretold") -> None:
    """Say on standard error what somebody who is about to finetune must hear."""
    from masktune.scores.hiding import Hiding
    from masktune.show.hiding import before_words
    from masktune.training.rates import FinetuneRate

    if isinstance(foretold, Hiding):
        words = before_words(foretold)
    elif isinstance(foretold, FinetuneRate):
        words = rate_words(foretold)
    else:
        words = order_words(foretold)
    if words and first_process():
        sys.stderr.write(f"{words}\n")


def rate_words(rate: "FinetuneRate") -> str:
    """Say where a rate is from that has nothing to do with the model, and if it is too small."""
    from masktune.training.rates import NOT_STORED, suggest_rate

    said = []
    if rate.origin == NOT_STORED:
        said.append(f"The finetune's rate is {rate.lr:g}, {rate.origin}.")
    wanted, why = suggest_rate(rate.lr, rate.steps, called="The finetune's rate")
    if wanted is not None:
        said.append(f"Warning, before the epoch: {why} {LARGER.format(wanted)}")
    return " ".join(said)


def order_words(found: "OtherOrder") -> str:
    """Say in which order of the classes a model does clearly better."""
    from masktune.show.wording import count, percent, points_interval

    change = found.change
    return (
        "Warning, before the epoch: the model seems to have its classes in another order. Of "
        f"{count(change.count)} validation pictures {percent(change.before)} are answered right as "
        f"it is, {percent(change.after)} with --class-order {','.join(map(str, found.order))} "
        f"({points_interval(change.interval)} points; the order was found on others)."
    )


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
