"""Figures that only the Compare page draws. Pure functions; see ``masktune.show.figures``."""

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from app.shared.run_rows import RunRow, worst_head
from masktune.scores.marks import Mark, written
from masktune.scores.metrics import METRICS
from masktune.show.results import metric_mark
from masktune.show.theme import AFTER, BEFORE, WIDTH, empty, label_ends, told, whiskers
from masktune.show.wording import count, interval, percent


def accuracy_against_k(rows: Sequence[RunRow], *, k: float) -> go.Figure:
    """Show what the model after reaches at each threshold, and the model before as a level.

    At least two runs that differ in nothing but k, ascending; the ``k`` of the shown one is marked.
    Points lead to the pictures behind them.
    """
    ks = [row.job.config.masking.k for row in rows]
    figure = empty(height=320)
    ends: dict[str, tuple[float, float]] = {}
    tests = [row.test for row in rows]
    worst = worst_head(tests).lower()
    measures: tuple[tuple[str, list[tuple[float | None, float | None]], str], ...] = (
        (
            worst,
            [(t.before.worst.accuracy, t.after.worst.accuracy) for t in tests],
            "solid",
        ),
        ("test average", [(t.before.average, t.after.average) for t in tests], "dot"),
    )
    marks = [*sweep_marks(rows, k=k).values()]
    for name, values, dash in measures:
        before = values[0][0] or 0.0
        behind = metric_mark(METRICS[name != worst], tests[0], tests[0].before)
        figure.add_scatter(
            x=[ks[0], ks[-1]],
            y=[before, before],
            name=f"{name} before",
            mode="lines",
            line={"color": BEFORE, "width": WIDTH, "dash": "dash" if dash == "solid" else "dot"},
            customdata=[written(behind)] * 2,
            hovertemplate=f"{name} before: {percent(before)}<extra></extra>",
        )
        ends[f"{name} before"] = (ks[-1], before)
    words: list[str] = []
    for name, values, dash in measures:
        both = zip(rows, values, strict=True)
        said = [_sentence(row, name, after, worst=name == worst) for row, (_, after) in both]
        figure.add_scatter(
            x=ks,
            y=[after for _, after in values],
            name=f"{name} after",
            mode="lines+markers",
            line={"color": AFTER, "width": WIDTH, "dash": dash},
            marker={"size": 9},
            customdata=[written(mark) for mark in marks[name != worst :: 2]],
            error_y=whiskers(_bounds(rows), thickness=3) if name == worst else None,
            text=[escape(sentence) for sentence in said],
            hovertemplate="%{text}<extra></extra>",
        )
        ends[f"{name} after"] = (ks[-1], values[-1][1] or 0.0)
        words += said
    figure.add_vline(x=k, line={"color": BEFORE, "width": 1.5, "dash": "dot"})
    pad = 0.04 * (ks[-1] - ks[0])
    figure.update_xaxes(
        tickvals=ks,
        range=[ks[0] - pad, ks[-1] + pad],
        showgrid=False,
        title_text="k: sigmas above the mean heat; a larger k hides less",
    )
    figure.update_yaxes(range=[0, 1.04], tickformat=".0%", title_text="accuracy")
    label_ends(figure, ends, top=1.04)
    return told(figure, "Accuracy against k. " + " ".join(words))


def sweep_marks(rows: Sequence[RunRow], *, k: float) -> dict[str, Mark]:
    """Return the marks of every point after, by name: at each k of the worst, then of all.

    They are said by the run of the point; that of ``k`` is on the page.
    """
    worst = worst_head([row.test for row in rows]).lower()
    marks: dict[str, Mark] = {}
    for row in rows:
        own = row.job.config.masking.k
        run = "" if own == k else row.job.id
        for name, metric in ((worst, METRICS[0]), ("all", METRICS[1])):
            marks[f"k = {own:g}, {name}"] = metric_mark(metric, row.test, row.test.after, run=run)
    return marks


def _bounds(rows: Sequence[RunRow]) -> list[tuple[float, float, float]]:
    """Give the accuracy of the worst group or class with its 95 % interval."""
    worst = [row.test.after.worst for row in rows]
    found = [(score.accuracy or 0.0, score.interval) for score in worst]
    return [(share, *(bounds or (share, share))) for share, bounds in found]


def _sentence(row: RunRow, name: str, after: float | None, *, worst: bool) -> str:
    if worst:
        lowest = row.test.after.worst
        known = f"95% interval {interval(lowest.interval)}, n = {count(lowest.count)}"
    else:
        known = f"n = {count(len(row.test))}"
    return f"k = {row.job.config.masking.k:g}: {name} {percent(after)}, {known}."
