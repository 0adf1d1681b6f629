import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from masktune.errors import MaskTuneError
from masktune.scores.predictions import Predictions
from masktune.scores.selective import (
    Ranked,
    alone,
    at_threshold,
    aurc_interval,
    coverage_at_risk,
    decile_risks,
    group_coverage,
    joint,
    nearest_coverage,
    risk_coverage,
    selective_table,
    threshold_at,
)


def predictions(probabilities, labels, attributes=None):
    return Predictions(
        np.array(probabilities, dtype=np.float32),
        np.array(labels, dtype=np.int64),
        np.array([-1] * len(labels) if attributes is None else attributes, dtype=np.int64),
    )


def ranked(*pairs):
    confidence, correct = zip(*pairs, strict=True)
    return Ranked(np.array(confidence), np.array(correct))


def four():
    """Surest first: right, wrong, right, wrong."""
    return ranked((0.2, False), (0.8, True), (0.4, True), (0.6, False))


def distinct(count):
    return Ranked(np.linspace(0.9, 0.1, count), np.ones(count, dtype=bool))


tied_answers = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40).map(
    lambda pairs: ranked(*((score / 5, right) for score, right in pairs))
)
untied_answers = st.lists(st.booleans(), min_size=2, max_size=40).flatmap(
    lambda correct: st.permutations(range(len(correct))).map(
        lambda order: Ranked(np.array(order) / len(correct), np.array(correct))
    )
)


# The score


def test_the_joint_score_is_the_largest_raw_product_and_its_class_the_answer():
    # Products: 0.9 * 0.2 = 0.18 and 0.1 * 0.8 = 0.08; then 0.6 * 0.1 = 0.06 and 0.4 * 0.9 = 0.36.
    before = predictions([[0.9, 0.1], [0.6, 0.4]], labels=[0, 0])
    after = predictions([[0.2, 0.8], [0.1, 0.9]], labels=[0, 0])

    found = joint(before, after)

    assert found.confidence == pytest.approx([0.18, 0.36])
    assert found.correct.tolist() == [True, False]


def test_the_product_is_taken_in_double_precision():
    # In single precision both products round to 1 - 2^-23, and the ranking loses them.
    below = np.nextafter(np.float32(1), np.float32(0))  # 1 - 2^-24
    before = predictions([[below, 0], [1 - 2**-23, 0]], labels=[0, 0])
    after = predictions([[below, 0], [1, 0]], labels=[0, 0])

    found = joint(before, after)

    assert found.confidence.dtype == np.float64
    assert found.confidence[0] == (1 - 2**-24) ** 2
    assert found.confidence[0] != found.confidence[1]


def test_models_that_contradict_each_other_fully_score_zero():
    found = joint(predictions([[1, 0]], [1]), predictions([[0, 1]], [1]))

    assert found.confidence.tolist() == [0.0]


@pytest.mark.parametrize(
    "after",
    [
        predictions([[0.5, 0.5]], [0]),
        predictions([[0.5, 0.5], [0.5, 0.5]], [1, 0]),
        predictions([[0.5, 0.5], [0.5, 0.5]], [0, 1], [0, 0]),
    ],
    ids=["count", "labels", "attributes"],
)
def test_models_asked_about_other_examples_have_no_joint_score(after):
    before = predictions([[0.5, 0.5], [0.5, 0.5]], [0, 1])

    with pytest.raises(MaskTuneError, match="same examples"):
        joint(before, after)


def test_one_model_alone_is_ranked_by_its_largest_probability():
    found = alone(predictions([[0.75, 0.25], [0.5, 0.5], [0.125, 0.875]], [0, 1, 1]))

    assert found.confidence.tolist() == [0.75, 0.5, 0.875]
    assert found.confidence.dtype == np.float64
    assert found.correct.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("confidence", "correct", "problem"),
    [
        ([0.5, math.nan], [True, True], "not finite"),
        ([0.5, -math.inf], [True, True], "not finite"),
        ([0.5], [True, True], r"shape \(1,\) do not fit answers of shape \(2,\)"),
        ([[0.5]], [[True]], r"shape \(1, 1\)"),
        ([], [], "no answer to rank"),
    ],
)
def test_what_cannot_be_ranked_is_refused(confidence, correct, problem):
    with pytest.raises(MaskTuneError, match=problem):
        Ranked(np.array(confidence), np.array(correct, dtype=bool))


def test_right_and_wrong_given_as_numbers_mean_the_same():
    as_numbers = Ranked(np.array([0.8, 0.4], dtype=np.float32), np.array([1, 0]))

    assert risk_coverage(as_numbers).risk.tolist() == [0.5, 0.0, 0.0]
    assert as_numbers.confidence.dtype == np.float64


# The threshold


