"""``python -m masktune predict``."""

import argparse
import sys
from pathlib import Path

from masktune.cli.export import add_run_argument
from masktune.cli.terminal import answer, first_process, shown
from masktune.compute import DEVICES, accelerator
from masktune.datasets.own import pictures_of
from masktune.errors import ConfigError
from masktune.files import is_file, write_new
from masktune.runs.open import OpenRun
from masktune.runs.pair import SelectivePair, answer_pictures, read_pair


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    add_run_argument(command, also="or the ZIP of a pair that it exported")
    command.add_argument(
        "--root", type=Path, required=True, help="new pictures: a folder, a ZIP or one file"
    )
    command.add_argument(
        "--coverage",
        type=float,
        help="share of pictures to answer, as the validation pictures tell; by default all, or "
        "the pair's",
    )
    command.add_argument(
        "--export", type=Path, help="where to write the CSV; by default standard output"
    )
    command.add_argument("--device", default="auto", help=f"one of {', '.join(DEVICES)}")


def carry_out(chosen: argparse.Namespace) -> None:
    """Answer new pictures, or abstain."""
    if is_file(chosen.run):
        if chosen.coverage is not None:
            raise ConfigError(
                "The thresholds of an exported pair are in its file.",
                "Leave --coverage out, or give the folder of the run.",
            )
        pair = read_pair(chosen.run, arch=chosen.arch)
    else:
        run = OpenRun(chosen.run, arch=chosen.arch)
        pair = SelectivePair.of(run, coverage=1.0 if chosen.coverage is None else chosen.coverage)
    with shown() as watcher:
        folder, paths = pictures_of(chosen.root, watcher=watcher)
        compute = accelerator(chosen.device)
        found = answer_pictures(pair, folder, paths, compute=compute, watcher=watcher)
    if not first_process():
        return
    if chosen.export is not None:
        write_new(chosen.export, found.csv())
    elif not chosen.json:
        sys.stdout.buffer.write(found.csv())
        return
    document = {
        "run": str(chosen.run),
        "root": str(chosen.root),
        "coverage": pair.coverage,
        "gamma": pair.stated_gammas(),
        "pictures": len(found.files),
        "accepted": {score: int(said.accepted.sum()) for score, said in found.said.items()},
        "skipped": [{"file": path, "reason": reason} for path, reason in found.skipped],
        "answers": [dict(row) for row in found.rows() if row["problem"] is None],
    }
    answer(chosen, document, str(chosen.export))
