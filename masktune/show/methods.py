"""Several methods on the same pictures: where each looks, whose answers differ, whom to trust."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup

from masktune.config import MASKTUNE
from masktune.files import Value, csv_bytes
from masktune.runs.open import OpenSplit
from masktune.scores.evidence import judge, weigh
from masktune.scores.flips import answer_changes, group_flips
from masktune.scores.groups import group_name
from masktune.scores.marks import ALL, AnsweredMark, OnlyMark, all_of
from masktune.scores.metrics import METRICS
from masktune.scores.selective import RiskCoverage, alone, risk_coverage
from masktune.show.contact_sheets import TILE, Rows, heat_of
from masktune.show.figures import SCORES, several_risk_coverage_curves
from masktune.show.marks import linked_cell, marks_line
from masktune.show.markup import metric_strip
from masktune.show.painting import enlarged, heat_over, picture_of
from masktune.show.tables import (
    Cell,
    Column,
    Table,
    change_cell,
    share_cell,
)
from masktune.show.wording import NOTHING, count, interval, percent


def heat_rows(methods: Mapping[str, OpenSplit], positions: Sequence[int]) -> Rows:
    """Return tiles of some pictures: as they are, the heat of the model before, then of each after.

    Every heat is that of the model's own answer and has one scale, 0 to 1. A method whose network
    has no feature map is left out, and so is the model before where methods have different ones.
    """
    first = next(iter(methods.values()))
    images = first.split.images.batch(positions)
    pictures = [picture_of(image) for image in images]
    rows: Rows = {"Picture": [enlarged(picture, TILE) for picture in pictures]}
    models = {"Before": (first.run, first.run.before)} if _same_before(methods) else {}
    for name, test in methods.items():
        models[name] = (test.run, test.run.after)
    for name, (run, model) in models.items():
        if run.layer is not None:
            heat = heat_of(run, model, images)
            rows[name] = [
                enlarged(heat_over(p, one), TILE) for p, one in zip(pictures, heat, strict=True)
            ]
    return rows


def _same_before(methods: Mapping[str, OpenSplit]) -> bool:
    said = [test.pair.before.probabilities for test in methods.values()]
    return all(np.array_equal(said[0], other) for other in said[1:])


def only_right(one: OpenSplit, other: OpenSplit) -> tuple[list[int], list[int]]:
    """Return the pictures that one run alone answers rightly, and those that the other does."""
    states = np.array(answer_changes(other.pair.after, one.pair.after))
    mine, theirs = (np.flatnonzero(states == state).tolist() for state in ("fixed", "broken"))
    return mine, theirs


def between_table(
    one: OpenSplit, other: OpenSplit, names: tuple[str, str], *, against: str = ""
) -> Table:
    """Show by group how the answers of two runs differ; ``names`` are theirs.

    Counts lead to their pictures where the id of the other's run is given.
    """
    said = other.pair.after, one.pair.after
    groups = group_flips(*said, classes=one.classes, attributes=one.attributes)
    total = judge(groups).overall
    changes = [(n, each) for n, each in enumerate(groups) if each.count]

    def only(right: str, group: int, number: int) -> Cell:
        mark = OnlyMark(one.name, right, against, group) if against else None
        return linked_cell(mark, number)

    return Table(
        name="answers of two runs",
        columns=(
            Column("Class" if one.kind == "classes" else "Group", ("group",), left=True),
            Column("n"),
            Column(names[1], ("other",)),
            Column(names[0], ("this run",)),
            Column("Points", ("difference", "low", "high"), hint="With its paired 95% interval."),
            Column("Only this right", ("only this run right",)),
            Column("Only the other", ("only the other right",)),
        ),
        rows=[
            (
                Cell(group_name(each) if each is not total else "All", strong=each is total),
                linked_cell(all_of(one.name, len(one), n) if against else None, each.count),
                share_cell(each.before),
                share_cell(each.after),
                change_cell(each.change, each.interval),
                only("this", n, each.fixed),
                only("other", n, each.broken),
            )
            for n, each in (*changes, (ALL, total))
        ],
    )


def methods_risk(
    methods: Mapping[str, OpenSplit], *, runs: Mapping[str, str] = MappingProxyType({})
) -> go.Figure:
    """Show the risk against the coverage of every method, by the scores that it has.

    Points lead to the pictures answered where ``runs`` has the id of each method's run, an empty
    one for that of the page, which is the first.
    """
    asked = {name: (methods[name].name, len(methods[name]), run) for name, run in runs.items()}
    return several_risk_coverage_curves(_risk_before(methods), methods_curves(methods), asked=asked)


def risk_line(
    methods: Mapping[str, OpenSplit], *, runs: Mapping[str, str], coverage: float
) -> Markup:
    """Return links to what every method answers at its point nearest to a coverage.

    Args:
        methods: a test set as each method answers it.
        runs: as ``methods_risk`` has them.
        coverage: in (0, 1].
    """
    marks = {}
    for name, test in methods.items():
        reached = risk_coverage(test.pair.ranked()["after"]).coverage
        at = float(reached[np.abs(reached - coverage).argmin()])
        text = f"{name}, {percent(at)} answered"
        marks[text] = AnsweredMark(test.name, "after", round(at * len(test)), run=runs[name])
    return marks_line(marks)


def risk_csv(methods: Mapping[str, OpenSplit]) -> bytes:
    """Give every point of every curve of ``methods_risk``."""
    before = _risk_before(methods)
    named = {} if before is None else {"before": before}
    for name, scores in methods_curves(methods).items():
        named |= {
            ", ".join(filter(None, [name, SCORES[score]])): one for score, one in scores.items()
        }
    rows: list[tuple[Value, ...]] = []
    for name, curve in named.items():
        points = np.stack([curve.coverage, curve.risk], axis=1)
        rows += [(name, *point) for point in points.tolist()]
    return csv_bytes(("run, score", "coverage", "risk"), rows)


def _risk_before(methods: Mapping[str, OpenSplit]) -> RiskCoverage | None:
    first = next(iter(methods.values()))
    return risk_coverage(alone(first.pair.before)) if _same_before(methods) else None


def methods_curves(methods: Mapping[str, OpenSplit]) -> dict[str, dict[str, RiskCoverage]]:
    """Return the risk against the coverage of every method, by name and score.

    Softmax response of each model after, the joint score of MaskTune's
    runs, and where a method has learnt when to abstain, its own score as well.
    """
    curves: dict[str, dict[str, RiskCoverage]] = {}
    for name, test in methods.items():
        ranked = test.pair.ranked()
        curves[name] = {"after": risk_coverage(ranked["after"])}
        if test.run.config.rival == MASKTUNE:
            curves[name]["joint"] = risk_coverage(ranked["joint"])
        if "own" in ranked:
            curves[name]["own"] = risk_coverage(ranked["own"])
    return curves


def paired_table(
    methods: Mapping[str, OpenSplit], *, against: str, apart: Collection[str] = ()
) -> Table:
    """Show what several models after come to beside one another, and how each differs from one.

    Args:
        methods: a test set of each, by the name of its run.
        against: the one that the others are weighed against.
        apart: those that were asked about other pictures: no answer of theirs has a partner.
    """
    one = methods[against]
    worst = METRICS[0]
    kinds = {test.after.worst_is for test in methods.values()}
    head = f"Worst {' or '.join(sorted(kinds, reverse=True))}"
    return Table(
        name="runs beside one another",
        columns=(
            Column("Run", ("run",), left=True),
            Column(f"{head} before", ("worst before",), roomy=True),
            Column("0 to 100%", (), left=True, roomy=True),
            Column("after", ("worst after", "low", "high", "worst name", "worst n")),
            Column("Average", ("average before", "average after")),
            Column(
                "Points there",
                ("group", "difference in it", "difference low", "difference high"),
                hint=f"In the worst {one.after.worst_is} of {against}, with a paired 95% interval.",
            ),
            Column(
                "Points on average",
                ("average difference", "average difference low", "average difference high"),
                hint=f"Against {against} on the same pictures, with a paired 95% interval.",
            ),
        ),
        rows=[
            (
                Cell(name, f"n = {count(len(test))}", (name,), strong=name == against),
                share_cell(worst.of(test.before)),
                Cell(metric_strip(worst, test)),
                _worst_cell(test),
                Cell(
                    percent(test.after.average),
                    f"from {percent(test.before.average)}",
                    (test.before.average, test.after.average),
                ),
                *_difference_cells(one, test, paired=name != against and name not in apart),
            )
            for name, test in methods.items()
        ],
    )


def _worst_cell(test: OpenSplit) -> Cell:
    now = test.after.worst
    small = f"{group_name(now)}, {interval(now.interval)}, n = {count(now.count)}"
    bounds = now.interval or (None, None)
    values = (now.accuracy, *bounds, group_name(now), now.count)
    return Cell(percent(now.accuracy), small, values, strong=True)


def _difference_cells(one: OpenSplit, test: OpenSplit, *, paired: bool) -> tuple[Cell, Cell]:
    if not paired:
        said = NOTHING if test is one else "other pictures"
        return Cell(said, values=(None,) * 4), Cell(said, values=(None,) * 3)
    found = weigh(one.pair.after, test.pair.after, classes=one.classes, attributes=one.attributes)
    there = found.worst_before
    cell = change_cell(there.change, there.interval)
    named = Cell(
        cell.text, f"{cell.small}, {group_name(there)}", (group_name(there), *(cell.values or ()))
    )
    return named, change_cell(found.overall.change, found.overall.interval)