def test_gamma_is_the_score_next_below_those_accepted():
    gamma = threshold_at(four(), 0.5)

    assert gamma == 0.4
    assert at_threshold(four(), gamma).accepted == 2


def test_full_coverage_needs_no_threshold():
    assert threshold_at(four(), 1.0) == -math.inf
    assert at_threshold(four(), -math.inf).coverage == 1.0


def test_a_target_that_rounds_up_to_everything_needs_no_threshold_either():
    assert threshold_at(four(), 0.76) == -math.inf


def test_a_target_between_two_counts_accepts_the_larger():
    assert at_threshold(four(), threshold_at(four(), 0.51)).accepted == 3


@pytest.mark.parametrize(
    ("coverage", "count", "accepted"),
    [
        (0.95, 20, 19),
        (0.9, 10, 9),
        (0.07, 100, 7),  # 0.07 * 100 is 7.000000000000001
        (0.55, 100, 55),  # 55.00000000000001
        (0.57, 100, 57),  # 56.99999999999999
        (0.1 + 0.2, 10, 3),  # 0.30000000000000004
        (1e-9, 10, 1),
        (0.50005, 20_000, 10_001),
    ],
)
def test_the_target_is_met_exactly_despite_floating_point(coverage, count, accepted):
    answers = distinct(count)

    assert at_threshold(answers, threshold_at(answers, coverage)).accepted == accepted


@given(st.integers(1, 300), st.data())
def test_without_ties_every_count_can_be_asked_for_as_a_share(count, data):
    wanted = data.draw(st.integers(1, count))
    answers = distinct(count)

    assert at_threshold(answers, threshold_at(answers, wanted / count)).accepted == wanted


@given(tied_answers, st.floats(0.01, 1))
def test_with_ties_never_more_than_the_target_is_accepted(answers, coverage):
    point = at_threshold(answers, threshold_at(answers, coverage))

    assert point.accepted <= math.ceil(coverage * len(answers))


@pytest.mark.parametrize("coverage", [0.0, -0.5, 1.01, math.nan])
def test_a_coverage_that_is_no_share_is_refused(coverage):
    with pytest.raises(MaskTuneError, match=r"not in \(0, 1\]"):
        threshold_at(four(), coverage)


def test_a_score_equal_to_gamma_is_not_accepted():
    point = at_threshold(four(), 0.6)

    assert (point.gamma, point.accepted, point.coverage, point.risk) == (0.6, 1, 0.25, 0.0)


def test_the_risk_is_over_the_accepted_examples():
    point = at_threshold(four(), 0.3)

    assert (point.accepted, point.coverage, point.risk) == (3, 0.75, pytest.approx(1 / 3))


def test_nothing_accepted_has_no_risk():
    point = at_threshold(four(), 0.8)

    assert (point.accepted, point.coverage, point.risk) == (0, 0.0, None)


def test_ties_are_told_by_the_nearest_coverage_that_can_be_reached():
    # Thresholds can accept 0, 3 or 4 of the four.
    saturated = ranked((1.0, True), (1.0, True), (1.0, False), (0.2, False))

    assert at_threshold(saturated, threshold_at(saturated, 0.5)).coverage == 0.0
    assert nearest_coverage(saturated, 0.5) == 0.75
    assert nearest_coverage(saturated, 0.3) == 0.0
    assert nearest_coverage(saturated, 0.875) == 1.0


# The curve


def test_the_curve_of_four_answers_by_hand():
    curve = risk_coverage(four())

    assert curve.coverage.tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert curve.risk == pytest.approx([1 / 2, 1 / 3, 1 / 2, 0, 0])
    assert curve.generalized_risk.tolist() == [0.5, 0.25, 0.25, 0.0, 0.0]
    assert curve.aurc == pytest.approx((5 / 12 + 5 / 12 + 1 / 4 + 0) / 4)
    assert curve.augrc == pytest.approx((3 / 8 + 1 / 4 + 1 / 8 + 0) / 4)
    assert curve.e_aurc == pytest.approx(curve.aurc - (0.5 + 0.5 * math.log(0.5)))


def test_tied_answers_make_one_point():
    curve = risk_coverage(ranked((0.7, True), (0.7, False), (0.7, True), (0.1, False)))

    assert curve.coverage.tolist() == [1.0, 0.75, 0.0]
    assert curve.risk == pytest.approx([1 / 2, 1 / 3, 1 / 3])
    assert curve.generalized_risk.tolist() == [0.5, 0.25, 0.0]
    assert curve.aurc == pytest.approx(0.25 * 5 / 12 + 0.75 / 3)


def test_zero_and_minus_zero_are_tied():
    curve = risk_coverage(ranked((0.0, True), (-0.0, False)))

    assert curve.coverage.tolist() == [1.0, 0.0]


