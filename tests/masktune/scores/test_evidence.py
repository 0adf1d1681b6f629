"""When a difference is called one: by its own interval, and the same way round whoever is first."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masktune.scores.evidence import (
    compare_areas,
    compare_risks,
    direction,
    judge,
    student_interval,
    tells_apart,
    unpaired_interval,
    weigh,
    weigh_scores,
)
from masktune.scores.flips import Change
from masktune.scores.groups import GroupScore, Summary
from masktune.scores.predictions import Predictions
from masktune.scores.result import FlipCounts, SplitResult
from masktune.scores.selective import Ranked, at_threshold, risk_coverage

TURNED = {
    "helped": "harmed",
    "harmed": "helped",
    "mixed": "mixed",
    "no clear change": "no clear change",
    "no change": "no change",
    "up": "down",
    "down": "up",
    "unclear": "unclear",
}


def said(right, *, labels=None, attributes=None):
    """Answers of which those given are right; label 0 and no attribute unless told."""
    right = np.asarray(right, dtype=bool)
    labels = np.zeros(len(right), dtype=np.int64) if labels is None else np.asarray(labels)
    attributes = np.full(len(right), -1) if attributes is None else np.asarray(attributes)
    answers = np.where(right, labels, 1 - labels)
    return Predictions(np.eye(2)[answers], labels, attributes)


def group(label, *, count, right_before, fixed, broken, attribute="any"):
    return Change(
        label,
        attribute=attribute,
        count=count,
        right_before=right_before,
        fixed=fixed,
        broken=broken,
    )


def test_43_broken_and_2_fixed_of_240_is_harm():
    # CIFAR's cats: 171 right before, 130 after.
    found = judge([group("cat", count=240, right_before=171, fixed=2, broken=43)])

    assert found.verdict == "harmed"
    assert [change.label for change in found.lost] == ["cat"]


def test_a_class_of_511_pictures_that_loses_7_points_is_harmed_whatever_the_other_class_does():
    # Digits at k = 0. Wilson intervals of 93.0 % and 86.0 % are not asked whether they overlap.
    lost = group("5–9", count=511, right_before=475, fixed=6, broken=42)
    still = group("0–4", count=489, right_before=470, fixed=6, broken=3)
    better = group("0–4", count=489, right_before=400, fixed=60, broken=3)

    assert judge([still, lost]).verdict == "harmed"
    assert judge([better, lost]).verdict == "mixed"
    assert judge([better, lost]).lost == (lost,)


def test_a_group_that_lost_is_named_though_another_one_is_the_worst():
    # Stamped cows: the worst group gains while "camel, no stamp" falls from 100 to 71 of 100.
    groups = [
        group("cow", attribute="stamp", count=100, right_before=42, fixed=50, broken=1),
        group("camel", attribute="no stamp", count=100, right_before=100, fixed=0, broken=29),
        group("camel", attribute="stamp", count=100, right_before=99, fixed=1, broken=0),
    ]

    found = judge(groups)

    assert found.verdict == "mixed"
    assert [change.label for change in found.gained] == ["cow"]
    assert [change.attribute for change in found.lost] == ["no stamp"]
    assert found.worst == "up"


def test_the_largest_loss_and_the_largest_gain_come_first():
    groups = [
        group("a", count=100, right_before=90, fixed=0, broken=20),
        group("b", count=100, right_before=90, fixed=0, broken=40),
        group("c", count=100, right_before=10, fixed=20, broken=0),
        group("d", count=100, right_before=10, fixed=60, broken=0),
    ]

    found = judge(groups)

    assert [change.label for change in found.lost] == ["b", "a"]
    assert [change.label for change in found.gained] == ["d", "c"]


def test_of_many_groups_one_that_chance_explains_is_not_called_harmed():
    # 6 broken of 100, none fixed: alone its interval is below 0, as one of forty it is not.
    unlucky = group("a", count=100, right_before=90, fixed=0, broken=6)
    others = [group(str(n), count=100, right_before=90, fixed=3, broken=3) for n in range(39)]

    assert unlucky.interval[1] < 0
    assert judge([unlucky]).verdict == "harmed"
    assert judge([unlucky, *others]).verdict == "no clear change"
    assert judge([unlucky, *others]).worst == "unclear"


def test_many_small_losses_add_up_to_harm_though_no_class_shows_it():
    classes = [group(str(n), count=10, right_before=10, fixed=0, broken=1) for n in range(100)]

    found = judge(classes)

    assert found.lost == ()
    assert (found.overall.fixed, found.overall.broken, found.overall.count) == (0, 100, 1000)
    assert found.verdict == "harmed"
    assert found.group_mean == "down"


def test_the_worst_group_is_judged_by_the_group_that_moved_it():
    # The lowest accuracy falls from 50 (a) to 20 (b): b must have lost for that.
    a = group("a", count=100, right_before=50, fixed=0, broken=0)
    b = group("b", count=100, right_before=90, fixed=0, broken=70)

    found = judge([a, b])

    assert (found.worst_before, found.worst_after) == (a, b)
    assert found.worst == "down"


def test_the_group_mean_weighs_a_small_group_as_much_as_a_large_one():
    # 1 of 1,000 lost in the large group, all 20 gained in the small one.
    large = group("a", count=1000, right_before=900, fixed=0, broken=60)
    small = group("b", count=20, right_before=0, fixed=20, broken=0)

    found = judge([large, small])

    assert direction(found.overall.interval) == "down"
    assert found.group_mean == "up"


group_counts = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)),
    min_size=1,
    max_size=5,
).filter(lambda rows: any(sum(row) for row in rows))


@given(group_counts)
def test_swapping_before_and_after_swaps_the_words(rows):
    def evidence(*, turned):
        return judge(
            [
                group(
                    str(name),
                    count=both + fixed + broken + neither,
                    right_before=both + (fixed if turned else broken),
                    fixed=broken if turned else fixed,
                    broken=fixed if turned else broken,
                )
                for name, (both, fixed, broken, neither) in enumerate(rows)
            ]
        )

    one, other = evidence(turned=False), evidence(turned=True)

    assert other.verdict == TURNED[one.verdict]
    assert {c.label for c in other.lost} == {c.label for c in one.gained}
    assert {c.label for c in other.gained} == {c.label for c in one.lost}
    assert other.group_mean == TURNED[one.group_mean]
    assert other.worst_before.before == one.worst_after.after


answers = st.lists(
    st.tuples(st.booleans(), st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60
)


@given(answers)
def test_identical_predictions_give_no_change(rows):
    right, labels, attributes = (list(column) for column in zip(*rows, strict=True))
    model = said(right, labels=labels, attributes=attributes)

    found = weigh(model, model)

    assert found.verdict == "no change"
    assert (found.gained, found.lost, found.worst, found.group_mean) == (
        (),
        (),
        "unclear",
        "unclear",
    )


def a_result(evidence, *, with_groups=True):
    scores = tuple(
        GroupScore(g.label, g.attribute, g.count, g.before, None) for g in evidence.groups
    )
    before = Summary(0.0, None, 0.0, scores)
    groups = tuple(FlipCounts(fixed=g.fixed, broken=g.broken) for g in evidence.groups)
    flips = FlipCounts(fixed=1, broken=0, groups=groups if with_groups else ())
    return SplitResult(name="desert", before=before, after=before, flips=flips)


@given(answers, st.lists(st.booleans(), min_size=60, max_size=60))
def test_the_result_file_alone_gives_the_same_evidence(rows, after):
    right, labels, attributes = (list(column) for column in zip(*rows, strict=True))
    found = weigh(
        said(right, labels=labels, attributes=attributes),
        said(after[: len(right)], labels=labels, attributes=attributes),
    )

    assert a_result(found).evidence == found


def test_a_result_file_without_flips_by_group_is_not_guessed_from():
    found = judge([group("cat", count=240, right_before=171, fixed=2, broken=43)])

    assert a_result(found, with_groups=False).evidence is None


def test_over_seeds_a_mean_difference_is_clear_when_students_interval_leaves_out_0():
    assert direction(student_interval([0.05, 0.06, 0.07])) == "up"
    assert direction(student_interval([-0.05, -0.06, -0.07])) == "down"
    assert direction(student_interval([0.20, 0.01, -0.02])) == "unclear"
    assert direction(student_interval([0.2])) == "unclear"


def ranked(count, *, error, sharpness, seed):
    """Answers whose mistakes tend to have low scores, the more so the sharper."""
    generator = np.random.default_rng(seed)
    correct = generator.random(count) > error
    return Ranked(generator.random(count) + sharpness * correct, correct)


def test_areas_that_resamples_cannot_tell_apart_are_no_clear_difference():
    # As on the digits, where 0.0429 against 0.0456 was called safer: two readings of one score.
    generator = np.random.default_rng(0)
    correct = generator.random(1000) > 0.12
    score = generator.random(1000) + 0.45 * correct
    one = Ranked(score + 0.05 * generator.random(1000), correct)
    other = Ranked(score + 0.05 * generator.random(1000), correct)

    found = compare_areas(one, other)

    assert abs(found.value) < 0.003
    assert found.direction == "unclear"


def test_a_score_that_ranks_the_same_answers_at_random_is_clearly_less_safe():
    sharp = ranked(500, error=0.2, sharpness=0.8, seed=1)
    blunt = Ranked(np.random.default_rng(2).random(500), sharp.correct)

    found = compare_areas(sharp, blunt)

    assert found.value == risk_coverage(blunt).aurc - risk_coverage(sharp).aurc > 0.1
    assert found.interval[0] < found.value < found.interval[1]
    assert found.direction == "up"


scored = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans(), st.booleans()),
    min_size=1,
    max_size=50,
)


@settings(deadline=None, max_examples=25)  # each draws a thousand resamples
@given(scored)
def test_swapping_two_scores_swaps_the_words(rows):
    first, second, right, right_too = (np.array(column) for column in zip(*rows, strict=True))
    one, other = Ranked(first, right), Ranked(second, right_too)

    assert compare_areas(other, one).direction == TURNED[compare_areas(one, other).direction]
    turned = compare_risks(other, one, gammas=(3, 4)).direction
    assert turned == TURNED[compare_risks(one, other, gammas=(4, 3)).direction]


@settings(deadline=None, max_examples=25)  # each draws a thousand resamples
@given(scored)
def test_identical_scores_give_no_difference(rows):
    score, _, right, _ = (np.array(column) for column in zip(*rows, strict=True))
    one = Ranked(score, right)

    assert compare_areas(one, one).interval == (0.0, 0.0)
    assert compare_areas(one, one).direction == "unclear"
    assert compare_risks(one, one, gammas=(4, 4)).direction == "unclear"


def test_the_same_scores_are_judged_the_same_every_time():
    one = ranked(200, error=0.2, sharpness=0.5, seed=1)
    other = Ranked(np.random.default_rng(2).random(200), one.correct)

    assert compare_areas(one, other) == compare_areas(one, other)


def test_risks_at_two_thresholds_differ_clearly_when_one_score_keeps_the_mistakes():
    # Both answer 200 of 400; the one none of its 60 mistakes, the other all of them.
    correct = np.arange(400) >= 60
    high = Ranked(np.arange(400), correct)
    low = Ranked(-np.arange(400), correct)

    found = compare_risks(high, low, gammas=(199, -200))

    assert at_threshold(high, 199).risk == 0.0
    assert at_threshold(low, -200).risk == found.value == 0.3
    assert found.direction == "up"


def test_nothing_answered_is_no_difference():
    one = Ranked([0.1, 0.2], [True, False])

    assert compare_risks(one, one, gammas=(0.9, 0.0)).interval is None


def test_the_joint_score_is_the_safest_only_when_it_beats_both_clearly():
    sharp = ranked(500, error=0.2, sharpness=0.9, seed=1)
    blunt = Ranked(np.random.default_rng(2).random(500), sharp.correct)
    near = Ranked(sharp.confidence + 1e-6 * np.random.default_rng(3).random(500), sharp.correct)

    assert weigh_scores({"joint": sharp, "before": blunt, "after": blunt}).safest == "joint"
    assert weigh_scores({"joint": sharp, "before": blunt, "after": near}).safest is None
    assert weigh_scores({"joint": blunt, "before": blunt, "after": sharp}).safest == "after"
    assert weigh_scores({"joint": blunt, "before": sharp, "after": blunt}).safest == "before"

    dull = Ranked(sharp.confidence + 0.8 * blunt.confidence, sharp.correct)
    both = weigh_scores({"joint": blunt, "before": dull, "after": sharp})
    assert [found.direction for found in both.against.values()] == ["down", "down"]
    assert both.areas["before"] > both.areas["after"]
    assert both.safest == "after"  # of two safer ones the safest


def test_two_comparisons_of_areas_that_hold_together_are_each_wider():
    one = ranked(200, error=0.2, sharpness=0.5, seed=1)
    other = Ranked(np.random.default_rng(2).random(200), one.correct)

    low, high = compare_areas(one, other).interval
    wide_low, wide_high = compare_areas(one, other, among=2).interval

    assert wide_low < low < high < wide_high
    assert weigh_scores({"joint": one, "before": other, "after": other}).against["before"] == (
        compare_areas(one, other, among=2)
    )


def test_the_interval_of_two_separate_shares_agrees_with_newcombes_example():
    # Newcombe 1998, table II, method 10, example (a): 56/70 against 48/80.
    assert unpaired_interval((56, 70), (48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    low, high = unpaired_interval((56, 70), (48, 80), among=6)
    assert low < 0.0524 < 0.3339 < high


def test_a_class_that_is_a_group_is_clear_only_where_the_group_is():
    pointed = Change("pointed", count=8, right_before=0, fixed=4, broken=0)
    round_ones = [
        Change("round", attribute=a, count=20, right_before=20, fixed=0, broken=0) for a in "xy"
    ]
    both = [pointed, Change("round", count=40, right_before=40, fixed=0, broken=0)]

    assert judge(both).gained == (pointed,)
    assert judge([pointed, *round_ones]).gained == ()
    assert judge(both, among=3).gained == ()


def answered(rows):
    """Answers of two classes, by rows of (label, answer, how many)."""
    labels, answers, counts = np.array(rows).T
    return Predictions(np.eye(2)[np.repeat(answers, counts)], np.repeat(labels, counts))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0, 0, 24), (1, 0, 24)], False),
        ([(0, 0, 950), (1, 0, 50)], False),  # 95% right, all by the size of a class
        ([(0, 0, 300), (0, 1, 200), (1, 1, 205), (1, 0, 295)], False),  # chance
        ([(0, 0, 20), (0, 1, 4), (1, 1, 18), (1, 0, 6)], True),
        # Fewer right answers than the larger class alone would give, and plainly learnt.
        ([(0, 0, 600), (0, 1, 300), (1, 1, 100)], True),
    ],
)
def test_a_model_tells_classes_apart_when_it_beats_the_same_answer_to_all_class_by_class(
    rows, expected
):
    assert tells_apart(answered(rows)) is expected
