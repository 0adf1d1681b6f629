"""A metric is an entry: its key is that of result.json, and it has all that a card needs."""

import numpy as np
import pytest

from masktune.scores.evidence import weigh
from masktune.scores.groups import group_counts, summary, wilson
from masktune.scores.metrics import METRICS
from masktune.scores.predictions import Predictions
from masktune.show.wording import metric_note, metric_title

LABELS = np.array([0] * 100 + [1] * 100)


def said(right, *, attributes=None):
    """The first so many of each class are right."""
    correct = np.concatenate([np.arange(100) < right[0], np.arange(100) < right[1]])
    return Predictions(np.eye(2)[np.where(correct, LABELS, 1 - LABELS)], LABELS, attributes)


def scores(predictions, *, attributes=None):
    counts = group_counts(predictions.labels, predictions.attributes, classes=2, attributes_count=2)
    return summary(
        predictions, classes=("cow", "camel"), attributes=attributes, train_counts=counts
    )


def test_the_keys_are_those_of_the_result_file():
    found = scores(said((90, 40)))

    document = found.to_json()

    assert {metric.key: metric.of(found) for metric in METRICS} == {
        key: document[key] for key in ("worst_group", "average", "train_weighted", "group_mean")
    }


def test_without_attributes_the_worst_class_stands_in_and_every_note_says_n():
    found = scores(said((90, 40)))

    assert [metric_title(metric, found) for metric in METRICS] == [
        "Worst class (stands in for the worst group)",
        "Test average",
        "Train-weighted average",
        "Group mean",
    ]
    assert [metric_note(metric, found) for metric in METRICS] == [
        "95% interval 30.9 to 49.8%, n = 100",
        "95% interval 58.2 to 71.3%, n = 200",
        "2 classes weighted by their training pictures, n = 200",
        "plain mean over 2 classes, n = 200",
    ]
    assert METRICS[1].interval(found) == wilson(130, 200)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((90, 40), (90, 80), ["up", "up", "unclear", "up"]),
        ((90, 80), (90, 40), ["down", "down", "unclear", "down"]),
        ((90, 80), (88, 81), ["unclear"] * 4),
    ],
)
def test_a_metric_has_colour_only_by_evidence(before, after, expected):
    found = weigh(said(before), said(after))

    assert [metric.clear(found) for metric in METRICS] == expected