def test_a_model_that_is_always_wrong_has_the_worst_areas_and_none_in_excess():
    curve = risk_coverage(ranked((0.9, False), (0.5, False)))

    assert (curve.aurc, curve.augrc, curve.e_aurc) == (1.0, 0.5, 0.0)


def test_a_model_that_is_always_right_has_no_area():
    curve = risk_coverage(distinct(5))

    assert (curve.aurc, curve.augrc, curve.e_aurc) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("errors", [10, 300, 900])
def test_a_perfect_ranking_of_many_has_the_optimal_areas(errors):
    correct = np.arange(1000) >= errors
    curve = risk_coverage(Ranked(np.arange(1000.0), correct))

    assert curve.e_aurc == pytest.approx(0, abs=2e-3)
    assert curve.augrc == pytest.approx(0.5 * (errors / 1000) ** 2)


def _areas_by_definition(answers):
    """Walk the distinct thresholds one by one in exact fractions."""
    pairs = list(zip(answers.confidence.tolist(), answers.correct.tolist(), strict=True))
    count = len(pairs)
    points = []
    for threshold in sorted({score for score, _ in pairs}, reverse=True):
        accepted = [right for score, right in pairs if score >= threshold]
        wrong = accepted.count(False)
        points.append(
            (Fraction(len(accepted), count), Fraction(wrong, len(accepted)), Fraction(wrong, count))
        )
    points.insert(0, (Fraction(0), points[0][1], Fraction(0)))
    aurc = augrc = Fraction(0)
    for (c0, r0, g0), (c1, r1, g1) in pairwise(points):
        aurc += (c1 - c0) * (r0 + r1) / 2
        augrc += (c1 - c0) * (g0 + g1) / 2
    return points[::-1], float(aurc), float(augrc)


@given(st.one_of(tied_answers, untied_answers))
def test_the_curve_agrees_with_its_definition(answers):
    points, aurc, augrc = _areas_by_definition(answers)

    curve = risk_coverage(answers)

    assert curve.coverage.tolist() == [float(coverage) for coverage, _, _ in points]
    assert curve.risk.tolist() == [float(risk) for _, risk, _ in points]
    assert curve.generalized_risk.tolist() == [float(risk) for _, _, risk in points]
    assert curve.aurc == pytest.approx(aurc)
    assert curve.augrc == pytest.approx(augrc)


@given(tied_answers, st.randoms(use_true_random=False))
def test_the_order_of_the_examples_changes_nothing_even_with_ties(answers, random):
    order = list(range(len(answers)))
    random.shuffle(order)

    curve = risk_coverage(answers)
    shuffled = risk_coverage(Ranked(answers.confidence[order], answers.correct[order]))

    assert shuffled.coverage.tolist() == curve.coverage.tolist()
    assert shuffled.risk.tolist() == curve.risk.tolist()
    assert (shuffled.aurc, shuffled.augrc, shuffled.e_aurc) == (
        curve.aurc,
        curve.augrc,
        curve.e_aurc,
    )


def _failure_auroc(answers):
    """The chance that a right answer outranks a wrong one, a tie counting half."""
    right = answers.confidence[answers.correct].tolist()
    wrong = answers.confidence[~answers.correct].tolist()
    wins = sum((r > w) + (r == w) / 2 for r in right for w in wrong)
    return wins / (len(right) * len(wrong))


mixed = st.one_of(tied_answers, untied_answers).filter(lambda a: 0 < a.correct.sum() < len(a))


@given(mixed)
def test_the_augrc_has_its_closed_form(answers):
    accuracy = answers.correct.mean()

    closed = (1 - _failure_auroc(answers)) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2

    assert risk_coverage(answers).augrc == pytest.approx(closed)


@given(tied_answers)
def test_risk_at_full_coverage_is_the_error_rate(answers):
    curve = risk_coverage(answers)

    assert curve.coverage[0] == 1.0
    assert curve.risk[0] == curve.generalized_risk[0] == pytest.approx(1 - answers.correct.mean())


@given(tied_answers)
def test_every_point_of_the_curve_is_what_a_threshold_does(answers):
    curve = risk_coverage(answers)

    points = [at_threshold(answers, g) for g in [-math.inf, *np.unique(answers.confidence)]]

    assert curve.coverage.tolist() == [point.coverage for point in points]
    assert curve.risk[:-1].tolist() == [point.risk for point in points[:-1]]


# Reading the curve


def test_coverage_at_risk_is_the_largest_that_meets_it_though_smaller_ones_miss_it():
    # Risks at 0.25, 0.5, 0.75, 1: 1, 1/2, 1/3, 1/4. The surest answer is wrong.
    answers = ranked((0.9, False), (0.8, True), (0.7, True), (0.6, True))

    assert coverage_at_risk(answers, 0.25) == 1.0
    assert coverage_at_risk(answers, 0.24) == 0.0


