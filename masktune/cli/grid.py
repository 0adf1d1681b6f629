"""``python -m masktune grid``: every combination of strategies, thresholds, rates and seeds."""

import argparse
from pathlib import Path

from masktune.checkpoints.settings import OPTIONS, add_options, settings
from masktune.cli.terminal import answer, first_process, numbers, shown

DECIDED = frozenset({"rival", "strategy", "k", "finetune_lr", "seed"})
"""Options of a run that those of a grid stand for, or that it is not about."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    from masktune.heat.strategies import STRATEGIES

    add_options(command, without=DECIDED)
    add = command.add_argument
    names = ", ".join(STRATEGIES)
    add("--strategies", default="heat", help=f"what is hidden, with commas between: {names}")
    add("--ks", type=numbers, default=(), help="thresholds, such as 1,2,3")
    add("--rates", type=numbers, default=(), help="rates of the finetune, such as 0.001,0.01")
    add("--seeds", type=_whole, help="such as 0,1; by default 0, or that of a model in its folder")
    add("--out", type=Path, required=True, help="folder of the grid, with a folder a run")


def _whole(text: str) -> tuple[int, ...]:
    """Read whole numbers with commas between."""
    try:
        return tuple(map(int, text.split(",")))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"'{text}' are not whole numbers with commas between, such as 0,1"
        ) from error


def carry_out(chosen: argparse.Namespace) -> None:
    """Carry out a grid and say what it came to; of several processes the first writes."""
    from masktune.studies.grid import Grid, grid, in_words
    from masktune.studies.tournament.plan import caution

    said = {name: getattr(chosen, name, None) for name in OPTIONS}
    given = {name: value for name, value in said.items() if value not in (None, "")}
    wanted = Grid(
        given=given,
        strategies=tuple(part.strip() for part in chosen.strategies.split(",") if part.strip()),
        ks=chosen.ks,
        rates=chosen.rates,
        seeds=chosen.seeds or (settings(given, without_effect="left out").seed,),
    )
    with shown() as watcher:
        told = grid(wanted, out=chosen.out, watcher=watcher)
    if first_process():
        words = *in_words(told), *caution(given, wanted.seeds)
        answer(chosen, told, *words, f"Study: {chosen.out / 'study.json'}")
