"""What the tuning changed, example by example: which answers it fixed and which it broke."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from masktune.errors import DataError
from masktune.scores.groups import ANY, Z_95, group_examples, wilson, z_among
from masktune.scores.predictions import Predictions


@dataclass(frozen=True, slots=True)
class Change:
    """How the accuracy on one class or one group changed; accuracies are None without examples.

    Attributes:
        label: name of the class, or "all".
        attribute: name of the group's attribute, "any" for a class.
        count: its examples.
        right_before: those answered right before.
        fixed: wrong before and right after.
        broken: right before and wrong after.
    """

    label: str
    _: KW_ONLY
    attribute: str = ANY
    count: int
    right_before: int
    fixed: int
    broken: int

    @classmethod
    def of(cls, was: npt.NDArray[np.bool_], now: npt.NDArray[np.bool_]) -> "Change":
        """Return what became of all examples: (N,) which of them were right, and which are."""
        return cls(
            "all",
            count=len(was),
            right_before=int(was.sum()),
            fixed=int((~was & now).sum()),
            broken=int((was & ~now).sum()),
        )

    @property
    def before(self) -> float | None:
        """The accuracy before, in [0, 1]."""
        return self.right_before / self.count if self.count else None

    @property
    def after(self) -> float | None:
        """The accuracy after, in [0, 1]."""
        right = self.right_before - self.broken + self.fixed
        return right / self.count if self.count else None

    @property
    def change(self) -> float | None:
        """After - before, in [-1, 1]."""
        return (self.fixed - self.broken) / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The change's 95 % interval (Newcombe's method 10)."""
        return self.interval_among(1)

    def interval_among(self, several: int) -> tuple[float, float] | None:
        """Return the interval that holds together with those of ``several`` changes in all."""
        if not self.count:
            return None
        both = self.right_before - self.broken
        neither = self.count - both - self.fixed - self.broken
        return paired_interval(
            both=both, fixed=self.fixed, broken=self.broken, neither=neither, z=z_among(several)
        )


AnswerChange = Literal["fixed", "broken", "still wrong", "still right"]


def answer_changes(before: Predictions, after: Predictions) -> list[AnswerChange]:
    """Return what became of every answer."""
    check_same_examples(before, after)
    was, now = before.correct(), after.correct()
    names: tuple[AnswerChange, ...] = ("still wrong", "fixed", "broken", "still right")
    return [names[number] for number in (2 * was + now).tolist()]


def group_flips(
    before: Predictions,
    after: Predictions,
    *,
    classes: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
) -> list[Change]:
    """Return how every group's accuracy changed, in the order of ``group_scores``."""
    check_same_examples(before, after)
    grouping = group_examples(before, classes=classes, attributes=attributes)
    was, now = before.correct(), after.correct()
    rows = grouping.rows(was, ~was & now, was & ~now)
    return [
        Change(
            label, attribute=attribute, count=count, right_before=right, fixed=fixed, broken=broken
        )
        for (label, attribute), (count, right, fixed, broken) in rows
    ]


def class_changes(
    before: Predictions, after: Predictions, *, classes: Sequence[str] | None = None
) -> list[Change]:
    """Compare the accuracy on every class before and after, in label order.

    The paper asks whether tuning harms when nothing spurious is there, and answers with single
    classes that improved. An interval tells which of them stand out of the noise.
    """
    check_same_examples(before, after)
    was, now = (Predictions(said.probabilities, said.labels) for said in (before, after))
    return group_flips(was, now, classes=classes)


def paired_interval(
    *, both: int, fixed: int, broken: int, neither: int, z: float = Z_95
) -> tuple[float, float]:
    """Give the 95 % interval of the change in accuracy of two models asked the same questions.

    Newcombe's method 10 (Statistics in Medicine 17, 1998): the Wilson intervals of the two
    accuracies, joined with their correlation. A plain normal interval has no width when nothing
    flipped, which would claim that tuning never harms after seeing a handful of examples.

    ``both`` were right before and after, ``neither`` wrong; ``z`` is the normal quantile of
    another confidence than 95 %.

    >>> low, high = paired_interval(both=14, fixed=5, broken=0, neither=22)
    >>> round(low, 3), round(high, 3)
    (0.011, 0.226)
    """
    count = both + fixed + broken + neither
    right_before, right_after = both + broken, both + fixed
    p, q = right_after / count, right_before / count
    p_low, p_high = wilson(right_after, count, z=z)
    q_low, q_high = wilson(right_before, count, z=z)

    # Without correction for continuity a small sample looks more correlated than it is.
    excess = float(both * neither - fixed * broken)
    if excess > 0:
        excess = max(excess - count / 2, 0.0)
    margins = right_after * (count - right_after) * right_before * (count - right_before)
    phi = excess / math.sqrt(margins) if margins else 0.0

    def join(one: float, other: float) -> float:
        return math.sqrt(one * one - 2 * phi * one * other + other * other)

    return p - q - join(p - p_low, q_high - q), p - q + join(p_high - p, q - q_low)


def check_same_examples(before: Predictions, after: Predictions) -> None:
    """Raise unless both models were asked about the same examples in the same order."""
    if before.probabilities.shape != after.probabilities.shape:
        difference = (
            f"before is {before.probabilities.shape}, after {after.probabilities.shape} "
            "(examples, classes)"
        )
    elif not np.array_equal(before.labels, after.labels):
        difference = "their labels differ"
    elif not np.array_equal(before.attributes, after.attributes):
        difference = "their attributes differ"
    else:
        return
    raise DataError(
        f"Before and after do not describe the same examples: {difference}.",
        "Predict with both models on one split.",
    )
