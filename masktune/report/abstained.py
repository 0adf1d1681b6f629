"""Section on selective classification: answer when sure, hold back otherwise."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from masktune.report.filled import section
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.evidence import weigh_scores
from masktune.scores.selective import (
    TARGETS,
    Ranked,
    RiskCoverage,
    SelectiveRow,
    at_threshold,
    group_coverage,
    risk_coverage,
    selective_table,
    threshold_at,
)
from masktune.show.figures import coverage_by_group, risk_coverage_curves
from masktune.show.markup import figure
from masktune.show.tables import Cell, Column, Table, html
from masktune.show.wording import area, count, percent, selective_verdict

MARKED = 0.9
"""The target coverage that the curves and the groups are shown at."""

MOST_GROUPS = 24
"""Groups in a figure: those held back most."""


def held_back(view: OpenRun, tests: Sequence[OpenSplit]) -> Markup:
    """Show what holding back costs and buys, for the joint score and each model alone."""
    validation = view.predictions.validation.ranked()
    return section(
        "abstained",
        pictures=count(len(validation["joint"])),
        blocks=[_block(test, validation) for test in tests],
    )


def _block(test: OpenSplit, validation: Mapping[str, Ranked]) -> dict[str, object]:
    ranked = test.pair.ranked()
    curves = {which: risk_coverage(answers) for which, answers in ranked.items()}
    gamma = threshold_at(validation["joint"], MARKED)
    point = at_threshold(ranked["joint"], gamma)
    groups = group_coverage(
        ranked["joint"],
        test.pair.before,
        gamma=gamma,
        classes=test.classes,
        attributes=test.attributes,
    )
    present = [(group.coverage, group) for group in groups if group.coverage is not None]
    lowest = [group for _, group in sorted(present, key=lambda pair: pair[0])[:MOST_GROUPS]]
    tables = {which: selective_table(validation[which], ranked[which]) for which in ranked}
    return {
        "test": test.name,
        "size": count(len(test)),
        "marked": f"{MARKED:.0%}",
        "verdict": selective_verdict(weigh_scores(ranked)),
        "curves": figure(risk_coverage_curves(curves, point=point, target=MARKED)),
        "shares": figure(coverage_by_group([group for group in groups if group in lowest])),
        "targets": html(_targets(test.name, tables), saved=True),
        "areas": html(_areas(test.name, curves), saved=True),
    }


def _targets(name: str, tables: Mapping[str, Sequence[SelectiveRow]]) -> Table:
    return Table(
        name=f"{name} selective",
        columns=(
            Column("Target"),
            *(
                Column(which, (f"{which} error", f"{which} coverage", f"{which} gamma"))
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


def _areas(name: str, curves: Mapping[str, RiskCoverage]) -> Table:
    return Table(
        name=f"{name} areas",
        columns=(Column("Score"), Column("AURC"), Column("AUGRC"), Column("e-AURC")),
        rows=[
            (
                Cell(which),
                *(
                    Cell(area(value), values=(value,))
                    for value in (curve.aurc, curve.augrc, curve.e_aurc)
                ),
            )
            for which, curve in curves.items()
        ],
    )
