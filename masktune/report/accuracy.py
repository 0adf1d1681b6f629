"""Sections on accuracy: the result in short, by group, by class."""

from collections.abc import Sequence
from html import escape

from masktune.report.scored import Scored, score_validation
from masktune.runs.open import RunView
from masktune.scores.evidence import Evidence, direction, judge
from masktune.scores.flips import class_changes, group_flips, overall_change
from masktune.scores.groups import GroupScore, Summary, group_name
from masktune.scores.metrics import METRICS, Metric
from masktune.scores.result import training_groups
from masktune.show.figures import change_by_class, dumbbell
from masktune.show.markup import (
    Cell,
    Column,
    accuracy_cell,
    accuracy_column,
    change_cell,
    change_column,
    changed,
    count_cell,
    figure,
    metric,
    points_cell,
    share_cell,
    strip,
    table,
)
from masktune.show.wording import (
    count,
    metric_note,
    metric_title,
    score_words,
    verdict_parts,
    worst_words,
)

MOST_ROWS = 24
"""Rows of a figure; one of a thousand rows is no figure. Tables hold all of them."""


def in_short(tests: list[Scored]) -> str:
    """Say what tuning did, in words and in cards."""
    verdicts = "".join(
        f'<li class="{where}">{escape(text)}'
        f"<small>Before: {escape(score_words(test.before.worst))}. "
        f"After: {escape(score_words(test.after.worst))}.</small></li>"
        for test in tests
        for where, text in verdict_parts(test.name, test.evidence)
    )
    return f'<ul class="verdicts">{verdicts}</ul>' + "".join(map(_cards, tests))


def _cards(test: Scored) -> str:
    found = test.evidence
    cards = [_card(test, one, found) for one in METRICS if one.of(test.before) is not None]
    whole = found.overall
    cards.append(
        changed(
            fixed=whole.fixed,
            broken=whole.broken,
            total=len(test),
            clear=direction(whole.interval),
        )
    )
    return f'<h3>Test set “{escape(test.name)}”</h3><div class="cards">{"".join(cards)}</div>'


def _card(test: Scored, one: Metric, found: Evidence) -> str:
    before, after = one.of(test.before) or 0.0, one.of(test.after) or 0.0
    bounds = one.interval(test.before), one.interval(test.after)
    who = one.who(test.after)
    return metric(
        metric_title(one, test.after),
        before,
        after,
        line=strip(before, after, before_interval=bounds[0], after_interval=bounds[1]),
        note=f"{who}: {metric_note(one, test.after)}" if who else metric_note(one, test.after),
        clear=one.clear(found),
    )


def by_group(view: RunView, tests: list[Scored]) -> str:
    """Show the accuracy of every group, then every average in one table."""
    return (
        '<p class="hint">Hollow is before, solid is after; bars are 95% intervals (Wilson). '
        "Points are differences of percentages.</p>"
        + "".join(_group_block(view, test) for test in tests)
        + _averages(view, tests)
    )


def _group_block(view: RunView, test: Scored) -> str:
    shown = _served_worst(test)
    drawn = dumbbell(
        [test.before.scores[row] for row in shown], [test.after.scores[row] for row in shown]
    )
    empty = sum(score.count == 0 for score in test.before.scores)
    left_out = len(test.before.scores) - len(shown) - empty
    notes = [
        *([f"{empty} {test.kind} have no picture here."] if empty else []),
        *([f"{left_out} more {test.kind}, served better, are in the table."] if left_out else []),
    ]
    return (
        f'<div class="two"><div class="card"><h3>Test set “{escape(test.name)}”</h3>'
        f'{figure(drawn)}<p class="note">{" ".join(notes)}</p></div>'
        f'<div class="card">{_group_table(view, test)}</div></div>'
    )


def _served_worst(test: Scored) -> list[int]:
    """Give the rows to draw, in their order: groups with pictures, those served worst by either.

    Up to ``MOST_ROWS``; the table holds all.
    """
    lowest = {
        row: min(one.accuracy, other.accuracy)
        for row, (one, other) in enumerate(zip(test.before.scores, test.after.scores, strict=True))
        if one.accuracy is not None and other.accuracy is not None
    }
    return sorted(sorted(lowest, key=lambda row: lowest[row])[:MOST_ROWS])


