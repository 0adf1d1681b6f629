"""What a target coverage does on a test set: pure functions of what a run's models once said."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from masktune.scores.evidence import (
    Difference,
    Safety,
    compare_risks,
    direction,
    unpaired_interval,
    weigh_scores,
)
from masktune.scores.groups import group_name, wilson
from masktune.scores.predictions import Predictions
from masktune.scores.result import Names, Pair
from masktune.scores.selective import (
    GroupCoverage,
    OperatingPoint,
    Ranked,
    RiskCoverage,
    SelectiveRow,
    at_threshold,
    aurc_interval,
    coverage_at_risk,
    group_coverage,
    nearest_coverage,
    risk_coverage,
    selective_table,
    threshold_at,
)
from masktune.seeds import stream_seed

SCORES = ("joint", "after", "before")
"""What a picture's sureness is measured by; the paper's first."""

SAFE = 0.05
"""Share of wrong answers that the table of areas asks the largest coverage for."""

MOST_GROUPS = 24
"""Groups shown: those answered least."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rankings:
    """Every score on the validation split and on one test set.

    Attributes:
        validation: answers by score; gamma comes from these.
        test: answers by score.
        curves: of the test set, by score.
        safe: by score, the largest coverage of the test set with at most ``SAFE`` wrong.
        safety: how clearly the scores differ over all coverages.
    """

    validation: Mapping[str, Ranked]
    test: Mapping[str, Ranked]
    curves: Mapping[str, RiskCoverage]
    safe: Mapping[str, float]
    safety: Safety

    def table(self) -> dict[str, list[SelectiveRow]]:
        """Give the rows of the paper's table by score."""
        return {s: selective_table(self.validation[s], self.test[s]) for s in SCORES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one score does at one target coverage.

    Attributes:
        score: one of ``SCORES``.
        target: coverage asked for.
        point: the threshold and what it does on the test set.
        total: test pictures.
        wrong: wrong answers among those accepted.
        interval: 95 % Wilson interval of the risk, None when nothing is accepted.
        on_validation: coverage of the same threshold on the validation split.
        tied: validation pictures whose score is the threshold itself.
        nearest: the coverage nearest to the target that a threshold can reach on the validation
            split, when ties keep this one from reaching it; else None.
    """

    score: str
    target: float
    point: OperatingPoint
    total: int
    wrong: int
    interval: Interval | None
    on_validation: float
    tied: int
    nearest: float | None

    @property
    def off_target(self) -> float:
        """Achieved coverage minus target."""
        return self.point.coverage - self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """How one group fares at a threshold; ``interval`` is the risk's, 95 % Wilson."""

    name: str
    coverage: GroupCoverage
    wrong: int
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Gap:
    """The groups with pictures that are answered least and most often, of ``several``."""

    least: GroupReading
    most: GroupReading
    several: int

    @property
    def size(self) -> float:
        """Difference of their coverages."""
        return (self.most.coverage.coverage or 0.0) - (self.least.coverage.coverage or 0.0)

    @property
    def within_chance(self) -> bool:
        """Whether the interval of the difference holds 0, as one of all pairs of groups."""
        found = unpaired_interval(
            *((g.coverage.accepted, g.coverage.count) for g in (self.most, self.least)),
            among=math.comb(self.several, 2),
        )
        return direction(found) == "unclear"


def rank(validation: Pair, test: Pair) -> Rankings:
    """Rank the answers of both models, alone and together."""
    ranked = test.ranked()
    return Rankings(
        validation=validation.ranked(),
        test=ranked,
        curves={score: risk_coverage(answers) for score, answers in ranked.items()},
        safe={score: coverage_at_risk(answers, SAFE) for score, answers in ranked.items()},
        safety=weigh_scores(ranked),
    )


def read_off(rankings: Rankings, score: str, *, target: float) -> Reading:
    """Find gamma on the validation split and tell what it does there and on the test set."""
    validation, test = rankings.validation[score], rankings.test[score]
    gamma = threshold_at(validation, target)
    point = at_threshold(test, gamma)
    wrong = int(((test.confidence > gamma) & ~test.correct).sum())
    on_validation = at_threshold(validation, gamma).coverage
    # Without ties a threshold never accepts less than it was asked for; see `threshold_at`.
    short = on_validation < target * (1 - 1e-9)
    return Reading(
        score=score,
        target=target,
        point=point,
        total=len(test),
        wrong=wrong,
        interval=_share(wrong, point.accepted),
        on_validation=on_validation,
        tied=int((validation.confidence == gamma).sum()),
        nearest=nearest_coverage(validation, target) if short else None,
    )


def against(rankings: Rankings, reading: Reading, other: str) -> Difference:
    """Tell how much lower the risk of a reading is than another score's at the same coverage."""
    ranked = rankings.test[other]
    wanted = max(math.ceil(reading.point.coverage * reading.total * (1 - 1e-12)), 1)
    lowest = np.sort(ranked.confidence)[::-1][wanted - 1]  # the last that is answered, and its ties
    return compare_risks(
        rankings.test[reading.score],
        ranked,
        gammas=(reading.point.gamma, float(np.nextafter(lowest, -np.inf))),
    )


def read_groups(
    ranked: Ranked, predictions: Predictions, *, gamma: float, names: Names
) -> list[GroupReading]:
    """Tell how every group with pictures fares, in group order.

    Of very many groups the ``MOST_GROUPS`` answered least are given.
    """
    found = group_coverage(
        ranked, predictions, gamma=gamma, classes=names.classes, attributes=names.attributes
    )
    present = [(group.coverage, place) for place, group in enumerate(found) if group.count]
    least = sorted(present, key=lambda pair: (pair[0] or 0.0, pair[1]))[:MOST_GROUPS]
    return [_group(found[place]) for place in sorted(place for _, place in least)]


def _group(group: GroupCoverage) -> GroupReading:
    wrong = round((group.risk or 0.0) * group.accepted)
    return GroupReading(
        name=group_name(group),
        coverage=group,
        wrong=wrong,
        interval=_share(wrong, group.accepted),
    )


def area_intervals(test: Mapping[str, Ranked], *, seed: int) -> dict[str, Interval]:
    """Give the 95 % bootstrap interval of every score's AURC; takes up to seconds."""
    return {
        score: aurc_interval(
            ranked, generator=np.random.default_rng(stream_seed(seed, f"aurc/{score}"))
        )
        for score, ranked in test.items()
    }


def widest_gap(groups: Sequence[GroupReading]) -> Gap | None:
    """Give the groups answered least and most often; None when there is only one."""
    ordered = sorted(groups, key=lambda group: group.coverage.coverage or 0.0)
    return Gap(ordered[0], ordered[-1], len(ordered)) if len(ordered) > 1 else None


def _share(part: int, whole: int) -> Interval | None:
    return wilson(part, whole) if whole else None
