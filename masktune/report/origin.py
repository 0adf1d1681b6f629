"""Section on where a run comes from, and the command that repeats it."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from masktune.checkpoints.settings import arguments
from masktune.config import RunConfig
from masktune.recipes import RECIPES
from masktune.runs.open import RunView
from masktune.show.markup import option_words, pairs
from masktune.show.wording import duration


def settings_and_origin(view: RunView) -> str:
    """Show every setting, where the numbers were made, and how to make them again."""
    exactly = (
        ""
        if repeats_exactly(view.config)
        else '<p class="note">The optimiser or its schedule was set from Python and has no option '
        "on the command line: it is in the table of settings.</p>"
    )
    card = view.bundle.card
    data = [("dataset", card.title), ("pictures", card.source), ("licence", card.licence)]
    return (
        f'<div class="card"><h3>The command that repeats this run</h3>'
        f"<pre>{option_words(repeat_command(view.config))}</pre>{exactly}</div>"
        f'<div class="two"><div class="card pairs"><h3>Settings</h3>'
        f"{pairs('settings', settings(view.config))}</div>"
        f'<div class="card pairs"><h3>Origin</h3>'
        f"{pairs('origin', [*origins(view.document), *data])}</div></div>"
    )


def repeat_command(config: RunConfig) -> str:
    """Give the command that repeats a run, with every setting that has an option spelled out."""
    return shlex.join(["python", "-m", "masktune", *arguments(config)])


def repeats_exactly(config: RunConfig) -> bool:
    """Tell whether the recipe holds the settings that the command line has no option for."""
    if config.recipe not in RECIPES:
        return False
    stored, given = RECIPES[config.recipe].training, config.training
    return given == replace(stored, epochs=given.epochs, batch_size=given.batch_size, lr=given.lr)


def settings(config: RunConfig) -> list[tuple[str, str]]:
    """List every setting of a run by its name in ``config.json``."""
    return _flat("", config.to_json())


def _flat(prefix: str, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += _flat(f"{prefix}{name}.", value)
        else:
            rows.append((f"{prefix}{name}", _text(value)))
    return rows


def _text(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def origins(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List what a result file says about where and how long it was made."""
    seconds: Mapping[str, float] = document["seconds"]
    records = enumerate(document["masking"]["rounds"], start=1)
    rates = [(number, record["lr"]) for number, record in records if "lr" in record]
    return [
        ("run folder", str(document["run"])),
        ("device", str(document["device"])),
        ("seed", str(document["seed"])),
        *((f"finetuning rate: round {n}", f"{rate:g}") for n, rate in rates),
        *((f"time: {part}", duration(value)) for part, value in seconds.items()),
        ("time: all", duration(sum(seconds.values()))),
        *((f"version: {name}", str(text)) for name, text in document.get("versions", {}).items()),
    ]
