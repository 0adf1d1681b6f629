"""``python -m masktune tournament``: methods side by side, chosen on validation."""

import argparse
import sys
from pathlib import Path

from masktune.checkpoints.settings import OPTIONS, add_options
from masktune.cli.terminal import answer, first_process, numbers, shown

DECIDED = frozenset({"rival", "strategy", "k"})
"""Options of a run that --methods and --ks stand for."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    from masktune.studies.tournament.plan import METHODS
    from masktune.studies.tournament.tries import TRIABLE, called

    add_options(command, without=DECIDED)
    add = command.add_argument
    add("--methods", required=True, help=f"with commas between: {', '.join(METHODS)}")
    add("--ks", type=numbers, default=(), help="thresholds that MaskTune is tried at, such as 1,2")
    add("--rates", type=numbers, default=(1.0,), help="factors on the usual rate, such as 1,3")
    add(
        "--try",
        dest="tries",
        action="append",
        default=[],
        metavar="SETTING=A,B",
        help="values that a setting is tried at, such as worst-share=0.1,0.5, for the methods that "
        f"look at it; once for each of some of: {', '.join(map(called, TRIABLE))}",
    )
    add("--seeds", type=int, default=1, help="how often all of it is done, from --seed up")
    add("--out", type=Path, required=True, help="folder of the tournament, with a folder a run")


def carry_out(chosen: argparse.Namespace) -> None:
    """Carry out a tournament and say what it came to; of several processes the first writes."""
    from masktune.studies.tournament.carry_out import tournament
    from masktune.studies.tournament.plan import Request, caution
    from masktune.studies.tournament.table import document, in_words
    from masktune.studies.tournament.tries import tries_of

    said = {name: getattr(chosen, name, None) for name in OPTIONS}
    request = Request(
        given={name: value for name, value in said.items() if value not in (None, "")},
        methods=tuple(part.strip() for part in chosen.methods.split(",") if part.strip()),
        ks=chosen.ks,
        rates=chosen.rates,
        tries=tries_of(" ".join(chosen.tries)),
        seeds=chosen.seeds,
    )
    with shown() as watcher:
        outcome = tournament(request, out=chosen.out, watcher=watcher, tell=_tell)
    if not first_process():  # the others may read what the first is still writing
        return
    told = document(outcome)
    answer(
        chosen,
        told,
        *in_words(told),
        told["rule"],
        *caution(request.given, request.all_seeds),
        f"Report: {chosen.out / 'report.html'}",
    )


def _tell(words: str) -> None:
    if first_process():
        sys.stderr.write(f"{words}\n")
