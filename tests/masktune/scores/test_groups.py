import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from masktune.errors import MaskTuneError
from masktune.scores.groups import (
    GroupScore,
    group_counts,
    group_name,
    group_scores,
    summary,
    wilson,
    worst_group,
)
from masktune.scores.predictions import Predictions

BIRDS = ("landbird", "waterbird")
PLACES = ("land", "water")


def predictions(*, labels, answers, attributes=None, classes=2):
    probabilities = np.full((len(labels), classes), 0.1, dtype=np.float32)
    probabilities[np.arange(len(labels)), np.array(answers, dtype=np.int64)] = 0.9
    return Predictions(
        probabilities / probabilities.sum(axis=1, keepdims=True),
        np.array(labels, dtype=np.int64),
        np.array([-1] * len(labels) if attributes is None else attributes, dtype=np.int64),
    )


def averages(found, *, train_counts):
    columns = train_counts.shape[1] if train_counts.ndim == 2 else 0
    names = [str(number) for number in range(columns)] if columns > 1 else None
    return summary(found, classes=None, attributes=names, train_counts=train_counts)


def birds():
    """Landbirds: 2 of 2 right on land, 1 of 2 on water. Waterbirds: 1 of 4 on land, none on water.

    The order is shuffled so that nothing can lean on it.
    """
    return predictions(
        labels=[1, 0, 1, 0, 1, 0, 1, 0],
        attributes=[0, 1, 0, 0, 0, 1, 0, 0],
        answers=[0, 0, 1, 0, 0, 1, 0, 0],
    )


def test_groups_come_label_first_with_their_names_counts_and_accuracies():
    scores = group_scores(birds(), classes=BIRDS, attributes=PLACES)

    assert [(s.label, s.attribute, s.count, s.accuracy) for s in scores] == [
        ("landbird", "land", 2, 1.0),
        ("landbird", "water", 2, 0.5),
        ("waterbird", "land", 4, 0.25),
        ("waterbird", "water", 0, None),
    ]


def test_an_empty_group_has_no_accuracy_and_no_interval():
    empty = group_scores(birds(), attributes=PLACES)[3]

    assert (empty.count, empty.accuracy, empty.interval) == (0, None, None)


def test_every_accuracy_carries_its_wilson_interval():
    scores = group_scores(birds(), attributes=PLACES)

    assert scores[2].interval == wilson(1, 4)


def test_class_names_default_to_numbers():
    scores = group_scores(predictions(labels=[0, 1, 2], answers=[0, 1, 2], classes=3))

    assert [s.label for s in scores] == ["0", "1", "2"]


@pytest.mark.parametrize("attributes", [(), (None,), ([],)], ids=["left out", "None", "empty"])
def test_predictions_without_attributes_are_scored_by_class(attributes):
    said = Predictions(np.eye(2)[[0, 1, 0]], np.array([0, 1, 1]), *attributes)

    scores = group_scores(said, classes=("cow", "camel"), attributes=("grass", "sand"))

    assert [(s.label, s.attribute, s.count, s.accuracy) for s in scores] == [
        ("cow", "any", 1, 1.0),
        ("camel", "any", 2, 0.5),
    ]
    assert said.attributes.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("attributes", [None, ()])
def test_attributes_without_names_are_numbered(attributes):
    scores = group_scores(
        predictions(labels=[1], answers=[1], attributes=[1]), attributes=attributes
    )

    assert [(s.label, s.attribute) for s in scores] == [
        ("0", "0"),
        ("0", "1"),
        ("1", "0"),
        ("1", "1"),
    ]


@pytest.mark.parametrize("attributes", [None, (), PLACES])
def test_without_attributes_the_groups_are_the_classes(attributes):
    scores = group_scores(
        predictions(labels=[0, 0, 1], answers=[0, 1, 1]), classes=BIRDS, attributes=attributes
    )

    assert [(s.label, s.attribute, s.count, s.accuracy) for s in scores] == [
        ("landbird", "any", 2, 0.5),
        ("waterbird", "any", 1, 1.0),
    ]


def test_the_worst_group_is_the_lowest_that_has_examples():
    worst = worst_group(group_scores(birds(), classes=BIRDS, attributes=PLACES))

    assert (worst.label, worst.attribute, worst.accuracy) == ("waterbird", "land", 0.25)


def test_a_group_that_is_always_wrong_is_worse_than_any_other():
    scores = [
        GroupScore("a", "any", 5, 0.2, wilson(1, 5)),
        GroupScore("b", "any", 5, 0.0, wilson(0, 5)),
    ]

    assert worst_group(scores).label == "b"


def test_no_group_is_worst_when_all_are_empty():
    nothing = predictions(labels=[], answers=[])

    with pytest.raises(MaskTuneError, match="No group has an example"):
        worst_group(group_scores(nothing))


