"""Propositions 1 and 2 of the paper on random problems, and on one a person can solve."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masktune.errors import DataError
from masktune.studies.linear import two_rounds


@st.composite
def problems(draw):
    """n examples of d - 1 >= n features, a clue and targets; well conditioned."""
    seed = draw(st.integers(0, 2**32 - 1))
    n = draw(st.integers(1, 6))
    features = draw(st.integers(n, n + 8))
    random = np.random.default_rng(seed)
    basis = np.linalg.qr(random.normal(size=(features, features)))[0][:n]
    z = random.uniform(0.5, 2.0, size=(n, 1)) * basis  # independent rows of moderate length
    return z, random.normal(size=n), random.normal(size=n), random


def test_one_example_of_two_equal_features_shares_the_weight_until_one_is_masked():
    # z = 1, s = 1, y = 2: the shortest fit is 1 + 1; without s it is 2. s is expected to equal z.
    rounds = two_rounds(np.array([[1.0]]), np.array([1.0]), np.array([2.0]))

    assert rounds.before.theta == pytest.approx([1.0])
    assert rounds.before.w == pytest.approx(1.0)
    assert rounds.after.theta == pytest.approx([2.0])
    assert rounds.beta == pytest.approx([1.0])
    assert (rounds.before.complexity, rounds.after.complexity) == pytest.approx((2.0, 4.0))
    # A cow on grass (z = s = 1): both say 2. A cow without grass (s = 0): 1 against 2.
    z, s = np.array([[1.0], [1.0]]), np.array([1.0, 0.0])
    assert rounds.before.predict(z, s) == pytest.approx([2.0, 1.0])
    assert rounds.after.predict(z, s) == pytest.approx([2.0, 2.0])


@given(problems())
def test_both_rounds_fit_the_training_data(problem):
    z, s, y, _ = problem
    rounds = two_rounds(z, s, y)

    assert np.allclose(rounds.before.predict(z, s), y)
    assert np.allclose(rounds.after.predict(z, s), y)
    assert np.allclose(z @ rounds.beta, s)


@given(problems())
def test_proposition_1_the_model_after_masking_is_never_simpler(problem):
    z, s, y, _ = problem
    rounds = two_rounds(z, s, y)

    assert rounds.after.complexity >= rounds.before.complexity - 1e-9


@given(problems())
def test_no_other_fit_is_shorter(problem):
    z, s, y, random = problem
    rounds = two_rounds(z, s, y)
    # Every other exact fit differs by a direction that changes no training output.
    features = np.column_stack([z, s])
    null = np.linalg.svd(features)[2][len(features) :]
    other = np.append(rounds.before.theta, rounds.before.w) + null.T @ random.normal(size=len(null))

    assert np.allclose(features @ other, y)
    assert other @ other >= rounds.before.complexity - 1e-9


@given(problems())
def test_proposition_2_if_the_clue_is_as_expected_the_two_agree(problem):
    z, s, y, random = problem
    rounds = two_rounds(z, s, y)
    new = random.normal(size=(20, z.shape[1]))

    assert np.abs(rounds.disagreement(new, new @ rounds.beta)).max() < 1e-8


@settings(max_examples=200)
@given(problems(), st.floats(0.1, 10.0), st.sampled_from([-1.0, 1.0]))
def test_proposition_2_only_if_a_clue_that_is_off_makes_them_disagree(problem, distance, sign):
    z, s, y, random = problem
    rounds = two_rounds(z, s, y)
    new = random.normal(size=(20, z.shape[1]))

    apart = rounds.disagreement(new, new @ rounds.beta + sign * distance)

    # By w times the distance; the proposition assumes that the first model uses the clue at all.
    assert np.allclose(apart, rounds.before.w * sign * distance)
    assert (np.abs(apart) > 0).all() == (rounds.before.w != 0)


def test_a_first_model_that_ignores_the_clue_agrees_whatever_the_clue_is():
    # s is 0 in training, so it gets no weight: the case that the proposition leaves out.
    rounds = two_rounds(np.array([[1.0, 2.0]]), np.array([0.0]), np.array([1.0]))

    assert rounds.before.w == 0.0
    assert rounds.disagreement(np.ones((1, 2)), np.array([5.0])) == pytest.approx([0.0])


@pytest.mark.parametrize(
    ("z", "s", "y", "problem"),
    [
        (np.ones((2, 3)), np.ones(2), np.ones(2), "cannot fit 2 examples exactly"),
        (np.ones((2, 1)), np.ones(2), np.ones(2), "1 features cannot fit 2 examples"),
        (np.ones((0, 3)), np.ones(0), np.ones(0), "cannot fit 0 examples"),
        (np.ones((1, 3)), np.ones(2), np.ones(1), r"s \(2,\)"),
        (np.ones(3), np.ones(3), np.ones(3), r"z is \(3,\)"),
    ],
)
def test_data_that_cannot_be_fitted_is_refused(z, s, y, problem):
    with pytest.raises(DataError, match=problem):
        two_rounds(z, s, y)
