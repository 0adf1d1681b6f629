"""What tuning came to on a test set: tables, figures and cards, for pages and report alike."""

from collections.abc import Sequence
from dataclasses import replace

import plotly.graph_objects as go

from masktune.errors import MaskTuneError
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.evidence import Evidence, judge, weigh
from masktune.scores.flips import Change, class_changes, group_flips
from masktune.scores.groups import Summary, group_name
from masktune.scores.marks import ALL, ClassMark, GroupMark, Mark, all_of, written
from masktune.scores.metrics import METRICS, Metric
from masktune.scores.result import SplitResult
from masktune.show.figures import change_by_class, dumbbell
from masktune.show.marks import mark_link
from masktune.show.tables import (
    Cell,
    Column,
    Table,
    accuracy_cell,
    change_cell,
    count_cell,
    points_cell,
    share_cell,
)
from masktune.show.wording import count, metric_title, score_words, worst_mark


def worst_scores(test: OpenSplit) -> str:
    """Write the worst group before and after with all that belongs to it."""
    return f"Before: {score_words(test.before.worst)}. After: {score_words(test.after.worst)}."


def weigh_control(control: OpenRun, test: OpenSplit) -> Evidence | None:
    """Weigh what a control's tuned model says, as before, against what that of a run says.

    None where the control's answers cannot be read or are about other pictures.
    """
    try:
        said = control.predictions.tests[test.name].after
        return weigh(said, test.pair.after, classes=test.classes, attributes=test.attributes)
    except (MaskTuneError, KeyError):
        return None


def metric_mark(metric: Metric, test: SplitResult, said: Summary, *, run: str = "") -> Mark:
    """Return the mark of the pictures behind a model's number, ``said`` by a run."""
    group = said.scores.index(said.worst) if metric.who(said) else ALL
    return all_of(test.name, len(test), group, run=run)


def averages_table(*sets: OpenSplit, linked: bool = False) -> Table:
    """Show the worst group and the three averages by their full names, of one set or several.

    Shares lead to the pictures behind them where they are to be ``linked``.
    """

    def share(metric: Metric, test: OpenSplit, said: Summary) -> Cell:
        cell = share_cell(metric.of(said))
        if not linked:
            return cell
        size = f"n = {count(metric.count(said))}"
        name = ", ".join(filter(None, (cell.text, metric.who(said), size)))
        return replace(cell, text=mark_link(metric_mark(metric, test, said), cell.text, name=name))

    several = len(sets) > 1
    return Table(
        name="all averages",
        columns=(
            Column("Set", ("test set",), shown=several),
            Column("", ("what",), left=True),
            Column("n", shown=several),
            Column("Before", ("before",)),
            Column("After", ("after",)),
            Column("Points", ("change",)),
        ),
        rows=[
            (
                Cell(test.name),
                Cell(
                    metric_title(metric, test.after),
                    values=(metric.name(test.before).partition(" (")[0],),
                ),
                _counted_cell(metric.count(test.before), metric.count(test.after)),
                share(metric, test, test.before),
                share(metric, test, test.after),
                points_cell(metric.of(test.before), metric.of(test.after)),
            )
            for test in sets
            for metric in METRICS
        ],
    )


def _counted_cell(before: int, now: int) -> Cell:
    """Show the pictures behind a number; the worst group before may be another than after."""
    return Cell(count(now), "" if before == now else f"before {count(before)}", (now,))


def groups_table(test: OpenSplit, trained: Sequence[int | None] = ()) -> Table:
    """Show the accuracy of every group before and after, and its training pictures if given."""
    changes = group_flips(
        test.pair.before, test.pair.after, classes=test.classes, attributes=test.attributes
    )
    sizes = ("n", "n in training") if trained else ("n",)
    return Table(
        name=f"{test.name} by {test.kind}",
        columns=(
            Column("Test set", ("test set",), shown=False),
            Column("Class" if test.kind == "classes" else "Group", ("label", "attribute")),
            Column("n", sizes),
            Column("Before", ("before", "before low", "before high")),
            Column("After", ("after", "after low", "after high")),
            Column("Points", ("change",)),
            Column("Fixed", ("fixed",)),
            Column("Broken", ("broken",)),
        ),
        rows=[
            (
                Cell(test.name),
                Cell(
                    group_name(was),
                    worst_mark(before=was == test.before.worst, after=now == test.after.worst),
                    (was.label, was.attribute),
                ),
                _size_cell(was.count, *trained[row : row + 1]),
                accuracy_cell(was),
                accuracy_cell(now),
                points_cell(was.accuracy, now.accuracy),
                count_cell(change.fixed),
                count_cell(change.broken),
            )
            for row, (was, now, change) in enumerate(
                zip(test.before.scores, test.after.scores, changes, strict=True)
            )
        ],
    )


