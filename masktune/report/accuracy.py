"""Sections on accuracy: the result in short, by group, by class."""

from collections.abc import Sequence

from markupsafe import Markup

from masktune.report.filled import section
from masktune.report.origin import control_parts
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.evidence import Evidence, direction
from masktune.scores.groups import wilson
from masktune.scores.metrics import METRICS, Metric
from masktune.scores.result import training_groups
from masktune.show.markup import figure, metric_card
from masktune.show.results import (
    averages_table,
    classes_figure,
    classes_table,
    groups_figure,
    groups_table,
    groups_words,
    weigh_classes,
    worst_scores,
)
from masktune.show.tables import html
from masktune.show.wording import (
    count,
    metric_title,
    percent,
    signed,
    verdict_parts,
    worst_words,
)

MOST_ROWS = 24
"""Rows of a figure; one of a thousand rows is no figure. Tables hold all of them."""

APART = 0.1
"""From here on a test set that scores otherwise than validation is pointed out."""


def in_short(view: OpenRun, tests: Sequence[OpenSplit]) -> Markup:
    """Say what tuning did, in words and in cards, and which controls came as far."""
    return section(
        "in_short",
        verdicts=[
            (where, text, worst_scores(test))
            for test in tests
            for where, text in verdict_parts(test.name, test.evidence)
        ]
        + [(where, text, "") for where, text in control_parts(view) if where != "up"],
        tests=[(test.name, _cards(test)) for test in tests],
        warnings=[told for test in tests if (told := validation_words(view.validation, test))],
    )


def validation_words(validation: OpenSplit, test: OpenSplit) -> str:
    """Say when a test set scores quite otherwise than validation; empty when it does not.

    Far apart are averages whose 95 % Wilson intervals leave ``APART`` or more between them: the
    two hold different pictures, so that no paired interval exists.
    """
    told = []
    for moment in ("before", "after"):
        sets = [(getattr(one, moment).average, len(one)) for one in (validation, test)]
        low, high = sorted(wilson(round(share * size), size) for share, size in sets)
        if high[0] - low[1] >= APART:
            told.append(f"{percent(sets[0][0])} against {percent(sets[1][0])} {moment}")
    if not told:
        return ""
    return (
        f"Validation and “{test.name}” differ much: {', '.join(told)}. Their pictures are not "
        "alike, so validation cannot vouch for this test set, nor choose a setting for it."
    )


def _cards(test: OpenSplit) -> list[Markup]:
    found = test.evidence
    whole = found.overall
    return [
        *(_card(test, one, found) for one in METRICS if one.of(test.before) is not None),
        section(
            "changed",
            total=count(whole.fixed + whole.broken),
            net=signed(whole.fixed - whole.broken),
            kind=direction(whole.interval),
            of=count(len(test)),
            fixed=whole.fixed,
            broken=whole.broken,
        ),
    ]


def _card(test: OpenSplit, one: Metric, found: Evidence) -> Markup:
    return metric_card(one, test, name=metric_title(one, test.after), clear=one.clear(found))


def by_group(view: OpenRun, tests: Sequence[OpenSplit]) -> Markup:
    """Show the accuracy of every group, then every average in one table."""
    validation = view.validation
    return section(
        "by_group",
        blocks=[
            (
                test.name,
                figure(groups_figure(test, most=MOST_ROWS)),
                groups_words(test, most=MOST_ROWS, where="table"),
                _group_table(view, test),
            )
            for test in tests
        ],
        averages=html(averages_table(*tests, validation), saved=True),
        worst=worst_words(validation.after),
        kind=validation.kind,
        validation=_group_table(view, validation),
    )


def _group_table(view: OpenRun, test: OpenSplit) -> Markup:
    found = training_groups(view.bundle.card, view.bundle.train)
    trained: Sequence[int | None] = found.ravel().tolist()
    if len(trained) != len(test.before.scores):  # attributes are known of one of the two sets only
        trained = [None] * len(test.before.scores)
    return html(groups_table(test, trained), saved=True)


def by_class(tests: Sequence[OpenSplit]) -> Markup:
    """Show what tuning did to every class, helped or harmed, with intervals."""
    return section("by_class", blocks=[_class_block(test) for test in tests])


def _class_block(test: OpenSplit) -> tuple[str, Markup, Markup, str]:
    found = weigh_classes(test)
    return (
        test.name,
        figure(classes_figure(test, most=MOST_ROWS)),
        html(classes_table(test), saved=True),
        f"{len(found.gained)} of {len(found.groups)} classes clearly gained, {len(found.lost)} "
        "clearly lost: their intervals, widened to hold together for all groups, leave out 0.",
    )
