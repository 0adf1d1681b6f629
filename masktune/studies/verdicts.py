"""The verdict before the epoch over many datasets, models and thresholds: how far to trust it."""

from collections.abc import Mapping, Sequence
from typing import Any

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.scores.groups import group_name
from masktune.scores.hiding import RULE, Hiding
from masktune.scores.json_types import as_type
from masktune.show.hiding import TAKEN
from masktune.show.wording import percent
from masktune.studies.sweep import quick_look
from masktune.training.context import Context

KS = (0.5, 1.0, 2.0)
"""Thresholds that the verdict is tried at."""

HEADS = (
    *("pictures", "model before", "k", "hiding takes away", "right answers", "pixels hidden"),
    *("nothing hidden", "of the clue", "of the thing", "what breaks"),
)


def verdict_rows(context: Context, before: Checkpoint, *, model: str) -> list[dict[str, Any]]:
    """Judge a model at each of ``KS`` on its whole training set; ``model`` says whose it is."""
    trials = quick_look(context, before.model, ks=KS, most=len(context.bundle.train))
    return [
        {"model": model, "k": trial.k, "hiding": trial.hiding.to_json()}
        for trial in trials
        if trial.hiding is not None
    ]


def verdicts_markdown(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the section of the page of results about documents with a name and rows each."""
    lines = [HEADS, ("---",) * len(HEADS)]
    for document in documents:
        lines += [_cells(document["name"], row) for row in document["rows"]]
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
