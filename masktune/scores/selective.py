"""Selective classification: answer when sure, abstain otherwise.

*Coverage* is the share of examples answered. *Risk* (selective risk) is the share of wrong answers
among those answered; *generalized risk* is wrong answers over all examples. *Gamma* is the
threshold: an example is answered iff its score is greater, strictly. Every value is a plain
fraction in [0, 1]; fd-shifts prints its areas times 1000.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from masktune.errors import ConfigError, DataError, ModelError
from masktune.scores.flips import check_same_examples
from masktune.scores.groups import group_examples
from masktune.scores.predictions import Predictions

TARGETS = (1.0, 0.95, 0.9, 0.85, 0.8)
"""The target coverages of the paper's tables."""

DECILES = 10
"""Parts of equal size that answers fall into by how sure they are."""

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Answers with how sure the model is of each.

    Attributes:
        confidence: (N,) float64, finite; higher is surer.
        correct: (N,) bool, whether the answer is right.
    """

    confidence: Floats
    correct: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        # Single precision would round distinct scores into ties; ints would break ``~correct``.
        object.__setattr__(self, "confidence", np.asarray(self.confidence, dtype=np.float64))
        object.__setattr__(self, "correct", np.asarray(self.correct, dtype=np.bool_))
        if self.confidence.shape != self.correct.shape or self.confidence.ndim != 1:
            raise DataError(
                f"Scores of shape {self.confidence.shape} do not fit answers of shape "
                f"{self.correct.shape}.",
                "Give one score for each answer.",
            )
        if not self.confidence.size:
            raise DataError("There is no answer to rank.", "Use a split with examples.")
        if not np.isfinite(self.confidence).all():
            raise ModelError(
                "Some scores are not finite numbers: the model's outputs overflowed.",
                "Train again with a smaller learning rate.",
            )

    def __len__(self) -> int:
        """Count the answers."""
        return len(self.confidence)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """What a threshold does: the coverage achieved; ``risk`` is None when nothing is accepted."""

    gamma: float
    coverage: float
    risk: float | None
    accepted: int


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The risk at every coverage a threshold can reach, and the areas below.

    Tied scores are accepted together, so nothing here depends on the order of the examples.

    Attributes:
        coverage: (P,) float64, from 1 down to 0; one point for each distinct score, then 0.
        risk: (P,) float64, selective risk; the point at coverage 0 repeats its neighbour.
        aurc: trapezoid area of ``risk`` over ``coverage``.
        augrc: trapezoid area of ``generalized_risk`` over ``coverage``.
        generalized_risk: (P,) float64; 0 at coverage 0.
        e_aurc: ``aurc`` minus err + (1 - err) ln(1 - err), the area of a perfect ranking of
            infinitely many examples; slightly negative for a perfect ranking of few.
    """

    coverage: Floats
    risk: Floats
    aurc: float
    augrc: float
    generalized_risk: Floats
    e_aurc: float


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """How often one group, as in ``GroupScore``, is answered, and how well.

    Attributes:
        accepted: those of its examples that are answered.
        coverage: accepted / count, None when the group is empty.
        risk: wrong answers among those accepted, None when none is accepted.
    """

    label: str
    attribute: str
    count: int
    accepted: int
    coverage: float | None
    risk: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecileRisk:
    """How often a tenth of the answers is wrong; ``lowest`` and ``highest`` of its scores."""

    number: int
    count: int
    wrong: int
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class SelectiveRow:
    """One row of the paper's table.

    Attributes:
        target: coverage asked for.
        gamma: threshold that reaches it on the validation split; the rest is of the test set.
        error: risk, None when nothing is accepted.
    """

    target: float
    gamma: float
    coverage: float
    error: float | None
    accepted: int


def joint(before: Predictions, after: Predictions) -> Ranked:
    """Rank by MaskTune's score: the largest product of the two models' class probabilities.

    The answer is the class of the largest product. The authors' code takes a softmax of the
    products first, which leaves the answers as they are but moves gamma to another scale.
    """
    check_same_examples(before, after)
    product = before.probabilities.astype(np.float64) * after.probabilities  # (N, K)
    return Ranked(product.max(axis=1), product.argmax(axis=1) == before.labels)


