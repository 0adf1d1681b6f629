"""What tuning came to, at a glance: the verdict in plain words and four cards."""

from collections.abc import Sequence
from html import escape
from typing import Literal

import streamlit as st

from app.compare.outcome import Outcome
from app.shared.sheets import show
from masktune.scores.evidence import Direction, direction
from masktune.scores.groups import GroupScore, group_name, wilson
from masktune.show.markup import chip, strip
from masktune.show.wording import (
    count,
    interval,
    percent,
    points,
    score_words,
    verdict_parts,
    worst_words,
)

DeltaArrow = Literal["up", "down", "off"]
COLOURS: dict[Direction, Literal["green", "red", "gray"]] = {
    "up": "green",
    "down": "red",
    "unclear": "gray",
}
"""The arrow of a card follows its number; the colour needs evidence."""


def verdict_html(outcome: Outcome) -> str:
    """Say in plain words what tuning did, for better or worse."""
    test = outcome.test
    parts = verdict_parts(test.name, test.evidence)
    fixed, broken = outcome.count("fixed"), outcome.count("broken")
    more = (
        f" It fixed {_answers(fixed)} and broke {count(broken)}, of {count(len(test))}."
        f"<small>Before: {escape(score_words(test.before.worst))}. "
        f"After: {escape(score_words(test.after.worst))}.</small>"
    )
    last = len(parts) - 1
    return "".join(
        f'<div class="verdict {where}">{escape(text)}{more if number == last else ""}</div>'
        for number, (where, text) in enumerate(parts)
    )


def _answers(number: int) -> str:
    return "1 answer" if number == 1 else f"{count(number)} answers"


def show_metrics(outcome: Outcome) -> None:
    """Draw the four cards."""
    test = outcome.test
    was, now = test.before.worst, test.after.worst
    right = [wilson(int(p.correct().sum()), len(test)) for p in (test.pair.before, test.pair.after)]
    size = f"n = {count(len(test))}"
    present = len(outcome.group_names())
    name = worst_words(test.after)
    found = test.evidence
    grid = st.grid(4, min_column_width=290)
    with grid:
        _metric(
            "worst",
            name[0].upper() + name[1:],
            was.accuracy or 0.0,
            now.accuracy or 0.0,
            intervals=(was.interval, now.interval),
            clear=found.worst,
            note=f"95% interval {interval(now.interval)}, n = {count(now.count)}",
            below=_worst_names(was, now),
            hint="The group that gets the fewest right answers; before and after it may be another "
            "one. A group is a class with an attribute. The interval (Wilson) holds what n "
            "pictures can tell.",
        )
        _metric(
            "average",
            "Test average",
            test.before.averages.test,
            test.after.averages.test,
            intervals=(right[0], right[1]),
            clear=direction(found.overall.interval),
            note=f"95% interval {interval(right[1])}, {size}",
            hint="Right answers over all pictures of this test set, as the paper reports.",
        )
        _metric(
            "mean",
            "Group mean",
            test.before.averages.group_mean,
            test.after.averages.group_mean,
            intervals=(None, None),
            clear=found.group_mean,
            note=f"plain mean over {present} {test.kind}, {size}",
            hint="Every group counts the same, however small. It is no share of pictures, so it "
            "has no interval. The train-weighted average is in the table below.",
        )
        _changed(outcome, direction(found.overall.interval))


def _worst_names(was: GroupScore, now: GroupScore) -> str:
    """Name the worst group after, and the one before if it was another."""
    names = group_name(was), group_name(now)
    return names[1] if names[0] == names[1] else f"{names[1]} (before: {names[0]})"


def _metric(
    key: str,
    name: str,
    before: float,
    after: float,
    *,
    intervals: Sequence[tuple[float, float] | None],
    clear: Direction,
    note: str,
    hint: str,
    below: str = "",
) -> None:
    change = points(after - before)
    line = strip(before, after, before_interval=intervals[0], after_interval=intervals[1])
    named = f"<small>{escape(below)}</small>" if below else ""
    with st.container(key=f"card_compare_metric_{key}", height="stretch"):
        st.metric(
            name,
            percent(after),
            f"{change} points",
            delta_color=COLOURS[clear],
            delta_arrow=_arrow(change),
            delta_description=f"from {percent(before)}",
            help=hint,
        )
        show(
            f'{line}<p class="scale"><span>0</span><span>{escape(note)}</span><span>100</span></p>'
            f"{named}"
        )


def _arrow(change: str) -> DeltaArrow:
    """Give the arrow of a signed number; Streamlit would take our minus sign for a gain."""
    return "up" if change.startswith("+") else "down" if change.startswith("−") else "off"


def _changed(outcome: Outcome, clear: Direction) -> None:
    fixed, broken = outcome.count("fixed"), outcome.count("broken")
    net = fixed - broken
    sign = "+" if net > 0 else "−" if net < 0 else ""
    shares = "".join(
        f'<i class="{name}" style="flex-grow:{number}"></i>'
        for name, number in (("fixed", fixed), ("broken", broken))
        if number
    )
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
        show(
            f'<div class="shares">{shares}</div><p class="scale"><span>{chip("fixed")} '
            f"{count(fixed)} fixed</span><span>{chip('broken')} {count(broken)} broken</span></p>"
        )
