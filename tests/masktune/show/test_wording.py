import numpy as np
import pytest

from masktune.config import MaskingConfig
from masktune.scores.groups import Averages, GroupScore, Summary, wilson
from masktune.scores.selective import Ranked, risk_coverage
from masktune.show.wording import (
    method_words,
    percent,
    points,
    selective_verdict,
    worst_change,
    worst_verdict,
)


def served(right, count, worst_is="group"):
    worst = GroupScore("cow", "sand", count, right / count, wilson(right, count))
    return Summary(Averages(0.9, 0.9, 0.9), worst, worst_is, (worst,))


def curve(correct):
    return risk_coverage(
        Ranked(np.array([0.9, 0.8, 0.7, 0.6]), np.array([int(c) for c in correct], dtype=bool))
    )


def test_a_clear_gain_helped():
    verdict = worst_verdict("desert", served(20, 100), served(80, 100))

    assert verdict == (
        "Tuning helped the worst group of “desert”: from 20.0% to 80.0%, +60.0 points."
    )


def test_a_clear_loss_harmed_and_the_verdict_says_so():
    verdict = worst_verdict("desert", served(80, 100), served(20, 100))

    assert verdict == (
        "Tuning harmed the worst group of “desert”: from 80.0% to 20.0%, −60.0 points."
    )


def test_a_change_within_the_intervals_is_no_success():
    # 5 and 7 of 10: the intervals overlap widely.
    verdict = worst_verdict("desert", served(5, 10), served(7, 10))

    assert verdict == (
        "No clear change for the worst group of “desert”: from 50.0% to 70.0%, +20.0 points, "
        "and the intervals overlap."
    )


def test_no_change_is_called_no_change():
    verdict = worst_verdict("desert", served(5, 10), served(5, 10))

    assert verdict == "No change for the worst group of “desert”: 50.0%."


def test_without_attributes_the_worst_class_stands_in():
    verdict = worst_verdict("all", served(20, 100, "class"), served(80, 100, "class"))

    assert "the worst class (stands in for the worst group) of “all”" in verdict


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [((20, 100), (80, 100), "up"), ((80, 100), (20, 100), "down"), ((5, 10), (7, 10), "unclear")],
)
def test_a_change_is_clear_when_intervals_do_not_overlap(before, after, expected):
    assert worst_change(served(*before), served(*after)) == expected


def test_the_safest_score_is_named_also_when_it_is_not_ours():
    good, middling, bad = curve("1110"), curve("1011"), curve("0111")

    assert selective_verdict({"joint": good, "before": bad, "after": middling}).startswith(
        "The joint score is the safest: AURC 0.0312, against"
    )
    assert selective_verdict({"joint": middling, "before": bad, "after": good}).startswith(
        "The model after alone is safer than the joint score: AURC 0.0312 against"
    )
    assert selective_verdict({"joint": bad, "before": good, "after": middling}).startswith(
        "The model before alone is safer"
    )
    assert selective_verdict({"joint": good, "before": good, "after": bad}) == (
        "The joint score is as safe as the model before alone: AURC 0.0312 both."
    )


def test_a_negative_number_has_a_minus_not_a_hyphen():
    assert points(-0.5) == "−50.0"
    assert percent(0.0) == "0.0%"


@pytest.mark.parametrize(
    ("masking", "words"),
    [
        (MaskingConfig(strategy="random"), "Control: one random window hidden"),
        (MaskingConfig(strategy="topk"), "The hottest 5.0% of every picture hidden"),
        (MaskingConfig(rounds=2), "MaskTune, k = 2.0, 2 rounds"),
        (MaskingConfig(strategy="soft"), "Soft mask: darkened by heat"),
        (
            MaskingConfig(strategy="global"),
            "One threshold for all: the mean heat of the training set",
        ),
    ],
)
def test_every_strategy_has_a_name_for_people(masking, words):
    assert method_words(masking) == words
