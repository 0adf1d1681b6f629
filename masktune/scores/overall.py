"""How well a model does on all pictures of a split together."""

from dataclasses import dataclass

import numpy as np

from masktune.scores.groups import wilson
from masktune.scores.predictions import Predictions


@dataclass(frozen=True, slots=True)
class Overall:
    """Right answers and loss over all examples, at least one.

    Attributes:
        count: examples.
        right: of them answered right.
        loss: mean cross entropy in nats, of the labels as they are; ln K is what guessing gives.
    """

    count: int
    right: int
    loss: float

    @property
    def accuracy(self) -> float:
        """Share answered right, in [0, 1]."""
        return self.right / self.count

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % Wilson interval."""
        return wilson(self.right, self.count)


def overall(predictions: Predictions) -> Overall:
    """Sum up what a model said about a split.

    A label that was given no probability at all, below 2e-308, counts as given so much: one
    picture alone would else make the loss infinite.

    >>> said = Predictions(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([0, 0]))
    >>> summed = overall(said)
    >>> summed.right, round(summed.loss, 3)  # (ln 2 + ln 4) / 2
    (1, 1.04)
    """
    given = predictions.probabilities[np.arange(len(predictions.labels)), predictions.labels]
    losses = -np.log(np.maximum(given, np.finfo(np.float64).tiny))
    return Overall(
        count=len(predictions.labels),
        right=int(predictions.correct().sum()),
        loss=float(losses.mean()),
    )
