"""``python -m masktune advise``: which k, by a rule that uses no group label."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from typing import Any

from masktune.checkpoints.settings import add_options, run_config
from masktune.checkpoints.start import given_model
from masktune.cli.terminal import answer, numbers, shown
from masktune.compute import accelerator
from masktune.config import RivalConfig, RunConfig, options
from masktune.errors import ConfigError
from masktune.progress import Watcher, unwatched
from masktune.runs.load import load_for
from masktune.scores.hiding import RULE as HIDING_RULE
from masktune.show.hiding import reason, verdict_words
from masktune.show.wording import count, percent
from masktune.studies.advice import RULE, Advice, Trial, suggest
from masktune.studies.sweep import KS, SAMPLE, quick_look, sweep, with_rate
from masktune.training.context import Context
from masktune.training.rates import RATE_RULE

COLUMNS = (
    ("k",),
    ("pixels", "hidden"),
    ("nothing", "hidden"),
    ("before:", "right when hidden"),
    ("after: right on", "hidden training"),
    ("after: right on", "validation"),
    ("its worst", "class"),
)
"""Heads of the table, each on one line or two."""

UNASKED = frozenset(
    {"weights", "epochs", "lr", "strategy", "k", "rounds", "accumulate", "top_fraction"}
    | {"rival", "start", *(option.name for option in options(RivalConfig))}
)
"""Options of a run that thresholds are tried without: nothing is trained, heat hides once, and it
is MaskTune that has a threshold."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option."""
    add_options(command, without=UNASKED)
    command.add_argument(
        "--ks", type=numbers, default=KS, help="thresholds to try, such as 0,1,2; 0 to 3 in halves"
    )
    command.add_argument(
        "--quick",
        action="store_true",
        help=f"finetune nothing, look at {count(SAMPLE)} training pictures at most",
    )


def carry_out(chosen: argparse.Namespace) -> None:
    """Try the thresholds and say what they suggest."""
    config = run_config(chosen)
    with shown() as watcher:
        trials = try_thresholds(config, chosen.ks, quick=chosen.quick, watcher=watcher)
    advice = suggest(trials)
    answer(chosen, advice_document(trials, advice), advice_text(trials, advice))


def advice_document(trials: Sequence[Trial], advice: Advice) -> dict[str, Any]:
    """Give trials and what they suggest as JSON values; all shares in [0, 1]."""
    return {
        "trials": [
            {
                **asdict(replace(trial, hiding=None)),
                "hiding": trial.hiding
                and {**trial.hiding.to_json(), "reason": reason(trial.hiding)},
            }
            for trial in trials
        ],
        "advice": {**asdict(advice), "rule": RULE, "rate_rule": RATE_RULE},
        "hiding_rule": HIDING_RULE,
    }


def try_thresholds(
    config: RunConfig, ks: Sequence[float], *, quick: bool, watcher: Watcher = unwatched
) -> tuple[Trial, ...]:
    """Try thresholds on the model and pictures of a run's settings, whose own k does not count.

    ``quick`` finetunes nothing and looks at a sample only.
    """
    if config.model is None:
        raise ConfigError(
            "There is no model to look at: thresholds are tried on a trained one.",
            "Give its checkpoint by --model, or --model bundled with a demo.",
        )
    bundle = load_for(config, watcher=watcher)
    before = given_model(config.model, bundle.card, config=config)
    context = Context(
        config=replace(config, masking=replace(config.masking, strategy="heat")),
        bundle=bundle,
        compute=accelerator(config.device),
        watcher=watcher,
    )
    trials = quick_look(context, before.model, ks=ks) if quick else sweep(context, before, ks=ks)
    return with_rate(trials, config, before, pictures=len(bundle.train))


def advice_text(trials: Sequence[Trial], advice: Advice) -> str:
    """Return trials, ascending in k, as a table, then what they suggest and by which rule."""
    columns = COLUMNS if any(trial.tuned for trial in trials) else COLUMNS[:4]
    rows = [
        *zip(*(("", *head)[-2:] for head in columns), strict=True),
        *(_cells(trial)[: len(columns)] for trial in trials),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    lines.append(
        f"On {count(trials[0].pictures)} training pictures; the model before answers "
        f"{percent(trials[0].seen)} right when nothing is hidden."
    )
    head = "No k stands out." if advice.k is None else f"Suggested: k = {advice.k:g}."
    taken = [
        f"k = {trial.k:g}: {verdict_words(trial.hiding)[0][1]}" for trial in trials if trial.hiding
    ]
    said = [f"{head} {advice.reason}", advice.lr_reason, *taken, RULE]
    said += [RATE_RULE if advice.lr_reason else "", HIDING_RULE if taken else ""]
    return "\n".join([*lines, *(line for part in said if part for line in ("", part))])


def _cells(trial: Trial) -> tuple[str, ...]:
    shares = (trial.hidden_fraction, trial.empty_fraction, trial.hidden)
    tuned = astuple(trial.tuned) if trial.tuned else (None, None, None)
    return (f"{trial.k:g}", *map(percent, (*shares, *tuned)))
