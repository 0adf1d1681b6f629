from dataclasses import replace

import numpy as np
import pytest

from masktune.checkpoints.settings import settings
from masktune.config import MaskingConfig
from masktune.scores.evidence import Difference, Safety, judge
from masktune.scores.flips import Change
from masktune.scores.groups import ANY, summary
from masktune.scores.metrics import METRICS
from masktune.scores.predictions import Predictions
from masktune.show.wording import (
    control_words,
    masking_words,
    method_words,
    percent,
    points,
    selective_verdict,
    verdict_parts,
    whose,
)


def evidence(*groups):
    """Each group of 100: attribute, right before, fixed, broken."""
    return judge(
        [
            Change("cow", attribute=name, count=100, right_before=right, fixed=fixed, broken=broken)
            for name, right, fixed, broken in groups
        ]
    )


def test_a_clear_gain_helped():
    assert verdict_parts("desert", evidence(("sand", 20, 60, 0), ("grass", 90, 1, 1))) == [
        (
            "up",
            "Tuning helped the worst group of “desert” (cow, sand): from 20.0% to 80.0%, "
            "+60.0 points.",
        )
    ]


def test_a_clear_loss_harmed_and_the_verdict_says_so():
    assert verdict_parts("desert", evidence(("sand", 80, 0, 60), ("grass", 90, 1, 1))) == [
        (
            "down",
            "Tuning harmed the worst group of “desert” (cow, sand): from 80.0% to 20.0%, "
            "−60.0 points.",
        )
    ]


def test_help_for_one_group_does_not_hide_harm_to_another():
    told = verdict_parts("desert", evidence(("sand", 20, 60, 0), ("grass", 100, 0, 15)))

    assert [where for where, _ in told] == ["down", "up"]
    assert told[0][1] == (
        "Tuning harmed a group of “desert” (cow, grass): from 100.0% to 85.0%, −15.0 points."
    )


def test_two_groups_are_not_both_called_the_worst():
    told = verdict_parts("desert", evidence(("sand", 30, 60, 0), ("grass", 99, 0, 80)))

    assert [text.partition(":")[0] for _, text in told] == [
        "Tuning harmed what is now the worst group of “desert” (cow, grass)",
        "Tuning helped the worst group of “desert” (cow, sand)",
    ]


def test_the_largest_change_is_named_and_the_others_are_counted():
    ((_, text),) = verdict_parts(
        "desert", evidence(("sand", 20, 60, 0), ("grass", 40, 20, 0), ("snow", 90, 1, 1))
    )

    assert "(cow, sand): from 20.0% to 80.0%" in text
    assert text.endswith("2 of 3 groups clearly gained.")


def test_the_worst_group_comes_first_where_it_changed_and_the_largest_change_is_named_too():
    ((_, text),) = verdict_parts("desert", evidence(("sand", 20, 40, 0), ("grass", 21, 60, 0)))

    assert text == (
        "Tuning helped the worst group of “desert” (cow, sand): from 20.0% to 60.0%, +40.0 points. "
        "2 of 2 groups clearly gained, most cow, grass (+60.0)."
    )


def test_a_change_within_chance_is_no_success():
    told = verdict_parts("desert", evidence(("sand", 50, 9, 4), ("grass", 90, 1, 1)))

    assert told == [
        (
            "unclear",
            "No clear change in any of 2 groups of “desert”. The worst group: from 50.0% to 55.0%, "
            "+5.0 points.",
        )
    ]


def test_a_group_that_is_the_worst_now_because_it_fell_is_said_to_have_fallen():
    [(_, text)] = verdict_parts("desert", evidence(("sand", 50, 9, 4), ("grass", 56, 1, 4)))

    assert text.endswith(
        "The worst group: from 50.0% to 53.0%, +3.0 points. "
        "It is now cow, grass, which fell from 56.0% to 53.0%."
    )


def test_no_change_is_called_no_change():
    told = verdict_parts("desert", evidence(("sand", 50, 0, 0)))

    assert told == [("unclear", "No change on “desert”: no answer turned right or wrong.")]


def test_many_small_losses_are_told_as_a_whole():
    told = verdict_parts("desert", evidence(*((str(n), 90, 0, 3) for n in range(20))))

    assert told == [
        (
            "down",
            "Tuning harmed the answers on “desert” as a whole: from 90.0% to 87.0%, −3.0 points.",
        )
    ]


def test_without_attributes_the_worst_class_stands_in():
    ((_, text),) = verdict_parts("all", evidence((ANY, 20, 60, 0)))

    assert "the worst class (stands in for the worst group) of “all” (cow)" in text


def test_without_evidence_nothing_is_claimed():
    assert verdict_parts("desert", None) == []


def safety(joint, before, after, *, clear=()):
    """Areas under the curves, and the models that clearly differ from the joint score."""

    def against(which, area):
        value = area - joint
        wide = 0.0 if which in clear else 2 * abs(value)
        return Difference(value, (value - wide, value + wide))

    return Safety(
        {"joint": joint, "before": before, "after": after},
        {"before": against("before", before), "after": against("after", after)},
    )


