"""The numbers of the Compare page: by group, by class, by answer, by round."""

from collections.abc import Mapping, Sequence
from itertools import product

import streamlit as st
from markupsafe import Markup

from app.compare.confusion import (
    FEW_CLASSES,
    MOST_CLASSES,
    Matrix,
    confusion,
    matrix_table,
    mistakes,
    pairs_table,
)
from app.kept import once
from app.opened import drawn
from app.shared.pieces import card, chart, download
from app.shared.sheets import say, show
from masktune.errors import shortened
from masktune.files import csv_bytes
from masktune.runs.open import OpenSplit
from masktune.scores.evidence import Evidence
from masktune.scores.flips import Change
from masktune.show.curves import accuracy_by_round
from masktune.show.marks import marks_line
from masktune.show.markup import piece
from masktune.show.results import (
    averages_table,
    class_marks,
    classes_figure,
    classes_table,
    classes_words,
    group_marks,
    groups_figure,
    groups_table,
    groups_words,
    scores_by_round,
    weigh_classes,
)
from masktune.show.tables import csv, html
from masktune.show.wording import count, early_stop, percent, points, worst_words

MOST_ROWS = 12
"""Rows of a figure on the page; the files hold all."""

MOST_NAMED = 5
"""Classes that a sentence names; the rest are counted."""


def show_groups(test: OpenSplit) -> None:
    """Draw the accuracy of every group and all averages."""
    what = "group" if test.kind == "groups" else "class"
    with card(
        "compare_groups",
        f"Accuracy by {what}",
        hint="Hollow is before, solid is after. Bars are 95% intervals (Wilson). Points are "
        "differences of percentages.",
    ) as tools:
        sets = [*test.run.tests.values()]
        download("CSV", lambda: csv(*map(groups_table, sets)), "groups.csv", place=tools)
        chart(drawn(test, "groups", lambda: groups_figure(test, most=MOST_ROWS)), key="groups")
        show(
            drawn(test, "group marks", lambda: marks_line(group_marks(test, most=MOST_ROWS))),
        )
        if words := groups_words(test, most=MOST_ROWS, where="CSV"):
            say(words, kind="note")
        head = st.container(horizontal=True, vertical_alignment="center")
        head.markdown("**All averages**", width="stretch")
        download("CSV", lambda: csv(averages_table(*sets)), "averages.csv", place=head)
        show(html(averages_table(test, linked=True)))
        say(
            "The train-weighted average weights the groups by the training set, as some papers do; "
            "a group that is rare there counts little.",
            kind="note",
        )


def show_classes(test: OpenSplit) -> None:
    """Draw how every class changed: the paper's check that tuning does no harm."""
    with card(
        "compare_classes",
        "Change by class",
        hint="The paper asks whether tuning harms a class that no clue misleads. Bars are 95% "
        "intervals of the change, from the same pictures before and after (Newcombe). A change is "
        "called clear when it stays so judged as one of as many as there are groups (Bonferroni).",
        table=classes_table(test),
    ):
        say(harm_words(weigh_classes(test)))
        chart(drawn(test, "classes", lambda: classes_figure(test, most=MOST_ROWS)), key="classes")
        show(drawn(test, "class marks", lambda: marks_line(class_marks(test, most=MOST_ROWS))))
        if words := classes_words(test, most=MOST_ROWS):
            say(words, kind="note")


def harm_words(found: Evidence) -> str:
    """Say which classes clearly got worse and which better."""
    total = len(found.groups)
    return f"{_clearly('worse', found.lost, total)} {_clearly('better', found.gained, total)}"


def _clearly(how: str, changed: Sequence[Change], total: int) -> str:
    if not changed:
        return f"No class clearly got {how}."
    names = [f"{change.label} ({points(change.change)} points)" for change in changed]
    told = shortened(names, most=MOST_NAMED)
    return f"{len(changed)} of {total} clearly got {how}: {told}."


def show_confusion(test: OpenSplit) -> None:
    """Draw which class is taken for which."""
    classes, before, after = test.classes, confusion(test.pair.before), confusion(test.pair.after)
    with card(
        "compare_confusion",
        "Confusion matrix",
        hint="The confusion matrix: pictures of a class in a row, answers in the columns. Shares "
        "are of the row.",
    ) as tools:
        labels = range(len(classes))
        download(
            "CSV",
            lambda: csv(pairs_table(before, after, classes, product(labels, labels))),
            "confusion.csv",
            place=tools,
        )
        if len(classes) <= MOST_CLASSES:
            show(drawn(test, "matrices", lambda: _matrices(test, before=before, after=after)))
        if len(classes) <= FEW_CLASSES:
            return
        if not (found := mistakes(before, after)):
            st.markdown("Neither model makes a mistake here.")
            return
        commonest = html(pairs_table(before, after, classes, found, split=test.name))
        if len(classes) <= MOST_CLASSES:
            with st.expander("The commonest mistakes of either model"):
                show(commonest)
        else:
            st.caption(f"The commonest mistakes of either model, of {count(len(classes))} classes.")
            show(commonest)


def _matrices(test: OpenSplit, **said: Matrix) -> Markup:
    tables = (matrix_table(m, test.classes, name=n, split=test.name) for n, m in said.items())
    return piece("pair", both=[html(table) for table in tables])


def round_series(test: OpenSplit) -> dict[str, list[float | None]]:
    """Give the accuracies before and after every round; empty where there was only one."""
    averages, worst = scores_by_round(test)
    if len(averages) <= 2 or None in averages:
        return {}
    return {"test average": averages, worst_words(test.before): worst}


def rounds_csv(series: Mapping[str, Sequence[float | None]], hidden: Sequence[float]) -> bytes:
    """Give accuracies and the hidden share of every round; round 0 is before."""
    rows = zip((0.0, *hidden), *series.values(), strict=True)
    return csv_bytes(
        ("round", "hidden", *series), ((number, *row) for number, row in enumerate(rows))
    )


def show_rounds(test: OpenSplit) -> None:
    """Draw the accuracy after every round."""
    series, masking = round_series(test), test.run.result.masking
    hidden = [record.hidden_fraction for record in masking.rounds]
    with card(
        "compare_rounds",
        "Accuracy by round",
        hint="Every round hides what the model leaned on after the round before.",
    ) as tools:
        download("CSV", lambda: rounds_csv(series, hidden), "rounds.csv", place=tools)
        chart(once(accuracy_by_round, series), key="rounds")
        shares = ", ".join(f"{percent(share)} in round {n}" for n, share in enumerate(hidden, 1))
        stopped = early_stop(masking)
        say(f"n = {count(len(test))}. Pixels hidden: {shares}. {stopped}", kind="note")
