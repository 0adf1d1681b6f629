"""What holding back costs and buys on a test set: for the Abstain page and the report alike."""

from collections.abc import Mapping
from dataclasses import dataclass

from masktune.scores.evidence import Safety, weigh_scores
from masktune.scores.predictions import Predictions
from masktune.scores.result import Names, Pair
from masktune.scores.selective import (
    GroupCoverage,
    Ranked,
    RiskCoverage,
    SelectiveRow,
    group_coverage,
    risk_coverage,
    selective_table,
)
from masktune.show.tables import Cell
from masktune.show.wording import area

MOST_GROUPS = 24
"""Groups shown: those answered least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rankings:
    """Every score on the validation split and on one test set.

    Attributes:
        validation: answers by score; gamma comes from these.
        test: answers by score.
        curves: of the test set, by score.
        safety: how clearly the scores differ over all coverages.
    """

    validation: Mapping[str, Ranked]
    test: Mapping[str, Ranked]
    curves: Mapping[str, RiskCoverage]
    safety: Safety

    def table(self) -> dict[str, list[SelectiveRow]]:
        """Give the rows of the paper's table by score."""
        return {s: selective_table(self.validation[s], ranked) for s, ranked in self.test.items()}


def rank(validation: Pair, test: Pair) -> Rankings:
    """Rank the answers of both models, alone and together."""
    ranked = test.ranked()
    return Rankings(
        validation=validation.ranked(),
        test=ranked,
        curves={score: risk_coverage(answers) for score, answers in ranked.items()},
        safety=weigh_scores(ranked),
    )


def least_answered(
    ranked: Ranked, predictions: Predictions, *, gamma: float, names: Names
) -> list[GroupCoverage]:
    """Tell how the groups with pictures fare, in group order; of very many those answered least."""
    found = group_coverage(
        ranked, predictions, gamma=gamma, classes=names.classes, attributes=names.attributes
    )
    present = [group for group in found if group.count]
    least = sorted(present, key=lambda group: group.coverage or 0.0)[:MOST_GROUPS]
    return [group for group in present if group in least]


def area_cells(curve: RiskCoverage, *, bounds: str = "") -> list[Cell]:
    """Return AURC, with its interval where it is known, AUGRC and e-AURC."""
    areas = ((curve.aurc, bounds), (curve.augrc, ""), (curve.e_aurc, ""))
    return [Cell(area(value), small, (value,)) for value, small in areas]
