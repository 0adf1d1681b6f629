import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from masktune.errors import MaskTuneError
from masktune.scores.evidence import weigh
from masktune.scores.flips import (
    Change,
    answer_changes,
    class_changes,
    group_flips,
    paired_interval,
)
from masktune.scores.predictions import Predictions

LABELS = [0, 0, 0, 0, 1, 1, 1, 1]
ATTRIBUTES = [0, 0, 1, 1, 0, 0, 1, 1]
BEFORE = [0, 0, 1, 1, 1, 1, 1, 0]  # right: 0 1 . . 4 5 6 .
AFTER = [0, 1, 0, 0, 1, 1, 0, 0]  # right: 0 . 2 3 4 5 . .


def predictions(answers, *, labels=LABELS, attributes=ATTRIBUTES, classes=2):
    return Predictions(
        np.eye(classes, dtype=np.float32)[np.array(answers, dtype=np.int64)],
        np.array(labels, dtype=np.int64),
        np.array(attributes, dtype=np.int64),
    )


def test_answers_are_fixed_or_broken_where_they_changed_between_right_and_wrong():
    found = answer_changes(predictions(BEFORE), predictions(AFTER))

    assert [n for n, change in enumerate(found) if change == "fixed"] == [2, 3]
    assert [n for n, change in enumerate(found) if change == "broken"] == [1, 6]


def test_a_change_over_all_examples_is_the_sum_of_its_groups():
    before, after = predictions(BEFORE), predictions(AFTER)

    found = Change.of(before.correct(), after.correct())

    assert (found.label, found.count, found.right_before) == ("all", 8, 5)
    assert (found.fixed, found.broken) == (2, 2)
    assert found == weigh(before, after).overall


def test_an_answer_that_moves_from_wrong_to_wrong_is_no_flip():
    before = predictions([1], labels=[0], attributes=[-1], classes=3)
    after = predictions([2], labels=[0], attributes=[-1], classes=3)

    assert answer_changes(before, after) == ["still wrong"]


def test_flips_are_counted_by_group_in_group_order():
    found = group_flips(
        predictions(BEFORE), predictions(AFTER), classes=("cow", "camel"), attributes=("g", "s")
    )

    assert [(f.label, f.attribute, f.count, f.fixed, f.broken) for f in found] == [
        ("cow", "g", 2, 0, 1),
        ("cow", "s", 2, 2, 0),
        ("camel", "g", 2, 0, 0),
        ("camel", "s", 2, 0, 1),
    ]


def test_class_changes_give_both_accuracies_and_their_difference():
    cow, camel = class_changes(predictions(BEFORE), predictions(AFTER), classes=("cow", "camel"))

    assert (cow.label, cow.count, cow.fixed, cow.broken) == ("cow", 4, 2, 1)
    assert (cow.before, cow.after, cow.change) == (0.5, 0.75, 0.25)
    assert (camel.label, camel.count, camel.fixed, camel.broken) == ("camel", 4, 0, 1)
    assert (camel.before, camel.after, camel.change) == (0.75, 0.5, -0.25)
    assert cow.interval == paired_interval(both=1, fixed=2, broken=1, neither=0)
    assert camel.interval == paired_interval(both=2, fixed=0, broken=1, neither=1)


def test_a_class_without_examples_has_no_change():
    labels = [0, 0]
    empty = class_changes(
        predictions([0, 1], labels=labels, attributes=[-1, -1]),
        predictions([0, 0], labels=labels, attributes=[-1, -1]),
    )[1]

    assert (empty.label, empty.count, empty.fixed, empty.broken) == ("1", 0, 0, 0)
    assert (empty.before, empty.after, empty.change, empty.interval) == (None,) * 4


def test_the_overall_change_is_over_all_examples():
    found = weigh(predictions(BEFORE), predictions(AFTER)).overall

    assert (found.label, found.count, found.fixed, found.broken) == ("all", 8, 2, 2)
    assert (found.before, found.after, found.change) == (0.625, 0.625, 0.0)


