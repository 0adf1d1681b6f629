from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masktune.errors import ConfigError
from masktune.scores.hiding import HiddenGroup, Hiding
from masktune.studies.advice import (
    FEW_MORE,
    LEAST_LOST,
    Trial,
    TunedScores,
    suggest,
)
from tests import results


def trial(k: float, *, empty: float = 0.0, right: float = 0.6, fit: float | None = None) -> Trial:
    """Give a trial of a model that answers all of two equal classes right when nothing is hidden.

    Its floor is half way from 0.5 to 1: 0.75.
    """
    tuned = None if fit is None else TunedScores(train=fit, validation=0.9, worst_class=0.8)
    return Trial(
        k=k,
        pictures=1000,
        hidden_fraction=0.1 / (1 + k),
        empty_fraction=empty,
        largest_class=0.5,
        seen=1.0,
        hidden=right,
        tuned=tuned,
    )


def test_the_largest_k_that_leaves_nearly_no_picture_whole_is_suggested():
    trials = [trial(1), trial(1.5), trial(2, empty=0.004), trial(2.5, empty=0.04)]

    advice = suggest(trials)

    assert advice.k == 2
    assert "something in 99.6% of the pictures (nothing in 4 of 1,000), and" in advice.reason
    assert "from 100.0% to 60.0%" in advice.reason
    assert "At k = 2.5, 4.0% of the pictures are left whole" in advice.reason


def test_a_k_that_hides_something_everywhere_is_said_to_in_words():
    said = suggest([trial(2)]).reason

    assert "are hidden, something in every one of these 1,000 pictures, and the model's" in said


def test_pictures_that_every_k_leaves_whole_are_not_held_against_any():
    trials = [trial(1, empty=0.05), trial(2, empty=0.054), trial(3, empty=0.06)]

    assert suggest(trials).k == 2


def test_a_mask_that_hardly_costs_the_model_an_answer_is_passed_over():
    trials = [trial(1, right=0.7), trial(2, right=0.97)]

    assert suggest(trials).k == 1


def test_a_finetune_that_no_longer_fits_its_pictures_is_passed_over():
    trials = [trial(1, fit=0.76), trial(2, fit=0.74)]

    assert suggest(trials).k == 1


def test_the_floor_lies_half_way_from_the_largest_class_to_the_model_before():
    assert trial(2).floor == 0.75
    assert suggest([trial(2, fit=0.75)]).k == 2


def test_an_unused_larger_k_that_leaves_no_picture_whole_is_not_said_to_leave_some():
    advice = suggest([trial(1), trial(2, right=0.99)])

    assert advice.k == 1
    assert "left whole" not in advice.reason


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ([trial(0, empty=0.2), trial(1, empty=0.4)], "In 20.0% of the pictures nothing is hidden"),
        ([trial(0, right=0.98), trial(1, right=1.0)], "several rounds"),
        ([trial(0, fit=0.5), trial(1, fit=0.6)], "smaller learning rate"),
    ],
)
def test_where_the_rule_finds_no_k_it_says_why_instead_of_making_one_up(trials, words):
    advice = suggest(trials)

    assert advice.k is None
    assert words in advice.reason


def test_a_model_that_has_learnt_nothing_is_trained_longer_before_any_k_is_suggested():
    blind = [replace(trial(k, right=right), learnt=False) for k, right in ((1, 1.0), (2, 0.4))]

    advice = suggest([replace(one, seen=0.5) for one in blind])

    assert advice.k is None
    assert advice.reason.endswith("nothing can be read off hiding: train it longer first.")
    assert "50.0% right answers" in advice.reason
    assert "several rounds" not in advice.reason


def test_without_trials_there_is_nothing_to_suggest():
    with pytest.raises(ConfigError, match="no trial"):
        suggest([])


def test_a_suggested_k_that_was_finetuned_says_what_that_came_to():
    advice = suggest([trial(1), trial(2, fit=0.94)])

    assert "94.0% of the hidden training pictures right, and 90.0% on validation" in advice.reason
    assert "Finetuned" not in suggest([trial(1, fit=0.94), trial(2)]).reason


def result(*rounds, groups):
    """Give a run's result; validation groups as (label, attribute, n, accuracy)."""
    scores = results.scores(groups)
    both = {"before": scores, "after": scores}
    return results.a_result({"test": both}, rounds=rounds)


def one_round(fit: float, *, fitted: bool = True) -> dict[str, object]:
    return {"fitted": fitted, "train_accuracy": fit}


GROUPS = [
    ("cow", "grass", 30, 1.0),
    ("cow", "sand", 10, 0.0),
    ("camel", "grass", 10, 0.2),
    ("camel", "sand", 40, 0.95),
    ("mule", "grass", 0, None),
]


