"""What a target coverage does on a test set, in small numbers worked by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.abstain import words
from app.abstain.numbers import SCORES, against, area_intervals, read_off, scores_of
from masktune.data.card import DatasetCard
from masktune.scores.evidence import weigh_scores
from masktune.scores.groups import group_name, wilson
from masktune.scores.marks import AbstainedMark, AnsweredMark
from masktune.scores.predictions import Predictions
from masktune.scores.result import Pair
from masktune.scores.selective import Ranked, risk_coverage
from masktune.show.abstained import MOST_GROUPS, Rankings, least_answered, rank
from tests.app.conftest import DEMO

TENTHS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def ranked(confidence, correct=None) -> Ranked:
    right = np.ones(len(confidence), dtype=bool) if correct is None else correct
    return Ranked(np.array(confidence), np.array(right))


def rankings(validation: Ranked, test: Ranked) -> Rankings:
    """Let every score be the same."""
    return Rankings(
        validation=dict.fromkeys(SCORES, validation),
        test=dict.fromkeys(SCORES, test),
        curves=dict.fromkeys(SCORES, risk_coverage(test)),
        safety=weigh_scores(dict.fromkeys(SCORES, test)),
    )


def says(probabilities, labels, attributes=None) -> Predictions:
    return Predictions(
        np.array(probabilities, dtype=np.float64),
        np.array(labels),
        np.full(len(labels), -1) if attributes is None else np.array(attributes),
    )


def card(**changes) -> DatasetCard:
    values = {
        "key": "toy",
        "title": "Toy",
        "summary": "",
        "classes": ("cat", "dog"),
        "attributes": (),
        "size": (8, 8),
        "tests": ("test",),
        "recipe": DEMO,
        "bundled": True,
        "layout": "",
        "source": "",
        "licence": "",
    }
    return DatasetCard(**{**values, **changes})


def test_gamma_comes_from_validation_and_is_applied_to_the_test_set():
    # Of ten scores 0.1 .. 1.0 the largest eight lie above 0.2.
    both = rankings(ranked(TENTHS), ranked([0.2, 0.25, 0.5, 0.9], [False, False, True, True]))

    reading = read_off(both, "joint", target=0.8)

    assert reading.point.gamma == 0.2
    assert (reading.point.accepted, reading.total, reading.wrong) == (3, 4, 1)
    assert (reading.point.coverage, reading.point.risk) == (0.75, 1 / 3)
    assert reading.interval == wilson(1, 3)
    assert reading.on_validation == 0.8
    assert reading.off_target == pytest.approx(-0.05)
    assert reading.nearest is None


def test_ties_are_counted_and_the_nearest_coverage_is_given():
    # Five of ten are asked for, but six share the highest score, so none lies above it.
    both = rankings(ranked([1.0] * 6 + [0.5] * 4), ranked([1.0, 0.5]))

    reading = read_off(both, "after", target=0.5)

    assert (reading.point.gamma, reading.tied) == (1.0, 6)
    assert (reading.on_validation, reading.nearest) == (0.0, 0.6)
    assert reading.point.risk is None
    assert reading.interval is None


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=60, unique=True),
    st.integers(50, 100),
)
def test_scores_without_ties_are_never_called_tied(scores, target):
    both = rankings(ranked([s / 10**6 for s in scores]), ranked([0.5]))

    assert read_off(both, "joint", target=target / 100).nearest is None


@pytest.mark.parametrize(
    ("answered", "risk"), [(10, 0), (20, 1 / 2), (24, 1 / 3), (30, 1 / 3), (40, 1 / 2)]
)
def test_another_score_is_read_at_the_next_coverage_that_its_threshold_can_reach(answered, risk):
    # All of ours are right. The other has ten answers at each of four scores: risk 0, 1/2, 1/3,
    # 1/2 at coverage 1/4, 1/2, 3/4, 1.
    ours = ranked([1 - n / 100 for n in range(40)], [True] * 40)
    other = ranked(
        [score for score in (0.9, 0.8, 0.7, 0.6) for _ in range(10)],
        [right for right in (True, False, True, False) for _ in range(10)],
    )
    both = replace(rankings(ours, ours), test={"joint": ours, "after": other})

    reading = read_off(both, "joint", target=answered / 40)

    assert reading.point.accepted == answered
    assert against(both, reading, "after").value == pytest.approx(risk)


def test_groups_without_pictures_are_left_out():
    given_ = says([[0.9, 0.1]] * 4, [0, 0, 1, 1], [0, 0, 1, 1])
    named = card(attributes=("indoors", "outdoors"))

    groups = least_answered(
        ranked([0.9, 0.8, 0.7, 0.1], [True, False, True, False]), given_, gamma=0.5, names=named
    )

    assert [group_name(g) for g in groups] == ["cat, indoors", "dog, outdoors"]
    assert [g.coverage for g in groups] == [1.0, 0.5]
    point = ("test", "joint", 3)
    marks = [(AnsweredMark(*point, group), AbstainedMark(*point, group)) for group in (0, 3)]
    wrong = [row[3] for row in words.groups_table(groups, marks).rows]
    assert wrong[0].values == (1, 0.5, *wilson(1, 2))
    assert wrong[1].values == (0, 0.0, *wilson(0, 1))


def test_of_very_many_groups_those_answered_least_are_shown_in_group_order():
    # Class 0 .. 29, one picture each; only the last ten are answered.
    count = 30
    many = says(np.eye(count), list(range(count)))
    scores = ranked([0.9 if place >= 20 else 0.1 for place in range(count)])

    groups = least_answered(
        scores, many, gamma=0.5, names=card(classes=tuple(f"class {i}" for i in range(count)))
    )

    assert [g.label for g in groups] == [f"class {i}" for i in range(MOST_GROUPS)]


@pytest.mark.parametrize(("held", "chance"), [(12, True), (60, False)])
def test_a_gap_between_groups_counts_only_beyond_chance(held, chance):
    # 10 of 100 cats are held back, and 12 or 60 of 100 dogs.
    labels = [0] * 100 + [1] * 100
    scores = [0.1] * 10 + [0.9] * 90 + [0.1] * held + [0.9] * (100 - held)
    groups = least_answered(
        ranked(scores), says([[0.5, 0.5]] * 200, labels), gamma=0.5, names=card()
    )

    said = words.gap_sentence(groups)

    assert f"Answered least: dog ({100 - held}.0%); most: cat (90.0%)." in said
    assert f"The gap of {held - 10}.0 points" in said
    assert ("within chance" in said) is chance
    assert ("not shared fairly" in said) is not chance


def test_intervals_of_areas_are_the_same_each_time_and_hold_the_area():
    answers = ranked(np.linspace(0, 1, 50), np.arange(50) % 3 > 0)

    first, again = (area_intervals({"joint": answers}, seed=0) for _ in range(2))

    assert first == again
    assert first["joint"][0] < risk_coverage(answers).aurc < first["joint"][1]


def test_a_run_has_a_score_of_its_own_where_its_method_learnt_one():
    pair = Pair(says([[0.9, 0.1], [0.2, 0.8]], [0, 1]), says([[0.6, 0.4], [0.7, 0.3]], [0, 1]))
    own = replace(pair, own=np.array([-0.1, -0.4]))

    assert scores_of(rank(pair, pair)) == ["joint", "after", "before"]
    both = rank(own, own)
    assert scores_of(both) == ["joint", "after", "before", "own"]
    # It ranks the answers of the model after, of which the second is wrong.
    assert both.test["own"].correct.tolist() == [True, False]
    assert read_off(both, "own", target=0.5).wrong == 0
