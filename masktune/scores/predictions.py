"""What a model said, once; every number later is a function of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from masktune.data.card import UNKNOWN


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says about every example of a split, in the split's order.

    Attributes:
        probabilities: (N, K) float64, rows sum to 1. In single precision a sure answer is exactly
            1, and answers that differ in sureness would tie.
        labels: (N,) int64, 0 .. K-1.
        attributes: (N,) int64, -1 everywhere when the dataset records none; made so where they are
            left out, None or empty.
    """

    probabilities: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.int64] = None  # type: ignore[assignment]  # never after __post_init__

    def __post_init__(self) -> None:
        if self.attributes is None or np.size(self.attributes) == 0:
            unknown = np.full(len(self.labels), UNKNOWN, dtype=np.int64)
            object.__setattr__(self, "attributes", unknown)

    def answers(self) -> npt.NDArray[np.int64]:
        """Give the most probable class of each example, (N,) int64."""
        answers: npt.NDArray[np.int64] = np.argmax(self.probabilities, axis=1)
        return answers

    def correct(self) -> npt.NDArray[np.bool_]:
        """Tell which answers are right, (N,) bool."""
        return np.equal(self.answers(), self.labels)
