"""The numbers of the card "Which k?": in words, as a figure, a table and a file."""

from collections.abc import Sequence
from dataclasses import astuple, replace

import plotly.graph_objects as go

from masktune.show.hiding import TAKEN
from masktune.show.tables import Cell, Column, Table, count_cell, share_cell
from masktune.show.theme import (
    AFTER,
    BEFORE,
    DASHES,
    HIDDEN,
    SERIES,
    WIDTH,
    empty,
    legend_below,
    told,
)
from masktune.show.wording import NOTHING, count, percent
from masktune.studies.advice import Trial, suggest


def look_words(trials: Sequence[Trial], pictures: int, *, rounds: int = 1) -> str:
    """Say which thresholds were finetuned and which were only looked at.

    Args:
        trials: at least one.
        pictures: in the training set.
        rounds: of each finetune.
    """
    looked = trials[0].pictures
    which = (
        f"all {count(looked)}" if looked == pictures else f"{count(looked)} of {count(pictures)}"
    )
    look = f"A quick look at {which} training pictures"
    tuned = [trial.k for trial in trials if trial.tuned is not None]
    if not tuned:
        return f"{look}: nothing was finetuned. It can be wrong; finetunes at several k settle it."
    times = "for one epoch" if rounds == 1 else f"in {count(rounds)} rounds"
    if len(tuned) == len(trials):
        every = f"every k here was also finetuned {times}"
    else:
        was = "was" if len(tuned) == 1 else "were"
        every = f"only k = {_listed(tuned)} {was} also finetuned {times}"
    return (
        f"{look}; {every}, by runs of their own on all {count(pictures)}. "
        "Validation does not decide: its pictures carry the clue too."
    )


def _listed(ks: Sequence[float]) -> str:
    """Name some thresholds.

    >>> _listed([0.0]), _listed([0.0, 0.5, 2.0])
    ('0', '0, 0.5 and 2')
    """
    *first, last = [f"{k:g}" for k in ks]
    return f"{', '.join(first)} and {last}" if first else last


def trials_figure(trials: Sequence[Trial], *, k: float) -> go.Figure:
    """Draw right answers, hidden area and empty pictures against k.

    Args:
        trials: ascending in k, at least one.
        k: the threshold in use, marked.
    """
    lines: dict[str, tuple[Sequence[float | None], str, str]] = {
        "right when hidden, before": ([t.hidden for t in trials], BEFORE, "dash"),
        "pixels hidden": ([t.hidden_fraction for t in trials], HIDDEN, "solid"),
        "pictures with nothing hidden": ([t.empty_fraction for t in trials], SERIES[0], DASHES[2]),
    }
    if any(trial.tuned for trial in trials):
        # A k without a run leaves a gap: nothing is known there.
        valid = [trial.tuned.validation if trial.tuned else None for trial in trials]
        lines["right on validation, after"] = (valid, AFTER, "solid")
    figure = empty(height=320)
    for name, (values, colour, dash) in lines.items():
        figure.add_scatter(
            x=[trial.k for trial in trials],
            y=values,
            name=name,
            mode="lines+markers",
            line={"color": colour, "width": WIDTH, "dash": dash},
            marker={"size": 7},
            hovertemplate=f"k = %{{x}}: %{{y:.1%}} {name}<extra></extra>",
        )
    figure.add_vline(x=k, line={"color": BEFORE, "width": 1.5, "dash": "dot"})
    figure.update_xaxes(title_text="k: sigmas above the mean heat", showgrid=False)
    figure.update_yaxes(range=[-0.03, 1.04], tickformat=".0%")
    legend_below(figure)
    return told(figure, " ".join(["What each threshold does.", *map(_sentence, trials)]))


def _sentence(trial: Trial) -> str:
    words = (
        f"k = {trial.k:g}: {percent(trial.hidden_fraction)} of the pixels hidden, nothing hidden "
        f"in {percent(trial.empty_fraction)} of the pictures, {percent(trial.hidden)} answered "
        "right."
    )
    if trial.tuned is None:
        return words
    return f"{words} After the finetune {percent(trial.tuned.validation)} right on validation."


def trials_table(trials: Sequence[Trial]) -> Table:
    """Show one row for each threshold, the suggested one strong; a file has every number."""
    best = suggest(trials).k
    tuned = "after the finetune"
    return Table(
        name="What each threshold does",
        columns=(
            Column("k"),
            Column("n", shown=False),
            Column("pixels hidden", ("hidden_fraction",)),
            Column("nothing hidden", ("empty_fraction",)),
            Column("right when nothing is hidden", ("accuracy_whole",), shown=False),
            Column("right when hidden", ("accuracy_hidden",), "before"),
            Column("hiding takes away", ("verdict",), "before", left=True),
            Column("right on hidden training pictures", ("tuned_train",), tuned),
            Column("right on validation", ("tuned_validation",), tuned),
            Column("worst class there", ("tuned_worst_class",), tuned),
            Column("suggested", shown=False),
        ),
        rows=[
            [
                replace(cell, strong=trial.k == best)
                for cell in (
                    Cell(f"{trial.k:g}", values=(trial.k,)),
                    count_cell(trial.pictures),
                    share_cell(trial.hidden_fraction),
                    share_cell(trial.empty_fraction),
                    share_cell(trial.seen),
                    share_cell(trial.hidden),
                    Cell(TAKEN.get(trial.says, NOTHING), values=(trial.says,)),
                    *map(share_cell, astuple(trial.tuned) if trial.tuned else (None,) * 3),
                    count_cell(int(trial.k == best)),
                )
            ]
            for trial in trials
        ],
    )


def table_words(trials: Sequence[Trial]) -> str:
    """Say what the table's shares are of."""
    return (
        f"Before: on {count(trials[0].pictures)} training pictures; {percent(trials[0].seen)} when "
        f"nothing is hidden. After: {NOTHING} where no run is finished yet."
    )
