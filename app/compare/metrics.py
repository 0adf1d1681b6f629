"""What tuning came to, at a glance: the verdict in plain words and four cards."""

from typing import Literal

import streamlit as st
from markupsafe import Markup

from app.compare.outcome import Outcome
from app.shared.sheets import show
from masktune.runs.open import OpenSplit
from masktune.scores.evidence import Direction, Evidence, direction
from masktune.scores.metrics import METRICS, Metric
from masktune.show.markup import piece, strip
from masktune.show.wording import (
    count,
    metric_note,
    metric_title,
    percent,
    points,
    score_words,
    verdict_parts,
)

DeltaArrow = Literal["up", "down", "off"]
COLOURS: dict[Direction, Literal["green", "red", "gray"]] = {
    "up": "green",
    "down": "red",
    "unclear": "gray",
}
"""The arrow of a card follows its number; the colour needs evidence."""


def verdict_html(outcome: Outcome) -> Markup:
    """Say in plain words what tuning did, for better or worse."""
    test = outcome.test
    parts = verdict_parts(test.name, test.evidence)
    fixed, broken = outcome.count("fixed"), outcome.count("broken")
    return piece(
        "verdict",
        parts=parts,
        more=f" It fixed {_answers(fixed)} and broke {count(broken)}, of {count(len(test))}.",
        small=f"Before: {score_words(test.before.worst)}. After: {score_words(test.after.worst)}.",
    )


def _answers(number: int) -> str:
    return "1 answer" if number == 1 else f"{count(number)} answers"


def show_metrics(outcome: Outcome) -> None:
    """Draw the four cards."""
    test = outcome.test
    found = test.evidence
    with st.grid(4, min_column_width=290):
        for metric in METRICS:
            if metric.prominent:
                _metric(metric, test, found)
        _changed(outcome, direction(found.overall.interval))


def _metric(metric: Metric, test: OpenSplit, found: Evidence) -> None:
    before, after = metric.of(test.before) or 0.0, metric.of(test.after) or 0.0
    change = points(after - before)
    bounds = metric.interval(test.before), metric.interval(test.after)
    line = strip(before, after, before_interval=bounds[0], after_interval=bounds[1])
    was, now = metric.who(test.before), metric.who(test.after)
    whose = now if was == now else f"{now} (before: {was})"
    with st.container(key=f"card_compare_metric_{metric.key}", height="stretch"):
        st.metric(
            metric_title(metric, test.after),
            percent(after),
            f"{change} points",
            delta_color=COLOURS[metric.clear(found)],
            delta_arrow=_arrow(change),
            delta_description=f"from {percent(before)}",
            help=metric.hint,
        )
        note = metric_note(metric, test.after)
        show(piece("scale", line=line, note=note, whose=whose))


def _arrow(change: str) -> DeltaArrow:
    """Give the arrow of a signed number; Streamlit would take our minus sign for a gain."""
    return "up" if change.startswith("+") else "down" if change.startswith("−") else "off"


def _changed(outcome: Outcome, clear: Direction) -> None:
    fixed, broken = outcome.count("fixed"), outcome.count("broken")
    net = fixed - broken
    sign = "+" if net > 0 else "−" if net < 0 else ""
    with st.container(key="card_compare_metric_changed", height="stretch"):
        st.metric(
            "Answers that changed",
            count(fixed + broken),
            f"net {sign}{count(abs(net))} right",
            delta_color=COLOURS[clear],
            delta_arrow=_arrow(sign),
            delta_description=f"of {count(len(outcome.test))} pictures",
            help="From wrong to right (fixed) or from right to wrong (broken). Between two wrong "
            "classes does not count.",
        )
        show(piece("changed", fixed=fixed, broken=broken))