def alone(predictions: Predictions) -> Ranked:
    """Rank by the softmax response of one model: its largest class probability."""
    return Ranked(predictions.probabilities.max(axis=1).astype(np.float64), predictions.correct())


def threshold_at(ranked: Ranked, coverage: float) -> float:
    """Find the gamma that accepts ceil(coverage * N) examples, more never.

    Gamma is the score next below those accepted, -inf when all are. Examples tied with that score
    are left out, so with ties fewer are accepted: see ``nearest_coverage``. (The authors' code
    accepts the next one too.) ``ranked`` is the validation split, ``coverage`` in (0, 1].
    """
    if not 0 < coverage <= 1:
        raise ConfigError(
            f"Coverage {coverage} is not in (0, 1].", "Give the share to answer, such as 0.9."
        )
    # 0.07 * 100 is 7.000000000000001 in floating point; a share of 7 % must not accept 8.
    wanted = math.ceil(coverage * len(ranked) * (1 - 1e-12))
    if wanted >= len(ranked):
        return -math.inf
    return float(np.sort(ranked.confidence)[::-1][wanted])


def nearest_coverage(ranked: Ranked, coverage: float) -> float:
    """Give the coverage nearest to the wanted one that a threshold can reach despite ties.

    Of two equally near, the larger.
    """
    reachable = risk_coverage(ranked).coverage
    return float(reachable[np.abs(reachable - coverage).argmin()])


def at_threshold(ranked: Ranked, gamma: float) -> OperatingPoint:
    """Accept the examples whose score is greater than ``gamma``, strictly."""
    answered = ranked.confidence > gamma
    accepted = int(answered.sum())
    wrong = int((answered & ~ranked.correct).sum())
    return OperatingPoint(
        gamma=gamma,
        coverage=accepted / len(ranked),
        risk=wrong / accepted if accepted else None,
        accepted=accepted,
    )


def deciles(ranked: Ranked) -> Counts:
    """Return the tenth that each answer is in by how sure it is, (N,) int64: 1 the least sure.

    Equally sure ones are told apart by their order in the split, so that all tenths are of one
    size, give or take one answer.

    >>> deciles(Ranked(np.array([0.9, 0.5, 0.7, 0.5]), np.ones(4)))
    array([8, 1, 6, 3])
    """
    found = np.empty(len(ranked), dtype=np.int64)
    found[np.argsort(ranked.confidence, kind="stable")] = np.arange(len(ranked))
    return 1 + found * DECILES // len(ranked)


def decile_risks(ranked: Ranked) -> list[DecileRisk]:
    """Count right and wrong answers by how sure they are, the least sure tenth first."""
    numbers = deciles(ranked)
    found = []
    for number in np.unique(numbers).tolist():
        inside = numbers == number
        sure = ranked.confidence[inside]
        found.append(
            DecileRisk(
                number=number,
                count=int(inside.sum()),
                wrong=int((inside & ~ranked.correct).sum()),
                lowest=float(sure.min()),
                highest=float(sure.max()),
            )
        )
    return found


def risk_coverage(ranked: Ranked) -> RiskCoverage:
    """Trace the risk over the coverage, with ties collapsed, and measure the areas."""
    block, blocks = _blocks(ranked)
    accepted = np.cumsum(np.bincount(block))  # from the highest score down
    wrong = np.cumsum(np.bincount(block[~ranked.correct], minlength=blocks))
    coverage = np.append((accepted / len(ranked))[::-1], 0.0)
    risk = np.append((wrong / accepted)[::-1], wrong[0] / accepted[0])
    generalized = np.append((wrong / len(ranked))[::-1], 0.0)
    error = float(risk[0])
    optimum = error + (1 - error) * math.log1p(-error) if error < 1 else 1.0
    aurc = _area(risk, coverage)
    return RiskCoverage(
        coverage=coverage,
        risk=risk,
        aurc=aurc,
        augrc=_area(generalized, coverage),
        generalized_risk=generalized,
        e_aurc=aurc - optimum,
    )