@pytest.mark.parametrize(
    ("attribute", "name"), [("square", "0–4, square"), ("any", "0–4")], ids=["group", "class"]
)
def test_a_group_is_named_by_its_class_and_its_attribute_if_it_has_one(attribute, name):
    assert group_name(GroupScore("0–4", attribute, 0, None, None)) == name


# The bounds are solutions of (p - right/n)^2 = z^2 p (1 - p) / n.
@pytest.mark.parametrize(("right", "count"), [(1, 4), (8, 10), (133, 180), (99_999, 100_000)])
def test_the_wilson_bounds_lie_exactly_z_standard_errors_away(right, count):
    for bound in wilson(right, count):
        distance = abs(bound - right / count)

        assert distance / math.sqrt(bound * (1 - bound) / count) == pytest.approx(1.959964, 1e-6)


@given(st.integers(1, 10_000), st.data())
def test_the_wilson_interval_holds_the_share_and_stays_between_0_and_1(count, data):
    right = data.draw(st.integers(0, count))

    low, high = wilson(right, count)

    assert 0 <= low <= right / count <= high <= 1
    assert (low == 0) == (right == 0)
    assert (high == 1) == (right == count)
    assert high - low > 0


@pytest.mark.parametrize(("right", "count"), [(0, 0), (3, 2), (-1, 2)])
def test_a_share_that_cannot_be_is_refused(right, count):
    with pytest.raises(MaskTuneError, match=f"{right} right out of {count}"):
        wilson(right, count)


def test_the_three_averages_differ_and_are_what_their_names_say():
    # Accuracies 1, 1/2, 1/4 and none; sizes here 2, 2, 4, 0; in training 60, 20, 20, 100.
    found = averages(birds(), train_counts=np.array([[60, 20], [20, 100]]))

    assert found.average == pytest.approx(4 / 8)
    assert found.train_weighted == pytest.approx((60 * 1 + 20 * 0.5 + 20 * 0.25) / 100)
    assert found.group_mean == pytest.approx((1 + 0.5 + 0.25) / 3)


def test_groups_that_were_never_trained_on_have_no_train_weighted_average():
    found = averages(birds(), train_counts=np.array([[0, 0], [0, 100]]))

    assert found.train_weighted is None
    assert found.average == 0.5


def test_training_counts_by_class_do_not_weigh_groups():
    found = averages(birds(), train_counts=np.array([[70], [30]]))

    assert (found.average, found.train_weighted) == (0.5, None)
    assert found.group_mean == pytest.approx(7 / 12)


@pytest.mark.parametrize("train_counts", [[[30], [10]], [[20, 10], [3, 7]]])
def test_without_attributes_the_classes_are_weighted_by_their_training_size(train_counts):
    found = averages(
        predictions(labels=[0, 0, 1], answers=[0, 1, 1]), train_counts=np.array(train_counts)
    )

    assert found.train_weighted == pytest.approx((30 * 0.5 + 10 * 1) / 40)


@pytest.mark.parametrize(
    "train_counts", [[[1, 2]], [1, 2], [[1, 2], [3, 4], [5, 6]], [[1], [2], [3]]]
)
@pytest.mark.parametrize("attributes", [[0, 1], [-1, -1]], ids=["groups", "classes"])
def test_training_counts_of_another_dataset_are_refused(train_counts, attributes):
    found = predictions(labels=[0, 1], answers=[0, 1], attributes=attributes)

    with pytest.raises(MaskTuneError, match="do not fit groups of shape"):
        averages(found, train_counts=np.array(train_counts))


def test_an_attribute_that_training_cannot_have_is_refused():
    third = predictions(labels=[0, 1], answers=[0, 1], attributes=[0, 2])

    with pytest.raises(MaskTuneError, match=r"attribute outside 0 \.\. 1, such as 2"):
        averages(third, train_counts=np.array([[1, 1], [1, 1]]))


def test_nothing_has_no_average():
    with pytest.raises(MaskTuneError, match="no example to average"):
        averages(predictions(labels=[], answers=[]), train_counts=np.array([[1], [1]]))


def test_training_weights_taken_from_the_test_set_give_the_test_average():
    counts = group_counts(birds().labels, birds().attributes, classes=2, attributes_count=2)

    found = averages(birds(), train_counts=counts)

    assert found.train_weighted == pytest.approx(found.average)


def test_counts_are_laid_out_label_by_attribute():
    labels, attributes = np.array([0, 1, 1, 1, 0]), np.array([2, 0, 2, 2, 2])

    counts = group_counts(labels, attributes, classes=2, attributes_count=3)

    assert counts.tolist() == [[0, 0, 2], [1, 0, 2]]
    assert counts.dtype == np.int64


