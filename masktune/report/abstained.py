"""Section on selective classification: answer when sure, hold back otherwise."""

import math
from html import escape

from masktune.report.scored import Scored
from masktune.runs.open import RunView
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
from masktune.show.markup import Cell, Column, figure, table
from masktune.show.wording import area, count, percent, selective_verdict

MARKED = 0.9
"""The target coverage that the curves and the groups are shown at."""

MOST_GROUPS = 24
"""Groups in a figure: those held back most."""


def held_back(view: RunView, tests: list[Scored]) -> str:
    """Show what holding back costs and buys, for the joint score and each model alone."""
    validation = view.predictions.validation.ranked()
    size = count(len(validation["joint"]))
    return (
        '<p class="hint">The joint score is the largest product of both models’ probabilities; '
        "before and after alone use their largest probability. Gamma comes from "
        f"{size} validation pictures, so coverage on a test set can miss its target.</p>"
        + "".join(_block(view, test, validation) for test in tests)
    )


def _block(view: RunView, test: Scored, validation: dict[str, Ranked]) -> str:
    ranked = test.pair.ranked()
    curves = {which: risk_coverage(answers) for which, answers in ranked.items()}
    gamma = threshold_at(validation["joint"], MARKED)
    point = at_threshold(ranked["joint"], gamma)
    card = view.bundle.card
    groups = group_coverage(
        ranked["joint"],
        test.pair.before,
        gamma=gamma,
        classes=card.classes,
        attributes=card.attributes,
    )
    present = [(group.coverage, group) for group in groups if group.coverage is not None]
    lowest = [group for _, group in sorted(present, key=lambda pair: pair[0])[:MOST_GROUPS]]
    drawn = figure(risk_coverage_curves(curves, point=point, target=MARKED))
    shares = figure(coverage_by_group([g for g in groups if g in lowest]))
    tables = {which: selective_table(validation[which], ranked[which]) for which in ranked}
    return (
        f'<div class="two"><div class="card"><h3>Test set “{escape(test.name)}”</h3>'
        f'<p class="verdict">{escape(selective_verdict(weigh_scores(ranked)))}</p>{drawn}'
        f"<h3>Who is held back at target {MARKED:.0%}, joint score</h3>{shares}"
        '<p class="note">Solid: answered. Hatched: held back. A gap between groups means that '
        "holding back is not shared fairly.</p></div>"
        f'<div class="card"><h3>Wrong answers at each target</h3>{_targets(test, tables)}'
        f"<h3>Areas</h3>{_areas(test, curves)}</div></div>"
    )


def _targets(test: Scored, tables: dict[str, list[SelectiveRow]]) -> str:
    columns = [
        Column("Target"),
        *(
            Column(which, (f"{which} error", f"{which} coverage", f"{which} gamma"))
            for which in tables
        ),
    ]
    rows = [
        [
            Cell(f"{target:.0%}", values=(target,)),
            *(_at_target(tables[which][number]) for which in tables),
        ]
        for number, target in enumerate(TARGETS)
    ]
    return table(f"{test.name} selective", columns, rows) + (
        '<p class="note">Large: share of answers that are wrong. Small: achieved coverage of '
        f"{count(len(test))} pictures, gamma.</p>"
    )


def _at_target(row: SelectiveRow) -> Cell:
    finite = math.isfinite(row.gamma)
    gamma = f"{row.gamma:.4f}" if finite else "none"
    return Cell(
        percent(row.error),
        f"{percent(row.coverage)}, gamma {gamma}",
        (row.error, row.coverage, row.gamma if finite else None),
    )


def _areas(test: Scored, curves: dict[str, RiskCoverage]) -> str:
    columns = [Column("Score"), Column("AURC"), Column("AUGRC"), Column("e-AURC")]
    rows = [
        [
            Cell(which),
            *(
                Cell(area(value), values=(value,))
                for value in (curve.aurc, curve.augrc, curve.e_aurc)
            ),
        ]
        for which, curve in curves.items()
    ]
    return table(f"{test.name} areas", columns, rows) + (
        '<p class="note">Areas under the risk-coverage curve, lower is safer. Plain fractions '
        "from 0 to 1; some tools print them times 1000.</p>"
    )
