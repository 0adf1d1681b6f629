"""``python -m masktune weights``."""

import argparse
from typing import get_args

from masktune.cli import export
from masktune.errors import ConfigError
from masktune.files import write_new
from masktune.runs.export import FileFormat, weights_bytes
from masktune.runs.open import OpenRun
from masktune.runs.pair import SelectivePair

PAIR = "pair"
LAYOUTS = (*get_args(FileFormat), PAIR)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    export.add_arguments(command)
    command.add_argument(
        "--of",
        choices=("before", "after"),
        help="whose: the model before, or after, which is usual where there is one",
    )
    command.add_argument(
        "--layout",
        default="original",
        help=f"one of {', '.join(LAYOUTS)}; the last is a ZIP with both models and the thresholds "
        "that abstain, for predict",
    )
    command.add_argument(
        "--coverage", type=float, help="share of pictures that a pair answers; by default all"
    )


def carry_out(chosen: argparse.Namespace) -> None:
    """Write the weights of a model."""
    if chosen.layout not in LAYOUTS:
        raise ConfigError(
            f"There is no layout '{chosen.layout}'.", f"Choose one of {', '.join(LAYOUTS)}."
        )
    if chosen.coverage is not None and chosen.layout != PAIR:
        raise ConfigError(
            "One model's weights have no coverage.", f"Leave it out, or add --layout {PAIR}."
        )
    if chosen.of is not None and chosen.layout == PAIR:
        raise ConfigError(
            f"--of {chosen.of} would do nothing: a pair has both models.", "Leave it out."
        )
    run = OpenRun(chosen.run, arch=chosen.arch)
    of = chosen.of or ("before" if run.config.only_before else "after")
    if chosen.layout == PAIR:
        coverage = 1.0 if chosen.coverage is None else chosen.coverage
        content = SelectivePair.of(run, coverage=coverage).to_zip()
    else:
        model = run.before if of == "before" else run.after
        content = weights_bytes(model, file_format=chosen.layout)[1]
    write_new(chosen.export, content)
    facts = {} if chosen.layout == PAIR else {"of": of}
    export.exported(chosen, **facts, layout=chosen.layout)