@pytest.mark.parametrize("attributes_count", [0, 3])
def test_counts_without_attributes_have_one_column(attributes_count):
    labels = np.array([0, 2, 2])

    counts = group_counts(labels, np.full(3, -1), classes=4, attributes_count=attributes_count)

    assert counts.tolist() == [[1], [0], [2], [0]]


@pytest.mark.parametrize(
    ("labels", "attributes", "problem"),
    [
        ([0, 2], [0, 0], r"1 examples have a label outside 0 \.\. 1, such as 2"),
        ([0, -1], [0, 0], r"label outside 0 \.\. 1, such as -1"),
        ([0, 1], [0, 2], r"attribute outside 0 \.\. 1, such as 2"),
        ([0, 1], [0, -1], r"attribute outside 0 \.\. 1, such as -1"),
        ([0, 1], [0], "2 labels but 1 attributes"),
    ],
)
def test_examples_that_fit_no_group_are_refused(labels, attributes, problem):
    with pytest.raises(MaskTuneError, match=problem):
        group_counts(np.array(labels), np.array(attributes), classes=2, attributes_count=2)


def test_a_wrong_number_of_class_names_is_refused():
    with pytest.raises(MaskTuneError, match="3 class names are given, but the model tells 2"):
        group_scores(birds(), classes=("a", "b", "c"))


def test_the_summary_is_the_result_file_object_and_survives_json():
    found = summary(
        birds(), classes=BIRDS, attributes=PLACES, train_counts=np.array([[60, 20], [20, 0]])
    ).to_json()

    assert json.loads(json.dumps(found, allow_nan=False)) == found
    groups = found.pop("groups")
    assert found == {
        "average": 0.5,
        "train_weighted": pytest.approx(0.75),
        "group_mean": pytest.approx(7 / 12),
        "worst_group": 0.25,
        "worst_name": "waterbird, land",
        "worst_is": "group",
    }
    assert len(groups) == 4
    assert groups[2] == {
        "label": "waterbird",
        "attribute": "land",
        "count": 4,
        "accuracy": 0.25,
        "interval": list(wilson(1, 4)),
    }
    assert groups[3] == {
        "label": "waterbird",
        "attribute": "water",
        "count": 0,
        "accuracy": None,
        "interval": None,
    }


def test_the_summary_says_when_the_worst_class_stands_in_for_the_worst_group():
    found = summary(
        predictions(labels=[0, 0, 1], answers=[0, 1, 1]),
        classes=BIRDS,
        attributes=(),
        train_counts=np.array([[3], [1]]),
    ).to_json()

    assert (found["worst_is"], found["worst_name"]) == ("class", "landbird")
    assert found["train_weighted"] == pytest.approx(0.625)


def test_attributes_known_only_in_the_test_set_leave_no_train_weighted_average():
    found = summary(birds(), classes=BIRDS, attributes=PLACES, train_counts=np.array([[70], [30]]))

    assert found.train_weighted is None
    assert found.worst_is == "group"


@st.composite
def scored_groups(draw):
    count = draw(st.integers(1, 40))
    row = st.lists(st.integers(0, 2), min_size=count, max_size=count)
    return draw(row), draw(row), draw(row), draw(st.permutations([0, 1, 2]))


@given(scored_groups())
def test_relabelling_the_attributes_permutes_the_scores_and_keeps_every_average(case):
    labels, attributes, answers, renamed = case
    names = ("a", "b", "c")
    moved_names = tuple(names[renamed.index(position)] for position in range(3))
    weights = np.arange(1, 10).reshape(3, 3)
    moved_weights = weights[:, [renamed.index(position) for position in range(3)]]

    one = predictions(labels=labels, answers=answers, attributes=attributes, classes=3)
    other = predictions(
        labels=labels,
        answers=answers,
        attributes=[renamed[attribute] for attribute in attributes],
        classes=3,
    )
    scores = group_scores(one, attributes=names)
    moved = group_scores(other, attributes=moved_names)

    assert {(s.label, s.attribute): s for s in scores} == {(s.label, s.attribute): s for s in moved}
    assert worst_group(scores).accuracy == worst_group(moved).accuracy
    before, after = (
        averages(one, train_counts=weights),
        averages(other, train_counts=moved_weights),
    )
    assert before.train_weighted == pytest.approx(after.train_weighted)
    assert before.group_mean == pytest.approx(after.group_mean)


@given(scored_groups())
def test_scores_agree_with_counting_one_example_at_a_time(case):
    labels, attributes, answers, _ = case
    scores = group_scores(
        predictions(labels=labels, answers=answers, attributes=attributes, classes=3),
        attributes=("a", "b", "c"),
    )

    for number, score in enumerate(scores):
        members = [
            label == answer
            for label, attribute, answer in zip(labels, attributes, answers, strict=True)
            if label * 3 + attribute == number
        ]
        assert score.count == len(members)
        assert score.accuracy == (sum(members) / len(members) if members else None)