def _size_cell(size: int, *learned: int | None) -> Cell:
    small = "" if not learned or learned[0] is None else f"train {count(learned[0])}"
    return Cell(count(size), small, (size, *learned))


def _served(test: OpenSplit, *, most: int) -> list[int]:
    """Return the numbers of groups with pictures; of more than ``most`` those served worst."""
    before, after = test.before.scores, test.after.scores
    here = [number for number, score in enumerate(before) if score.count]
    lowest = sorted(here, key=lambda n: min(s[n].accuracy or 0.0 for s in (before, after)))
    return sorted(lowest[:most])


def groups_figure(test: OpenSplit, *, most: int) -> go.Figure:
    """Draw the groups that have pictures, in order; of more than ``most`` those served worst."""
    numbers = _served(test, most=most)
    return dumbbell(
        [test.before.scores[n] for n in numbers],
        [test.after.scores[n] for n in numbers],
        marks=[written(mark) for mark in group_marks(test, most=most).values()],
    )


def group_marks(test: OpenSplit, *, most: int) -> dict[str, Mark]:
    """Return the marks of the same groups, by name."""
    return {
        group_name(test.before.scores[n]): GroupMark(test.name, n) for n in _served(test, most=most)
    }


def groups_words(test: OpenSplit, *, most: int, where: str) -> str:
    """Say which groups a figure of ``most`` does not show, and where all of them are."""
    here = sum(score.count > 0 for score in test.before.scores)
    empty, more = len(test.before.scores) - here, here - most
    one = "class" if test.kind == "classes" else "group"
    told = [
        f"{count(empty, one, test.kind)} {'has' if empty == 1 else 'have'} no picture in "
        f"“{test.name}”."
        if empty
        else "",
        f"{count(more, f'more {one}', f'more {test.kind}')}, served better, "
        f"{'is' if more == 1 else 'are'} in the {where}."
        if more > 0
        else "",
    ]
    return " ".join(filter(None, told))


def changes_by_class(test: OpenSplit) -> list[Change]:
    """Return how the accuracy on every class changed."""
    return class_changes(test.pair.before, test.pair.after, classes=test.classes)


def weigh_classes(test: OpenSplit) -> Evidence:
    """Weigh what became of every class, by the standard of the groups beside them."""
    return judge(changes_by_class(test), among=len(test.evidence.groups))


def classes_table(test: OpenSplit) -> Table:
    """Show the change of every class with its interval, then of all pictures."""
    changes = changes_by_class(test)
    return Table(
        name=f"{test.name} change by class",
        columns=(
            Column("Class", ("class",)),
            Column("n"),
            Column("Before", ("before",)),
            Column("After", ("after",)),
            Column("Change, points", ("change", "low", "high")),
            Column("Fixed", ("fixed",)),
            Column("Broken", ("broken",)),
        ),
        rows=[
            (
                Cell(change.label),
                count_cell(change.count),
                share_cell(change.before),
                share_cell(change.after),
                change_cell(change.change, change.interval),
                count_cell(change.fixed),
                count_cell(change.broken),
            )
            for change in (*changes, judge(changes).overall)
        ],
    )


def classes_figure(test: OpenSplit, *, most: int) -> go.Figure:
    """Draw how every class changed; of more than ``most`` those that changed most."""
    changes = changes_by_class(test)
    marks = class_marks(test, most=most).values()
    return change_by_class(
        [changes[mark.label] for mark in marks], marks=[written(mark) for mark in marks]
    )


def class_marks(test: OpenSplit, *, most: int) -> dict[str, ClassMark]:
    """Return the marks of the same classes, by name."""
    changes = changes_by_class(test)
    largest = sorted(range(len(changes)), key=lambda n: -abs(changes[n].change or 0.0))[:most]
    return {changes[n].label: ClassMark(test.name, n) for n in sorted(largest)}


def classes_words(test: OpenSplit, *, most: int) -> str:
    """Say how many classes a figure of ``most`` does not show; empty where it shows all."""
    more = len(changes_by_class(test)) - most
    if more <= 0:
        return ""
    said = count(more, "more class", "more classes")
    return f"{said}, which changed less, {'is' if more == 1 else 'are'} in the CSV."


def scores_by_round(test: OpenSplit) -> tuple[list[float | None], list[float | None]]:
    """Return test average and worst accuracy before and after each round; None where unknown."""
    found = [(record.test or {}).get(test.name) for record in test.run.result.masking.rounds]
    averages = [None if score is None else score.average for score in found]
    worst = [None if score is None else score.worst_group for score in found]
    return [test.before.average, *averages], [test.before.worst.accuracy, *worst]
