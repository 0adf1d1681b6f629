"""What tuning came to, at a glance: the verdict in plain words and four cards."""

from collections.abc import Sequence
from typing import Literal

import streamlit as st
from markupsafe import Markup

from app.shared.sheets import show
from masktune.runs.open import OpenSplit
from masktune.scores.evidence import Direction, Evidence, direction
from masktune.scores.flips import Change
from masktune.scores.marks import FlipMark
from masktune.scores.metrics import METRICS, Metric
from masktune.show.marks import mark_link
from masktune.show.markup import metric_strip, piece
from masktune.show.results import metric_mark, worst_scores
from masktune.show.wording import (
    count,
    metric_note,
    metric_title,
    percent,
    points,
    signed,
    verdict_parts,
    whose,
)

COLOURS: dict[Direction, Literal["green", "red", "gray"]] = {
    "up": "green",
    "down": "red",
    "unclear": "gray",
}
"""The arrow of a card follows its number; the colour needs evidence."""


def verdict_html(test: OpenSplit, beside: Sequence[tuple[Direction, str]] = ()) -> Markup:
    """Say in plain words what tuning did, for better or worse, and ``beside`` its controls."""
    found = test.evidence
    fixed, broken = found.overall.fixed, found.overall.broken
    answers = "1 answer" if fixed == 1 else f"{count(fixed)} answers"
    said = piece(
        "verdict",
        parts=verdict_parts(test.name, found),
        more=f" It fixed {answers} and broke {count(broken)}, of {count(len(test))}.",
        small=worst_scores(test),
    )
    return said + piece("verdict", parts=beside, more="", small="")


def show_metrics(test: OpenSplit) -> None:
    """Draw the four cards."""
    found = test.evidence
    with st.grid(4, min_column_width=270, key="metrics"):
        for metric in METRICS:
            if metric.prominent:
                _metric(metric, test, found)
        _changed(found.overall, test.name)


def _metric(metric: Metric, test: OpenSplit, found: Evidence) -> None:
    before, after = metric.of(test.before) or 0.0, metric.of(test.after) or 0.0
    change = points(after - before)
    title, _, stand_in = metric_title(metric, test.after).partition(" (")
    with st.container(key=f"card_compare_metric_{metric.key}", height="stretch"):
        st.metric(
            title,
            percent(after),
            f"{change} points",
            delta_color=COLOURS[metric.clear(found)],
            delta_arrow=_arrow(change),
            delta_description=f"from {percent(before)}",
            help=metric.hint,
        )
        owner = whose(metric, test.before, test.after)
        owner += f", {stand_in.rstrip(')')}" if stand_in else ""
        head, _, size = metric_note(metric, test.after).rpartition(", ")
        link = mark_link(metric_mark(metric, test, test.after), size)
        note = piece("sentence", text=f"{head},", link=link)
        show(piece("scale", line=metric_strip(metric, test), note=note, whose=owner))


def _arrow(change: str) -> Literal["up", "down", "off"]:
    """Give the arrow of a signed number; Streamlit would take our minus sign for a gain."""
    return "up" if change.startswith("+") else "down" if change.startswith("−") else "off"


def _changed(whole: Change, split: str) -> None:
    net = signed(whole.fixed - whole.broken)
    with st.container(key="card_compare_metric_changed", height="stretch"):
        st.metric(
            "Answers that changed",
            count(whole.fixed + whole.broken),
            f"net {net} right",
            delta_color=COLOURS[direction(whole.interval)],
            delta_arrow=_arrow(net),
            delta_description=f"of {count(whole.count)} pictures",
            help="From wrong to right (fixed) or from right to wrong (broken). Between two wrong "
            "classes does not count.",
        )
        numbers = {"fixed": whole.fixed, "broken": whole.broken}
        links = {
            state: mark_link(FlipMark(split, state), f"{count(number)} {state}")
            for state, number in numbers.items()
            if number
        }
        show(piece("changed", **numbers, links=links))