@pytest.mark.parametrize(
    ("table", "interval"),
    [
        # Altman et al., Statistics with Confidence, 2000, table 6.2.
        ({"both": 14, "fixed": 5, "broken": 0, "neither": 22}, (0.011, 0.226)),
        # Bentur et al., 2009, in Fagerland et al., Statistical Analysis of Contingency Tables.
        ({"both": 1, "fixed": 1, "broken": 7, "neither": 12}, (-0.507, -0.026)),
    ],
)
def test_the_interval_agrees_with_published_examples(table, interval):
    assert paired_interval(**table) == pytest.approx(interval, abs=5e-4)


def test_the_interval_of_an_anticorrelated_pair_is_not_corrected_for_continuity():
    # All four right once: p = q = 1/2, phi = -1, so the half width is the sum of the two Wilson
    # half widths, each 1/2 * z / sqrt(4 + z^2).
    z = 1.959963984540054

    low, high = paired_interval(both=0, fixed=2, broken=2, neither=0)

    assert high == pytest.approx(z / math.sqrt(4 + z * z))
    assert low == pytest.approx(-high)


def test_nothing_flipped_still_leaves_room_for_change_and_less_with_more_examples():
    few = paired_interval(both=4, fixed=0, broken=0, neither=0)
    many = paired_interval(both=400, fixed=0, broken=0, neither=0)

    assert few[0] < -0.4
    assert few[0] < many[0] < 0 < many[1] < few[1]


table_counts = st.fixed_dictionaries(
    {key: st.integers(0, 60) for key in ("both", "fixed", "broken", "neither")}
).filter(lambda table: sum(table.values()) > 0)


@given(table_counts)
def test_the_interval_holds_the_change_and_turns_over_with_it(table):
    low, high = paired_interval(**table)
    turned = paired_interval(
        both=table["both"],
        fixed=table["broken"],
        broken=table["fixed"],
        neither=table["neither"],
    )

    change = (table["fixed"] - table["broken"]) / sum(table.values())
    assert -1 - 1e-12 <= low <= change + 1e-12
    assert change - 1e-12 <= high <= 1 + 1e-12
    assert turned == pytest.approx((-high, -low))


def test_the_interval_covers_the_truth_about_95_times_in_100():
    generator = np.random.default_rng(0)
    shares = [0.6, 0.2, 0.05, 0.15]  # both, fixed, broken, neither: a true change of 0.15
    tables = generator.multinomial(60, shares, size=2000)

    covered = 0
    for both, fixed, broken, neither in tables.tolist():
        low, high = paired_interval(both=both, fixed=fixed, broken=broken, neither=neither)
        covered += low <= 0.15 <= high

    assert 0.93 <= covered / 2000 <= 0.975


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"answers": AFTER[:7], "labels": LABELS[:7], "attributes": ATTRIBUTES[:7]}, r"\(7, 2\)"),
        ({"answers": AFTER, "classes": 3}, r"\(8, 3\)"),
        ({"answers": AFTER, "labels": LABELS[::-1]}, "labels differ"),
        ({"answers": AFTER, "attributes": [-1] * 8}, "attributes differ"),
    ],
    ids=["count", "classes", "labels", "attributes"],
)
@pytest.mark.parametrize("compare", [answer_changes, group_flips, class_changes])
def test_models_asked_about_other_examples_cannot_be_compared(compare, other, problem):
    after = predictions(**other)

    with pytest.raises(MaskTuneError, match=f"same examples.*{problem}"):
        compare(predictions(BEFORE), after)


answer_pairs = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)),
    min_size=1,
    max_size=40,
)


@given(answer_pairs)
def test_the_change_in_accuracy_is_what_was_fixed_less_what_was_broken(rows):
    labels, before, after, attributes = (list(column) for column in zip(*rows, strict=True))
    one = predictions(before, labels=labels, attributes=attributes, classes=3)
    other = predictions(after, labels=labels, attributes=attributes, classes=3)

    found = answer_changes(one, other)
    fixed, broken = found.count("fixed"), found.count("broken")
    groups = group_flips(one, other)
    changes = class_changes(one, other)

    gain = int(other.correct().sum()) - int(one.correct().sum())
    assert fixed - broken == gain
    assert sum(g.fixed for g in groups) == fixed == sum(c.fixed for c in changes)
    assert sum(g.broken for g in groups) == broken == sum(c.broken for c in changes)
    assert sum(g.count for g in groups) == len(rows) == sum(c.count for c in changes)
    assert sum(c.change * c.count for c in changes if c.count) == pytest.approx(gain)
