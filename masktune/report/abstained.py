"""Section on selective classification: answer when sure, abstain otherwise."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from masktune.report.filled import section
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.selective import TARGETS, SelectiveRow, at_threshold, threshold_at
from masktune.show.abstained import area_cells, least_answered, rank
from masktune.show.figures import coverage_by_group, risk_coverage_curves
from masktune.show.markup import figure
from masktune.show.tables import Cell, Column, Table, html
from masktune.show.wording import count, percent, score_name, selective_verdict

MARKED = 0.9
"""The target coverage that the curves and the groups are shown at."""


def abstained(view: OpenRun, tests: Sequence[OpenSplit]) -> Markup:
    """Show what abstaining costs and buys, for the joint score and each model alone."""
    return section(
        "abstained",
        pictures=count(len(view.validation)),
        own=any(test.pair.own is not None for test in tests),
        blocks=[_block(test) for test in tests],
    )


def _block(test: OpenSplit) -> dict[str, object]:
    rankings = rank(test.run.predictions.validation, test.pair)
    joint = rankings.test["joint"]
    gamma = threshold_at(rankings.validation["joint"], MARKED)
    point = at_threshold(joint, gamma)
    groups = least_answered(joint, test.pair.before, gamma=gamma, names=test)
    areas = Table(
        name=f"{test.name} areas",
        columns=(Column("Score"), Column("AURC"), Column("AUGRC"), Column("e-AURC")),
        rows=[
            (Cell(score_name(which)), *area_cells(curve))
            for which, curve in rankings.curves.items()
        ],
    )
    return {
        "test": test.name,
        "size": count(len(test)),
        "marked": f"{MARKED:.0%}",
        "verdict": selective_verdict(rankings.safety),
        "curves": figure(risk_coverage_curves(rankings.curves, point=point, target=MARKED)),
        "shares": figure(coverage_by_group(groups)),
        "targets": html(_targets(test.name, rankings.table()), saved=True),
        "areas": html(areas, saved=True),
    }


def _targets(name: str, tables: Mapping[str, Sequence[SelectiveRow]]) -> Table:
    return Table(
        name=f"{name} selective",
        columns=(
            Column("Target"),
            *(
                Column(score_name(which), (f"{which} error", f"{which} coverage", f"{which} gamma"))
                for which in tables
            ),
        ),
        rows=[
            (
                Cell(f"{target:.0%}", values=(target,)),
                *(_at_target(rows[number]) for rows in tables.values()),
            )
            for number, target in enumerate(TARGETS)
        ],
    )


def _at_target(row: SelectiveRow) -> Cell:
    gamma = row.gamma if math.isfinite(row.gamma) else None
    small = f"{percent(row.coverage)}, gamma {'none' if gamma is None else f'{gamma:.4f}'}"
    return Cell(percent(row.error), small, (row.error, row.coverage, gamma))