def test_coverage_at_risk_reads_between_the_ends():
    assert coverage_at_risk(four(), 0.4) == 0.75
    assert coverage_at_risk(four(), 0.0) == 0.25


@pytest.mark.parametrize("risk", [-0.1, 1.1, math.nan])
def test_a_risk_that_is_no_share_is_refused(risk):
    with pytest.raises(MaskTuneError, match=r"not in \[0, 1\]"):
        coverage_at_risk(four(), risk)


def test_group_coverage_shows_whom_the_model_answers():
    examples = predictions(
        [[0.5, 0.5]] * 6, labels=[0, 0, 0, 1, 1, 1], attributes=[0, 0, 1, 0, 0, 0]
    )
    answers = Ranked(
        np.array([0.9, 0.8, 0.1, 0.9, 0.6, 0.5]),
        np.array([True, False, True, True, True, False]),
    )

    found = group_coverage(
        answers, examples, gamma=0.5, classes=("cow", "camel"), attributes=("grass", "sand")
    )

    assert [(g.label, g.attribute, g.count, g.accepted) for g in found] == [
        ("cow", "grass", 2, 2),
        ("cow", "sand", 1, 0),
        ("camel", "grass", 3, 2),
        ("camel", "sand", 0, 0),
    ]
    assert [g.coverage for g in found] == [1.0, 0.0, pytest.approx(2 / 3), None]
    assert [g.risk for g in found] == [0.5, None, 0.0, None]


def test_group_coverage_needs_the_ranked_examples():
    with pytest.raises(MaskTuneError, match="4 answers are ranked, but 1 examples"):
        group_coverage(four(), predictions([[0.5, 0.5]], [0]), gamma=0.5)


# The table


def test_gamma_comes_from_validation_and_coverage_and_error_from_the_test_set():
    # Validation accepts 2 of 4 above 0.4; on the test set 0.4 accepts three, one of them wrong.
    test = ranked((0.9, True), (0.7, False), (0.5, True), (0.4, False), (0.1, True))

    everything, half = selective_table(four(), test, targets=(1.0, 0.5))

    assert (everything.target, everything.gamma) == (1.0, -math.inf)
    assert (everything.coverage, everything.error, everything.accepted) == (1.0, 0.4, 5)
    assert (half.target, half.gamma) == (0.5, 0.4)
    assert (half.coverage, half.error) == (0.6, pytest.approx(1 / 3))
    assert half.accepted == 3


def test_the_table_has_the_rows_of_the_paper():
    rows = selective_table(distinct(20), distinct(20))

    assert [row.target for row in rows] == [1.0, 0.95, 0.9, 0.85, 0.8]
    assert [row.accepted for row in rows] == [20, 19, 18, 17, 16]


# The interval


def test_the_bootstrap_redraws_the_answers_and_takes_percentiles():
    generator = np.random.default_rng(1)
    answers = Ranked(generator.integers(0, 8, size=30) / 8, generator.random(30) < 0.7)

    redraw, areas = np.random.default_rng(2), []
    for _ in range(50):
        drawn = redraw.integers(30, size=30)
        areas.append(risk_coverage(Ranked(answers.confidence[drawn], answers.correct[drawn])).aurc)

    found = aurc_interval(answers, generator=np.random.default_rng(2), resamples=50)
    assert found == pytest.approx((np.quantile(areas, 0.025), np.quantile(areas, 0.975)))


def test_the_interval_holds_the_area_and_narrows_with_more_examples():
    generator = np.random.default_rng(3)
    confidence = generator.random(1600)
    correct = generator.random(1600) < confidence
    few, many = Ranked(confidence[:100], correct[:100]), Ranked(confidence, correct)

    low, high = aurc_interval(few, generator=generator, resamples=200)
    low_many, high_many = aurc_interval(many, generator=generator, resamples=200)

    assert low < risk_coverage(few).aurc < high
    assert low_many < risk_coverage(many).aurc < high_many
    assert high_many - low_many < (high - low) / 2


def test_no_resamples_give_no_interval():
    with pytest.raises(MaskTuneError, match="0 resamples"):
        aurc_interval(four(), generator=np.random.default_rng(0), resamples=0)


def test_every_tenth_of_the_answers_is_counted_from_the_least_sure():
    sure = np.linspace(0.05, 1.0, 20)[::-1]
    right = np.arange(20) < 17  # the three least sure are wrong

    found = decile_risks(Ranked(sure, right))

    assert [one.number for one in found] == [*range(1, 11)]
    assert [(one.count, one.wrong) for one in found] == [(2, 2), (2, 1)] + [(2, 0)] * 8
    assert (found[0].lowest, found[0].highest) == pytest.approx((0.05, 0.1))
