"""The command line: ``python -m masktune COMMAND``, one file of this folder a command.

A command's file is imported when the command is chosen: saying what there is must not take as long
as importing PyTorch. It has ``carry_out``, and ``add_arguments`` where there are options.
"""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from masktune import __version__
from masktune.errors import Cancelled, ConfigError, MaskTuneError

COMMANDS = {
    "studio": "serve the app",
    "datasets": "list the datasets a run can use",
    "train": "train a model the usual way and stop there",
    "run": "train or load, hide, finetune for one epoch",
    "advise": "suggest a threshold k",
    "inspect": "say what a checkpoint file holds and fits",
    "masks": "write keep maps and masked pictures as PNG files",
    "weights": "write the weights of a model, by default in the layout of the file that came",
    "predictions": "write every answer of both models as CSV",
    "predict": "answer new pictures, or abstain",
    "report": "write report.html into a run folder",
    "reproduce": "repeat an experiment of the paper",
    "tournament": "set methods side by side, chosen on validation",
    "grid": "every combination of strategies, thresholds, rates and seeds",
    "bench": "measure what heat and hiding cost, as ratios",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code.

    0 on success, 2 for what the user can put right (one problem, one remedy on standard error),
    130 when interrupted, 143 when cancelled from outside.
    """
    # OpenMP's threads spin for a core that another process has, and a run beside a busy neighbour
    # takes ten times as long. Read when PyTorch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    previous = signal.signal(signal.SIGTERM, _cancel)
    given, job = [*(sys.argv[1:] if arguments is None else arguments)], None
    try:
        if (job := _job(given)) is not None:
            from masktune.runs.queue import say_failed, wait_for_turn

            wait_for_turn(job)  # before its options are read, because that imports PyTorch
            given.remove("--queue")
        chosen = parsed(given)
        chosen.carry_out(chosen)
        if "masktune.compute" in sys.modules:
            sys.modules["masktune.compute"].end()
    except MaskTuneError as error:
        _say(f"{error.problem}\n{error.remedy}".rstrip())
        if job is not None:
            say_failed(job, error.problem, error.remedy)
        return 2
    except KeyboardInterrupt:
        _say("Interrupted. The same command goes on from where it stopped.")
        return 130
    except Cancelled:
        _say("Cancelled. The same command goes on from where it stopped.")
        return 143
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 0


class _Parser(argparse.ArgumentParser):
    """Explains a mistake like every other error, without a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(
            f"{message[:1].upper()}{message[1:]}.", f"See {self.prog} --help for what is possible."
        )


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of the chosen command, and ``carry_out``, which carries it out."""
    parser = _Parser(
        prog="python -m masktune",
        description="Find the clue an image classifier leans on, hide it, finetune, compare.",
    )
    parser.add_argument("--version", action="version", version=f"masktune {__version__}")
    commands = parser.add_subparsers(required=True, metavar=" | ".join(COMMANDS))
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    for name, help_ in COMMANDS.items():
        # Unabbreviated, or --k, which a run has, would be taken for --ks, and --seed for --seeds.
        whole = name in ("advise", "grid", "reproduce", "tournament")
        command = commands.add_parser(name, help=help_, allow_abbrev=not whole)
        if name == chosen:
            module = importlib.import_module(f"masktune.cli.{name}")
            if hasattr(module, "add_arguments"):
                module.add_arguments(command)
            command.add_argument("--json", action="store_true", help="print one JSON document only")
            command.set_defaults(carry_out=module.carry_out)
    told, unknown = parser.parse_known_args(arguments)
    if unknown:  # said by the command, whose help has all that is possible
        commands.choices[str(chosen)].error(f"unrecognized arguments: {' '.join(unknown)}")
    return told


def _job(arguments: Sequence[str]) -> Path | None:
    """Return the folder of a job of the page, ``run --queue --out DIR``; None for a command."""
    waiting = _Parser(add_help=False, allow_abbrev=False)
    waiting.add_argument("--queue", action="store_true")
    waiting.add_argument("--out", type=Path)
    job, _ = waiting.parse_known_args(arguments)
    if job.queue and job.out is None:
        raise ConfigError(
            "A run that waits for its turn has no folder to wait in.",
            "Name it with --out, or leave --queue out: it is for jobs of the page.",
        )
    return job.out if job.queue else None


def _cancel(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Cancelled


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