def test_the_safest_score_is_named_also_when_it_is_not_ours():
    both = ("before", "after")

    assert selective_verdict(safety(0.0312, 0.05, 0.04, clear=both)) == (
        "The joint score is the safest: AURC 0.0312, against 0.0400 for after alone."
    )
    assert selective_verdict(safety(0.04, 0.05, 0.0312, clear=both)) == (
        "The model after alone is safer than the joint score: AURC 0.0312 against 0.0400."
    )
    assert selective_verdict(safety(0.05, 0.0312, 0.04, clear=both)).startswith(
        "The model before alone is safer"
    )
    assert selective_verdict(safety(0.0312, 0.0312, 0.05, clear=("after",))) == (
        "The joint score is as safe as the model before alone: AURC 0.0312 both."
    )


def test_a_difference_of_areas_within_chance_is_not_called_safer():
    assert selective_verdict(safety(0.0456, 0.0429, 0.06)) == (
        "No clear difference between the joint score and the model before alone: "
        "AURC 0.0456 against 0.0429."
    )


def test_a_negative_number_has_a_minus_not_a_hyphen():
    assert points(-0.5) == "−50.0"
    assert percent(0.0) == "0.0%"


@pytest.mark.parametrize(
    ("masking", "words"),
    [
        (MaskingConfig(strategy="random"), "Control: one random window hidden"),
        (MaskingConfig(strategy="none"), "Control: one more epoch, nothing hidden"),
        (MaskingConfig(strategy="none", rounds=3), "Control: 3 more epochs, nothing hidden"),
        (MaskingConfig(strategy="topk"), "The hottest 5.0% of every picture hidden"),
        (MaskingConfig(rounds=2), "MaskTune, k = 2, 2 rounds"),
        (MaskingConfig(k=1.5, method="gradcam"), "MaskTune, k = 1.5, heat by gradcam"),
        (
            MaskingConfig(layer="layer3", statistics="all"),
            "MaskTune, k = 2, mean and sigma over all pixels, layer layer3",
        ),
        (
            MaskingConfig(rounds=2, accumulate=False),
            "MaskTune, k = 2, 2 rounds, each round hides anew",
        ),
        # A control looks at no heat: an explainer left over in its settings changes nothing.
        (MaskingConfig(strategy="random", method="gradcam"), "Control: one random window hidden"),
        (MaskingConfig(strategy="soft"), "Soft mask: darkened by heat"),
        (
            MaskingConfig(strategy="global"),
            "One threshold for all: the mean heat of the training set",
        ),
    ],
)
def test_every_strategy_has_a_name_for_people(masking, words):
    assert masking_words(masking) == words


def test_a_control_is_weighed_group_by_group_and_each_clear_difference_is_named():
    # Cows and camels: the control's worst group is another one than the run's.
    found = evidence(("desert", 71, 2, 17), ("grass", 42, 22, 0), ("beach", 80, 3, 3))

    where, text = control_words("desert", MaskingConfig(strategy="random"), found)

    assert where == "unclear"
    assert text == (
        "Beside the control “one random window hidden” this run is, on “desert”, clearly worse in "
        "cow, desert (56.0% against 71.0%) and clearly better in cow, grass (64.0% against 42.0%)."
    )


@pytest.mark.parametrize(
    ("strategy", "groups", "where", "end"),
    [
        ("none", [("any", 35, 26, 2)], "up", "clearly better in cow (59.0% against 35.0%)."),
        ("none", [("any", 60, 2, 26)], "down", "against 60.0%): hiding these pixels did not help."),
        ("none", [("any", 60, 3, 3)], "unclear", "hiding these pixels did not clearly help."),
        ("random", [("any", 60, 2, 26)], "down", "clearly worse in cow (36.0% against 60.0%)."),
        ("random", [("any", 60, 3, 3)], "unclear", "not clearly better in any class."),
        (
            "random",
            [(str(number), 50, 7, 1) for number in range(9)],
            "up",
            "clearly better in all pictures together (56.0% against 50.0%).",
        ),
    ],
)
def test_only_the_control_that_hides_nothing_tells_whether_hiding_helped(
    strategy, groups, where, end
):
    told = control_words("desert", MaskingConfig(strategy=strategy), evidence(*groups))

    assert told[0] == where
    assert told[1].endswith(end)


def test_a_worst_group_that_was_another_before_is_named_with_it():
    labels, attributes = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    first, last = (
        summary(
            Predictions(np.eye(2)[answers], labels, attributes),
            classes=("cow", "camel"),
            attributes=("grass", "desert"),
            train_counts=np.ones((2, 2), dtype=np.int64),
        )
        for answers in ([1, 0, 1, 1], [0, 0, 1, 0])
    )
    worst, average = METRICS[0], METRICS[1]

    assert whose(worst, first, last) == (
        "camel, desert, which fell from 100.0% to 0.0% (before: cow, grass)"
    )
    assert whose(worst, first, first) == "cow, grass"
    assert whose(worst, last, last) == "camel, desert"
    assert whose(average, first, last) == ""


def test_a_rivals_run_by_a_recipe_of_another_version_has_its_words():
    config = settings({"dataset": "biased-mnist-5k", "rival": "lff", "epochs": 2, "lr": 0.5})

    assert method_words(config) == "LfF, epochs 2, rate 0.5"
    assert method_words(replace(config, recipe="gone")) == "LfF"
