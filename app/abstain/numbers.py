"""What a target coverage does on a test set: pure functions of what a run's models once said."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from masktune.scores.evidence import Difference, compare_risks
from masktune.scores.groups import wilson
from masktune.scores.selective import (
    OperatingPoint,
    Ranked,
    at_threshold,
    aurc_interval,
    nearest_coverage,
    threshold_at,
)
from masktune.seeds import stream_seed
from masktune.show.abstained import Rankings

SCORES = ("joint", "after", "before", "own")
"""What a picture's sureness is measured by; the paper's first, that of a rival's own last."""

Interval = tuple[float, float]


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


def scores_of(rankings: Rankings) -> list[str]:
    """Return the scores that a run has: its own only where its method learnt to abstain."""
    return [score for score in SCORES if score in rankings.test]


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
        interval=wilson(wrong, point.accepted) if point.accepted else None,
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


def area_intervals(test: Mapping[str, Ranked], *, seed: int) -> dict[str, Interval]:
    """Give the 95 % bootstrap interval of every score's AURC; takes up to seconds."""
    return {
        score: aurc_interval(
            ranked, generator=np.random.default_rng(stream_seed(seed, f"aurc/{score}"))
        )
        for score, ranked in test.items()
    }
