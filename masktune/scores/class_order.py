"""Whether a model counts its classes in another order than the pictures do."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from masktune.scores.evidence import direction
from masktune.scores.flips import Change
from masktune.scores.predictions import Predictions

FEWEST = 20
"""Examples below which nothing is said about the order."""

LEAST = 0.05
"""Gain in accuracy below which nothing is said: a model may take two classes for each other."""

AMONG = 100
"""How many such questions together may give one false alarm in twenty: few files are in another
order, and of models that guess one in forty would look so."""


@dataclass(frozen=True, slots=True)
class OtherOrder:
    """An order of the classes in which a model does clearly better.

    Attributes:
        order: for each of the model's classes the class that it answers for, K numbers.
        change: accuracy as it is and in this order, on examples that the order was not found on.
    """

    order: tuple[int, ...]
    change: Change


def better_order(predictions: Predictions) -> OtherOrder | None:
    """Find an order of the classes in which a model does clearly better; None where there is none.

    The order is the one that is right most often on every other example (an assignment on the
    confusion matrix), and it is judged on the rest: found and judged on the same examples, the best
    of K! orders would look better by chance. Clear is a paired interval above 0 that holds for
    ``AMONG`` such questions together, and a gain of ``LEAST``. Of orders that are equally good the
    one nearest to the present counts.

    Args:
        predictions: of validation pictures; test pictures are not there to choose by.
    """
    answers, labels = predictions.answers(), predictions.labels
    if len(labels) < FEWEST:
        return None
    count = predictions.probabilities.shape[1]
    order = _best(answers[::2], labels[::2], count)
    if np.array_equal(order, np.arange(count)):
        return None
    rest = slice(1, None, 2)
    change = Change.of(answers[rest] == labels[rest], order[answers[rest]] == labels[rest])
    if direction(change.interval_among(AMONG)) != "up" or (change.change or 0.0) < LEAST:
        return None
    return OtherOrder(tuple(order.tolist()), change)


def _best(
    answers: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64]:
    """Return for each of ``count`` answers the label it is to stand for, each label once."""
    from scipy.optimize import linear_sum_assignment  # slow to import, and seldom needed

    confusion = np.zeros((count, count))
    np.add.at(confusion, (answers, labels), 1.0)
    # Among equals the order that is: far less than one example over all classes together.
    confusion += np.eye(count) / (2 * count)
    _, order = linear_sum_assignment(confusion, maximize=True)
    return np.asarray(order, dtype=np.int64)