def _group_table(view: RunView, test: Scored) -> str:
    card = view.bundle.card
    changes = group_flips(
        test.pair.before, test.pair.after, classes=card.classes, attributes=card.attributes
    )
    trained: Sequence[int | None] = training_groups(card, view.bundle.train).ravel().tolist()
    if len(trained) != len(changes):  # attributes are known of one of the two sets only
        trained = [None] * len(changes)
    columns = [
        Column("Class" if test.kind == "classes" else "Group"),
        Column("n", ("n", "n in training")),
        accuracy_column("Before"),
        accuracy_column("After"),
        Column("Points", ("Change",)),
        Column("Fixed"),
        Column("Broken"),
    ]
    rows = [
        [
            Cell(group_name(was), _worst_mark(was, now, test), (group_name(was),)),
            _size_cell(was.count, learned),
            accuracy_cell(was),
            accuracy_cell(now),
            points_cell(was.accuracy, now.accuracy),
            count_cell(change.fixed),
            count_cell(change.broken),
        ]
        for was, now, change, learned in zip(
            test.before.scores, test.after.scores, changes, trained, strict=True
        )
    ]
    return table(f"{test.name} by {test.kind}", columns, rows)


def _size_cell(size: int, learned: int | None) -> Cell:
    small = "" if learned is None else f"train {count(learned)}"
    return Cell(count(size), small, (size, learned))


def _worst_mark(was: GroupScore, now: GroupScore, test: Scored) -> str:
    marks = {"before": was == test.before.worst, "after": now == test.after.worst}
    moments = [moment for moment, is_worst in marks.items() if is_worst]
    return f"worst {' and '.join(moments)}" if moments else ""


def _averages(view: RunView, tests: list[Scored]) -> str:
    numbers = ("Worst", "Test average", "Train-weighted average", "Group mean")
    columns = [
        Column("Set"),
        Column("n"),
        *(Column(f"{name}, {moment}") for name in numbers for moment in ("before", "after")),
    ]
    validation = score_validation(view)
    rows = []
    for one in (*tests, validation):
        both = zip(_numbers(one.before), _numbers(one.after), strict=True)
        cells = [share_cell(number) for before_after in both for number in before_after]
        rows.append([Cell(one.name), count_cell(len(one)), *cells])
    return (
        f'<div class="card"><h3>All averages</h3>{table("all averages", columns, rows)}'
        f'<p class="note">Worst is the {escape(worst_words(validation.after))}. The test average '
        "counts pictures, the train-weighted average weights groups by the training set, the "
        "group mean weights them equally.</p>"
        f"<details><summary>Validation by {validation.kind}</summary>"
        f"{_group_table(view, validation)}</details></div>"
    )


def _numbers(summary: Summary) -> tuple[float | None, ...]:
    return tuple(one.of(summary) for one in METRICS)


def by_class(view: RunView, tests: list[Scored]) -> str:
    """Show what tuning did to every class, helped or harmed, with intervals."""
    return (
        '<p class="hint">Tuning can harm where nothing misleads. Bars are 95% intervals of the '
        "change (Newcombe, paired).</p>" + "".join(_class_block(view, test) for test in tests)
    )


def _class_block(view: RunView, test: Scored) -> str:
    before, after = test.pair.before, test.pair.after
    changes = class_changes(before, after, classes=view.bundle.card.classes)
    most = sorted(changes, key=lambda change: -abs(change.change or 0.0))[:MOST_ROWS]
    drawn = change_by_class([change for change in changes if change in most])
    found = judge(changes)
    columns = [
        Column("Class"),
        Column("n"),
        Column("Before"),
        Column("After"),
        change_column(),
        Column("Fixed"),
        Column("Broken"),
    ]
    rows = [
        [
            Cell(change.label),
            count_cell(change.count),
            share_cell(change.before),
            share_cell(change.after),
            change_cell(change),
            count_cell(change.fixed),
            count_cell(change.broken),
        ]
        for change in (*changes, overall_change(before, after))
    ]
    return (
        f'<div class="two"><div class="card"><h3>Test set “{escape(test.name)}”</h3>'
        f"{figure(drawn)}</div>"
        f'<div class="card">{table(f"{test.name} change by class", columns, rows)}'
        f'<p class="note">{len(found.gained)} of {len(found.groups)} classes clearly gained, '
        f"{len(found.lost)} clearly lost: their intervals, widened to hold together, leave out 0."
        "</p></div></div>"
    )
