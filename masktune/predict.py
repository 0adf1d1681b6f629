"""Run a model over a split once; every number later is a function of the result."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says about every example of a split, in the split's order.

    Attributes:
        probabilities: (N, K) float32, rows sum to 1.
        labels: (N,) int64, 0 .. K-1.
        attributes: (N,) int64, -1 everywhere when the dataset records none.
    """

    probabilities: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.int64]

    def answers(self) -> npt.NDArray[np.int64]:
        """Give the most probable class of each example, (N,) int64."""
        return self.probabilities.argmax(axis=1)

    def correct(self) -> npt.NDArray[np.bool_]:
        """Tell which answers are right, (N,) bool."""
        return self.answers() == self.labels
