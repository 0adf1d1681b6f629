import numpy as np
import pytest

from masktune.scores.class_order import better_order
from masktune.scores.predictions import Predictions


def answering(answers, labels, classes):
    """Give predictions that answer so, surely."""
    return Predictions(np.eye(classes)[answers], np.array(labels))


def test_two_classes_that_are_swapped_are_found_with_what_swapping_gains():
    labels = np.arange(100) // 2 % 2  # 0 0 1 1 0 0 ..., so both halves hold both classes
    answers = 1 - labels
    answers[:10] = labels[:10]

    found = better_order(answering(answers, labels, 2))

    assert found.order == (1, 0)
    # Of the 50 pictures it was not found on 5 are right as it is, 45 when swapped.
    assert (found.change.count, found.change.before, found.change.after) == (50, 0.1, 0.9)
    assert found.change.interval[0] > 0.5


def test_a_cycle_of_three_classes_goes_from_the_models_number_to_the_pictures():
    labels = np.arange(120) // 2 % 3
    answers = np.array([2, 0, 1])[labels]  # the model calls class 0 its third

    found = better_order(answering(answers, labels, 3))

    assert found.order == (1, 2, 0)  # its first is class 1, its second class 2, its third class 0
    assert np.array_equal(np.array(found.order)[answers], labels)


def test_classes_in_their_order_are_left_alone():
    labels = np.arange(100) // 2 % 2
    answers = labels.copy()
    answers[::4] = 1 - answers[::4]

    assert better_order(answering(answers, labels, 2)) is None


def test_models_that_guess_are_offered_nothing():
    labels = np.arange(400) // 2 % 5
    guesses = (np.random.default_rng(seed).integers(0, 5, 400) for seed in range(40))

    assert not [found for said in guesses if (found := better_order(answering(said, labels, 5)))]


def test_an_order_that_only_the_half_it_was_found_on_prefers_is_not_offered():
    labels = np.arange(200) // 2 % 2
    answers = labels.copy()
    answers[::2] = 1 - answers[::2]  # every other picture speaks for swapping, the rest against

    assert better_order(answering(answers, labels, 2)) is None


def test_a_small_gain_is_no_other_order_however_sure_it_is():
    labels = np.arange(20_000) // 2 % 2
    wrong = np.arange(20_000) // 4 % 25 < 13  # 52 % wrong: swapping gains 4 points, surely

    found = better_order(answering(np.where(wrong, 1 - labels, labels), labels, 2))

    assert found is None


@pytest.mark.parametrize(("count", "offered"), [(18, False), (20, True)])
def test_of_a_handful_of_pictures_nothing_is_said(count, offered):
    labels = np.arange(count) // 2 % 2

    assert (better_order(answering(1 - labels, labels, 2)) is not None) is offered


def test_a_class_without_a_picture_stays_where_it_is():
    labels = np.arange(100) // 2 % 2

    assert better_order(answering(1 - labels, labels, 4)).order == (1, 0, 2, 3)


def test_of_orders_that_are_equally_good_the_one_nearest_to_the_models_counts():
    # Answers 1 and 2 each say as much about class 3: (2, 3, 1, 0) would be right as often.
    answers = np.repeat([2, 1, 1, 0, 0, 0, 0], 20)
    labels = np.repeat([3, 2, 3, 2, 2, 3, 2], 20)

    assert better_order(answering(answers, labels, 4)).order == (2, 1, 3, 0)
