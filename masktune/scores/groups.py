"""Accuracy by group: who the model serves, and who it fails.

A group is a label with an attribute, numbered g = label * |A| + attribute. A ``*_score`` is an
accuracy, higher is better. A group without examples has no accuracy: None, never 0.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from masktune.data.card import UNKNOWN
from masktune.errors import DataError
from masktune.scores.json_types import as_json
from masktune.scores.predictions import Predictions

ANY = "any"
"""The attribute of every group when none is recorded: the groups are then the classes."""

Z_95 = 1.959963984540054
"""Standard normal quantile at 0.975: two-sided 95 %."""


def z_among(several: int) -> float:
    """Return the quantile for each of ``several`` intervals that hold together in 95 % of cases.

    Bonferroni: each one may miss in 5 % / ``several``.

    >>> z_among(1) == Z_95, round(z_among(10), 2)
    (True, 2.81)
    """
    return Z_95 if several == 1 else NormalDist().inv_cdf(1 - 0.025 / several)


@dataclass(frozen=True, slots=True)
class GroupScore:
    """How often the model is right about one group.

    Attributes:
        label: name of the class.
        attribute: name of the attribute, "any" when the dataset records none.
        count: examples in the group.
        accuracy: share answered right in [0, 1], None when the group is empty.
        interval: its 95 % Wilson interval, None when the group is empty.
    """

    label: str
    attribute: str
    count: int
    accuracy: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Summary:
    """Every accuracy of one model on one test set, with the three numbers papers call average.

    Attributes:
        average: right answers over examples of the test set, as MaskTune reports.
        train_weighted: group accuracies weighted by the training set's group sizes, as WILDS and
            Group DRO report on Waterbirds; None when those sizes are unknown.
        group_mean: plain mean of the group accuracies, SubpopBench's "adjusted accuracy".
        scores: every group, empty ones too, in group order; at least one has examples.
    """

    average: float
    train_weighted: float | None
    group_mean: float
    scores: tuple[GroupScore, ...]

    def __len__(self) -> int:
        """Count the examples."""
        return sum(score.count for score in self.scores)

    @property
    def worst(self) -> GroupScore:
        """The group served worst."""
        return worst_group(self.scores)

    @property
    def worst_is(self) -> Literal["group", "class"]:
        """What the groups are: classes when no attribute is recorded."""
        return "class" if all(score.attribute == ANY for score in self.scores) else "group"

    def to_json(self) -> dict[str, object]:
        """Give the summary as it stands in a result file; fractions in [0, 1]."""
        return {
            "average": self.average,
            "train_weighted": self.train_weighted,
            "group_mean": self.group_mean,
            "worst_group": self.worst.accuracy,
            "worst_name": group_name(self.worst),
            "worst_is": self.worst_is,
            "groups": as_json(self.scores),
        }


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which group each example belongs to.

    Attributes:
        ids: (N,) int64, g = label * |A| + attribute.
        classes: K names.
        attributes: |A| names; only "any" when none is recorded.
    """

    ids: npt.NDArray[np.int64]
    classes: tuple[str, ...]
    attributes: tuple[str, ...]

    def names(self) -> list[tuple[str, str]]:
        """Give label and attribute of every group, in group order."""
        return list(product(self.classes, self.attributes))

    def rows(
        self, *chosen: npt.NDArray[np.bool_]
    ) -> Iterator[tuple[tuple[str, str], tuple[int, ...]]]:
        """Give every group's names, and how many of it there are and of each ``chosen`` (N,)."""
        counts = (self.count(), *map(self.count, chosen))
        numbers = zip(*(each.tolist() for each in counts), strict=True)
        return zip(self.names(), numbers, strict=True)

    def count(self, chosen: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
        """Count the examples of every group, (K * |A|,) int64, or only the ``chosen`` (N,) ones."""
        ids = self.ids if chosen is None else self.ids[chosen]
        return np.bincount(ids, minlength=len(self.classes) * len(self.attributes))


def group_examples(
    predictions: Predictions,
    *,
    classes: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
) -> Grouping:
    """Sort the examples into groups.

    Args:
        predictions: N examples of K classes.
        classes: K class names by label; "0", "1", ... unless given.
        attributes: attribute names by number; "0", "1", ... when None or empty. Not looked at when
            the predictions carry no attribute.
    """
    class_count = predictions.probabilities.shape[1]
    if classes is None:
        classes = [str(number) for number in range(class_count)]
    if len(classes) != class_count:
        given = "1 class name is" if len(classes) == 1 else f"{len(classes)} class names are"
        raise DataError(
            f"{given} given, but the model tells {class_count} classes apart.",
            "Give one name for each class.",
        )
    if not attributes:
        largest = int(predictions.attributes.max(initial=UNKNOWN))
        attributes = [str(number) for number in range(largest + 1)]
    ids, known = _number_groups(
        predictions.labels,
        predictions.attributes,
        classes=class_count,
        attributes_count=len(attributes),
    )
    return Grouping(ids, tuple(classes), tuple(attributes) if known else (ANY,))


def group_counts(
    labels: npt.NDArray[np.int64],
    attributes: npt.NDArray[np.int64],
    *,
    classes: int,
    attributes_count: int,
) -> npt.NDArray[np.int64]:
    """Count the examples of every group, (K, |A|) int64; (K, 1) when no attribute is recorded.

    Labels are (N,) int64, 0 .. classes - 1; attributes 0 .. attributes_count - 1, or -1 everywhere.
    """
    ids, known = _number_groups(
        labels, attributes, classes=classes, attributes_count=attributes_count
    )
    columns = attributes_count if known else 1
    return np.bincount(ids, minlength=classes * columns).reshape(classes, columns)


def group_scores(
    predictions: Predictions,
    *,
    classes: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
) -> list[GroupScore]:
    """Score every group, in group order g = label * |A| + attribute.

    The authors' code numbers them 2 * attribute + label, which swaps the middle two; we follow
    Group DRO and WILDS. Without attributes the groups are the classes. Names are as for
    ``group_examples``.
    """
    grouping = group_examples(predictions, classes=classes, attributes=attributes)
    return [
        GroupScore(*names, count, right / count, wilson(right, count))
        if count
        else GroupScore(*names, 0, None, None)
        for names, (count, right) in grouping.rows(predictions.correct())
    ]


def worst_group(scores: Sequence[GroupScore]) -> GroupScore:
    """Find the group with the lowest accuracy; the first of several equal, never an empty one."""
    scored = [(score.accuracy, score) for score in scores if score.accuracy is not None]
    if not scored:
        raise DataError("No group has an example.", "Score a split that holds examples.")
    return min(scored, key=lambda pair: pair[0])[1]


class Named(Protocol):
    """What has the names of a group."""

    @property
    def label(self) -> str: ...  # noqa: D102
    @property
    def attribute(self) -> str: ...  # noqa: D102


def group_name(score: Named) -> str:
    """Name a group for people.

    >>> group_name(GroupScore("0–4", "square", 0, None, None))
    '0–4, square'
    >>> group_name(GroupScore("cow", "any", 0, None, None))
    'cow'
    """
    return score.label if score.attribute == ANY else f"{score.label}, {score.attribute}"


def summary(
    predictions: Predictions,
    *,
    classes: Sequence[str] | None,
    attributes: Sequence[str] | None,
    train_counts: npt.NDArray[np.int64],
) -> Summary:
    """Gather every accuracy of one model on one test set.

    Samples are counted, not batches: the authors' code averages batch accuracies, in which a short
    last batch weighs too much.

    Args:
        predictions: what the model says, at least one example.
        classes: as for ``group_examples``.
        attributes: likewise.
        train_counts: (K, |A|) training examples of every group; (K, 1) when the training set
            records no attribute. Weights are renormalised over the groups present in
            ``predictions``. When those have no training example, or have attributes that the
            training set does not, there is no train-weighted average.
    """
    grouping = group_examples(predictions, classes=classes, attributes=attributes)
    correct = predictions.correct()
    if not correct.size:
        raise DataError("There is no example to average over.", "Score a split with examples.")
    counts = grouping.count()
    present = counts > 0
    accuracies = grouping.count(correct)[present] / counts[present]
    weights = _weights(grouping, train_counts)[present]
    return Summary(
        average=float(correct.mean()),
        train_weighted=float(accuracies @ weights / weights.sum()) if weights.any() else None,
        group_mean=float(accuracies.mean()),
        scores=tuple(group_scores(predictions, classes=classes, attributes=attributes)),
    )


def wilson(right: int, count: int, *, z: float = Z_95) -> tuple[float, float]:
    """Give the Wilson score interval of ``right`` out of ``count``, within [0, 1]; 95 % by default.

    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    if not 0 <= right <= count or count == 0:
        raise DataError(f"{right} right out of {count} is no share.", "Count at least one example.")
    return _wilson_low(right, count, z), 1 - _wilson_low(count - right, count, z)


def _number_groups(
    labels: npt.NDArray[np.int64],
    attributes: npt.NDArray[np.int64],
    *,
    classes: int,
    attributes_count: int,
) -> tuple[npt.NDArray[np.int64], bool]:
    """Give the group of each example, (N,) int64, and whether attributes are recorded."""
    if len(labels) != len(attributes):
        raise DataError(
            f"There are {len(labels)} labels but {len(attributes)} attributes.",
            "Give one of each for every example.",
        )
    _check_range("label", labels, classes)
    if np.all(attributes == UNKNOWN):
        return labels, False
    _check_range("attribute", attributes, attributes_count)
    return labels * attributes_count + attributes, True


def _check_range(what: str, values: npt.NDArray[np.int64], count: int) -> None:
    outside = values[(values < 0) | (values >= count)]
    if outside.size:
        raise DataError(
            f"{outside.size} examples have a {what} outside 0 .. {count - 1}, such as "
            f"{outside[0]}.",
            f"Number every {what} from 0, in the order of the names.",
        )


def _wilson_low(right: int, count: int, z: float) -> float:
    # Exactly 0 when right is 0, because sqrt(z * z) is z in binary floating point. The upper bound
    # is taken from the other side for the same reason: it is then exactly 1 when all are right.
    squared = z * z
    spread = z * math.sqrt(right * (count - right) / count + squared / 4)
    return (right + squared / 2 - spread) / (count + squared)


def _weights(grouping: Grouping, train_counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Give the training examples of every group, (K * |A|,) int64; zeros when unknown."""
    wanted = (len(grouping.classes), len(grouping.attributes))
    if train_counts.shape == wanted:
        return train_counts.ravel()
    if train_counts.ndim == 2 and len(train_counts) == wanted[0]:
        if grouping.attributes == (ANY,):
            of_class: npt.NDArray[np.int64] = train_counts.sum(axis=1)
            return of_class
        if train_counts.shape[1] == 1:
            return np.zeros(math.prod(wanted), dtype=np.int64)
    raise DataError(
        f"Training counts of shape {train_counts.shape} do not fit groups of shape {wanted}.",
        "Count the training groups with the classes and attributes of the same dataset.",
    )