def aurc_interval(
    ranked: Ranked, *, generator: np.random.Generator, resamples: int = 1000
) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the AURC."""
    if resamples < 1:
        raise ConfigError(f"{resamples} resamples are none.", "Draw 1000.")
    areas = resampled_areas((ranked,), generator=generator, resamples=resamples)
    low, high = np.quantile(areas, [0.025, 0.975])
    return float(low), float(high)


def resampled_areas(
    rankings: Sequence[Ranked], *, generator: np.random.Generator, resamples: int
) -> Floats:
    """Return the AURC of S rankings of the same N examples on R resamples, (S, R) float64.

    All on the same resamples, N examples each, drawn with replacement.
    """
    count = len(rankings[0])
    if any(len(ranked) != count for ranked in rankings):
        raise DataError("The rankings are of different examples.", "Rank one split by each score.")
    at_once = max(1, 2**22 // count)  # bounds the memory: 32 MB an array
    parts = []
    for start in range(0, resamples, at_once):
        drawn = [
            np.bincount(generator.integers(count, size=count), minlength=count)
            for _ in range(min(at_once, resamples - start))
        ]
        parts.append([_areas_of(ranked, np.stack(drawn)) for ranked in rankings])
    return np.concatenate(parts, axis=1)


def _areas_of(ranked: Ranked, drawn: Counts) -> Floats:
    """Return the AURC, (R,), when each answer counts as often as it is drawn, (R, N)."""
    block, _ = _blocks(ranked)
    order = np.argsort(block, kind="stable")
    last = np.cumsum(np.bincount(block)) - 1  # of each distinct score
    drawn = drawn[:, order]
    accepted = np.cumsum(drawn, axis=1)[:, last]
    wrong = np.cumsum(drawn * ~ranked.correct[order], axis=1)[:, last]
    risk = wrong / np.maximum(accepted, 1)
    # Scores above all that were drawn repeat the risk of the first that was, as coverage 0 does.
    first = np.take_along_axis(risk, (accepted > 0).argmax(axis=1)[:, None], axis=1)
    risk = np.hstack([first, np.where(accepted > 0, risk, first)])
    coverage = np.hstack([np.zeros_like(first), accepted / len(ranked)])
    return np.asarray(np.trapezoid(risk, coverage, axis=1))


def coverage_at_risk(ranked: Ranked, risk: float) -> float:
    """Give the largest coverage whose risk is at most ``risk``, 0.0 when there is none.

    Risk need not fall with coverage, so a smaller coverage may well miss what a larger one meets.
    """
    if not 0 <= risk <= 1:
        raise ConfigError(f"Risk {risk} is not in [0, 1].", "Give a share, such as 0.05.")
    curve = risk_coverage(ranked)
    return float(curve.coverage[curve.risk <= risk].max(initial=0.0))


def group_coverage(
    ranked: Ranked,
    predictions: Predictions,
    *,
    gamma: float,
    classes: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
) -> list[GroupCoverage]:
    """Tell whom the model answers: coverage and risk of every group at one threshold.

    ``predictions`` are of the same examples, for their groups, which come named and in order as
    from ``group_scores``.
    """
    if len(ranked) != len(predictions.labels):
        raise DataError(
            f"{len(ranked)} answers are ranked, but {len(predictions.labels)} examples have "
            "groups.",
            "Rank and group the same split.",
        )
    grouping = group_examples(predictions, classes=classes, attributes=attributes)
    answered = ranked.confidence > gamma
    return [
        GroupCoverage(
            label=label,
            attribute=attribute,
            count=count,
            accepted=accepted,
            coverage=accepted / count if count else None,
            risk=wrong / accepted if accepted else None,
        )
        for (label, attribute), (count, accepted, wrong) in grouping.rows(
            answered, answered & ~ranked.correct
        )
    ]


def selective_table(
    validation: Ranked, test: Ranked, *, targets: Sequence[float] = TARGETS
) -> list[SelectiveRow]:
    """Find gamma for each target coverage on validation and apply it to the test set."""
    rows = []
    for target in targets:
        point = at_threshold(test, threshold_at(validation, target))
        rows.append(SelectiveRow(target, point.gamma, point.coverage, point.risk, point.accepted))
    return rows


def _blocks(ranked: Ranked) -> tuple[Counts, int]:
    """Number the distinct scores from the highest: (N,) int64 of each answer, and how many."""
    scores, block = np.unique(-ranked.confidence, return_inverse=True)
    return block, len(scores)


def _area(height: Floats, coverage: Floats) -> float:
    return float(np.trapezoid(height[::-1], coverage[::-1]))
