"""The numbers of the Compare page: by group, by class, by answer, by round."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import product

import streamlit as st

from app.compare.confusion import (
    MOST_CLASSES,
    confusion,
    matrix_table,
    mistakes,
    pairs_table,
)
from app.compare.files import (
    averages_csv,
    classes_csv,
    groups_csv,
    rounds_csv,
)
from app.compare.outcome import Outcome
from app.shared.pieces import card, chart, download
from app.shared.sheets import show
from masktune.scores.evidence import judge
from masktune.scores.flips import Change, class_changes
from masktune.scores.metrics import METRICS
from masktune.show.curves import accuracy_by_round
from masktune.show.figures import change_by_class, dumbbell
from masktune.show.tables import csv, html
from masktune.show.wording import (
    count,
    early_stop,
    metric_title,
    percent,
    points,
    worst_words,
)

MOST_ROWS = 12
"""Rows of a figure on the page; the files hold all."""

MOST_NAMED = 5
"""Classes that a sentence names; the rest are counted."""


def show_groups(outcome: Outcome, every: Mapping[str, Outcome]) -> None:
    """Draw the accuracy of every group and all averages."""
    test = outcome.test
    what = "group" if test.kind == "groups" else "class"
    with card(
        "compare_groups",
        f"Accuracy by {what}",
        hint="Hollow is before, solid is after. Bars are 95% intervals (Wilson). Points are "
        "differences of percentages.",
    ) as tools:
        download("CSV", lambda: groups_csv(every), "groups.csv", place=tools)
        before, after = outcome.served_worst(MOST_ROWS)
        chart(dumbbell(before, after), key="groups")
        here = len(outcome.group_names())
        empty = len(test.before.scores) - here
        notes = [
            *([f"{empty} {test.kind} have no picture in “{test.name}”."] if empty else []),
            *(
                [f"{here - len(before)} served better are in the CSV."]
                if here > len(before)
                else []
            ),
        ]
        if notes:
            show(f'<p class="note">{escape(" ".join(notes))}</p>')
        head = st.container(horizontal=True, vertical_alignment="center")
        head.markdown("**All averages**", width="stretch")
        download("CSV", lambda: averages_csv(every), "averages.csv", place=head)
        show(averages_html(outcome))


def averages_html(outcome: Outcome) -> str:
    """Show the worst group and the three averages by their full names."""
    test = outcome.test
    rows = [
        (metric_title(one, test.after), one.of(test.before), one.of(test.after)) for one in METRICS
    ]
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{percent(before)}</td>'
        f"<td>{percent(after)}</td>"
        f"<td>{points(None if before is None or after is None else after - before)}</td></tr>"
        for name, before, after in rows
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("", "Before", "After", "Points"))
    return (
        f'<table aria-label="All averages"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody>'
        '</table><p class="note">The train-weighted average weights the groups by the training '
        "set, as some papers do; a rare group counts little in it.</p>"
    )


def show_classes(outcome: Outcome) -> None:
    """Draw how every class changed: the paper's check that tuning does no harm."""
    pair = outcome.test.pair
    changes = class_changes(pair.before, pair.after, classes=outcome.card.classes)
    with card(
        "compare_classes",
        "Change by class",
        hint="The paper asks whether tuning harms a class that no clue misleads. Bars are 95% "
        "intervals of the change, from the same pictures before and after (Newcombe). A change is "
        "called clear when it stays so with all classes judged together (Bonferroni).",
    ) as tools:
        download("CSV", lambda: classes_csv(outcome), "classes.csv", place=tools)
        show(f"<p>{escape(harm_words(changes))}</p>")
        largest = sorted(changes, key=lambda change: -abs(change.change or 0.0))[:MOST_ROWS]
        chart(change_by_class([c for c in changes if c in largest]), key="classes")


def harm_words(changes: Sequence[Change]) -> str:
    """Say which classes clearly got worse and which better, judged together."""
    found = judge(changes)
    total = len(found.groups)
    return f"{_clearly('worse', found.lost, total)} {_clearly('better', found.gained, total)}"


def _clearly(how: str, changed: Sequence[Change], total: int) -> str:
    if not changed:
        return f"No class clearly got {how}."
    most = changed[:MOST_NAMED]
    names = ", ".join(f"{change.label} ({points(change.change)} points)" for change in most)
    more = f" and {len(changed) - len(most)} more" if len(changed) > len(most) else ""
    return f"{len(changed)} of {total} clearly got {how}: {names}{more}."


def show_confusion(outcome: Outcome) -> None:
    """Draw which class is taken for which."""
    pair, classes = outcome.test.pair, outcome.card.classes
    before, after = confusion(pair.before), confusion(pair.after)
    with card(
        "compare_confusion",
        "What is taken for what",
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
            both = [
                html(matrix_table(matrix, classes, name=name))
                for name, matrix in (("before", before), ("after", after))
            ]
            show(f'<div class="pair">{both[0]}{both[1]}</div>')
        elif found := mistakes(before, after):
            st.caption(f"The commonest mistakes of either model, of {count(len(classes))} classes.")
            show(html(pairs_table(before, after, classes, found)))
        else:
            st.markdown("Neither model makes a mistake here.")


def round_series(outcome: Outcome) -> dict[str, list[float | None]]:
    """Give the accuracies before and after every round; empty where there was only one."""
    records = outcome.view.document["masking"]["rounds"]
    name = outcome.test.name
    if len(records) < 2 or any(name not in record.get("test", {}) for record in records):
        return {}
    before = outcome.test.before
    scores = [record["test"][name] for record in records]
    return {
        "test average": [before.averages.test, *(score["average"] for score in scores)],
        worst_words(before): [before.worst.accuracy, *(score["worst_group"] for score in scores)],
    }


def show_rounds(outcome: Outcome) -> None:
    """Draw the accuracy after every round."""
    series = round_series(outcome)
    hidden = [float(r["hidden_fraction"]) for r in outcome.view.document["masking"]["rounds"]]
    with card(
        "compare_rounds",
        "Accuracy by round",
        hint="Every round hides what the model leaned on after the round before.",
    ) as tools:
        download("CSV", lambda: rounds_csv(series, hidden), "rounds.csv", place=tools)
        chart(accuracy_by_round(series), key="rounds")
        shares = ", ".join(f"{percent(share)} in round {n}" for n, share in enumerate(hidden, 1))
        stopped = early_stop(outcome.view.document["masking"]["rounds"])
        show(
            f'<p class="note">n = {count(len(outcome.test))}. Pixels hidden: {shares}. '
            f"{escape(stopped)}</p>"
        )