def test_a_run_gives_its_training_and_validation_accuracy_and_the_worst_class_not_group():
    tuned = TunedScores.from_result(result(one_round(0.9), groups=GROUPS))

    # Cows 30 of 40 right, camels 2 + 38 of 50; no mule was asked about.
    assert tuned == TunedScores(train=0.9, validation=70 / 90, worst_class=0.75)


@pytest.mark.parametrize(
    ("rounds", "fit"),
    [
        ([one_round(0.9), one_round(0.8)], 0.8),
        ([one_round(0.9), one_round(0.4, fitted=False)], 0.9),
        ([one_round(0.3, fitted=False)], 0.3),
    ],
)
def test_of_several_rounds_the_one_whose_model_was_kept_counts(rounds, fit):
    assert TunedScores.from_result(result(*rounds, groups=GROUPS)).train == fit


def test_a_run_of_an_earlier_version_says_no_training_accuracy_and_none_is_made_up():
    assert TunedScores.from_result(result({"fitted": True}, groups=GROUPS)) is None


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 50)), min_size=1
    ).filter(lambda rows: any(n for _, _, n in rows)),
    st.randoms(use_true_random=False),
)
def test_relabelling_attributes_changes_nothing_of_a_trial(rows, random):
    groups = [
        (label, attribute, n, random.randint(0, n) / n if n else None)
        for label, attribute, n in rows
    ]
    renamed = [(label, random.choice("xyz"), *rest) for label, _, *rest in groups]

    told, again = (
        TunedScores.from_result(result(one_round(0.9), groups=g)) for g in (groups, renamed)
    )

    assert told == again


FRACTION = st.floats(0, 1)


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0]), FRACTION, FRACTION, FRACTION),
        min_size=1,
        unique_by=lambda row: row[0],
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_trials_does_not_matter_and_the_rule_is_kept(rows, random):
    trials = [trial(k, empty=e, right=r, fit=f) for k, e, r, f in rows]
    mixed = random.sample(trials, len(trials))

    advice = suggest(trials)

    assert suggest(mixed) == advice
    if advice.k is not None:
        best = next(t for t in trials if t.k == advice.k)
        assert best.empty_fraction <= min(t.empty_fraction for t in trials) + FEW_MORE
        assert best.lost >= LEAST_LOST
        assert best.tuned is not None
        assert best.tuned.train >= best.floor


def test_validation_accuracy_does_not_decide_because_validation_pictures_carry_the_clue():
    poor = TunedScores(train=0.9, validation=0.2, worst_class=0.0)
    trials = [trial(1, fit=0.9), replace(trial(2), tuned=poor)]

    assert suggest(trials).k == 2


def judged(k: float, verdict: str, **about) -> Trial:
    whole = HiddenGroup(
        label="all", count=9, right_before=9, fixed=0, broken=4, hidden_fraction=0.1, empty=0
    )
    hiding = Hiding(verdict=verdict, of=9, by="group", whole=whole, groups=(whole,))
    return replace(trial(k, **about), hiding=hiding)


def test_a_k_that_takes_away_what_the_model_leans_on_goes_before_a_larger_one():
    leans, unclear = judged(1, "leans on"), judged(2, "cannot tell")

    assert suggest([leans, unclear]).k == 1
    assert suggest([leans, judged(2, "leans on")]).k == 2
    assert "cannot tell" in suggest([unclear]).reason
    assert "cannot tell" not in suggest([leans]).reason


def test_a_k_that_takes_away_the_thing_itself_is_not_suggested():
    thing = judged(2, "the thing itself")

    assert suggest([judged(1, "cannot tell"), thing]).k == 1
    advice = suggest([judged(1, "the thing itself"), thing])
    assert advice.k is None
    assert "takes away the thing itself" in advice.reason


def test_the_reason_counts_the_pictures_in_which_nothing_is_hidden():
    assert "nothing in 4 of 1,000" in suggest([trial(1, empty=0.004)]).reason
    assert "nothing in" not in suggest([trial(1)]).reason


def test_no_larger_rate_is_suggested_unless_hiding_takes_away_what_the_model_leans_on():
    def slow(verdict):
        return suggest([replace(judged(2, verdict), lr=0.01, steps=19)])

    leans, unclear = slow("leans on"), slow("cannot tell")

    assert (leans.lr, unclear.lr) == (0.027, None)
    assert leans.lr_reason.endswith("models hardly moved. Try a rate of 0.027.")
    assert leans.reason.startswith("At k = 2 only")
    assert unclear.k == 2
    assert unclear.reason.startswith("The verdict here is “cannot tell”, not that hiding takes")
    assert unclear.lr_reason.endswith(
        "times 19 steps is 0.19: under 0.5 models hardly moved. A larger rate makes harm larger "
        "too: by this verdict none is suggested."
    )


def test_without_a_k_no_rate_is_suggested():
    slow = replace(trial(2, right=0.99), lr=0.01, steps=1)

    assert suggest([slow]).k is None
    assert suggest([slow]).lr is None
    assert suggest([replace(slow, hidden=0.5)]).lr == 0.05
