"""The verdict before the epoch over many datasets, models and thresholds: how far to trust it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.scores.groups import group_name
from masktune.scores.hiding import RULE, Hiding
from masktune.scores.json_types import as_type
from masktune.show.hiding import TAKEN
from masktune.show.wording import NOTHING, percent
from masktune.studies.advice import suggest
from masktune.studies.sweep import KS as TRIED
from masktune.studies.sweep import quick_look, with_rate
from masktune.training.context import Context

KS = (0.5, 1.0, 2.0)
"""Thresholds that the verdict is shown at, of those that a suggestion is made from."""

HEADS = (
    *("pictures", "model before", "k", "hiding takes away", "right answers", "pixels hidden"),
    *("nothing hidden", "of the clue", "of the thing", "what breaks"),
)


ADVICE_HEADS = ("suggested k", "suggested rate")
"""Heads of what a model's rows say alike, where any row says it: older ones do not."""


def verdict_rows(context: Context, before: Checkpoint, *, model: str) -> list[dict[str, Any]]:
    """Judge a model at each of ``KS`` on its whole training set; ``model`` says whose it is.

    Every row has what all thresholds of a quick look together suggest for the model.
    """
    pictures = len(context.bundle.train)
    looked = quick_look(context, before.model, ks=TRIED, most=pictures)
    trials = with_rate(looked, context.config, before, pictures=pictures)
    advice = asdict(suggest(trials))
    return [
        {"model": model, "k": trial.k, "hiding": trial.hiding.to_json(), "advice": advice}
        for trial in trials
        if trial.k in KS and trial.hiding is not None
    ]


def verdicts_markdown(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the section of the page of results about documents with a name and rows each."""
    advised = any("advice" in row for document in documents for row in document["rows"])
    heads = HEADS + ADVICE_HEADS if advised else HEADS
    lines: list[tuple[str, ...]] = [heads, ("---",) * len(heads)]
    for document in documents:
        for row in document["rows"]:
            lines.append(_cells(document["name"], row) + (_advised(row) if advised else ()))
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    commands = "\n".join(f"`{document['command']}`" for document in documents)
    head = "## What hiding takes away, before the epoch"
    return f"{head}\n\n{RULE}\n\nNo epoch of finetuning is needed.\n\n{commands}\n\n{table}\n"


def _cells(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    hiding: Hiding = as_type(Hiding, row["hiding"])
    whole = hiding.whole
    said = [
        f"{group_name(group)} {percent(group.change.before)} → {percent(group.change.after)}"
        for group in hiding.broken
    ]
    return (
        name,
        row["model"],
        f"{row['k']:g}",
        f"**{TAKEN[hiding.verdict]}**",
        f"{percent(whole.change.before)} → {percent(whole.change.after)}",
        percent(whole.hidden_fraction),
        percent(hiding.empty_fraction),
        *(percent(covered and covered.share) for covered in (whole.clue, whole.thing)),
        "; ".join(said) or "nothing",
    )


def _advised(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the suggested k and rate of a row's model: none where no k stands out."""
    advice = row.get("advice")
    if advice is None:
        return NOTHING, NOTHING
    if advice["k"] is None:
        return "none", NOTHING
    withheld = "none, by the verdict at this k" if advice["lr_reason"] else "the usual"
    return f"{advice['k']:g}", withheld if advice["lr"] is None else f"{advice['lr']:g}"
