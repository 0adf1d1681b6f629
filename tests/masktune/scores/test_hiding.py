"""The verdict before the epoch: hand-made groups of which the right answer is plain."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from masktune.scores.evidence import apart
from masktune.scores.flips import Change
from masktune.scores.hiding import (
    RULE,
    Covered,
    HiddenGroup,
    Hiding,
    Measured,
    together,
    verdict_of,
    weigh_hiding,
)
from masktune.scores.json_types import as_json, as_type
from masktune.scores.predictions import Predictions


def group(label, attribute, count, right, *, before=None, hidden=0.1, **covered) -> HiddenGroup:
    """Give a group of which ``right`` pictures are still answered right when hidden."""
    before = count if before is None else before
    return HiddenGroup(
        label=label,
        attribute=attribute,
        count=count,
        right_before=before,
        fixed=max(right - before, 0),
        broken=max(before - right, 0),
        hidden_fraction=hidden,
        empty=0,
        **{name: Covered(share, count) for name, share in covered.items()},
    )


SQUARES = [
    group("0–4", "no square", 17, 14, thing=0.08, rest=0.03),
    group("0–4", "square", 1731, 559, hidden=0.03, clue=1.0, thing=0.0, rest=0.03),
    group("5–9", "no square", 1734, 1734, thing=0.05, rest=0.03),
    group("5–9", "square", 18, 15, clue=0.0, thing=0.05, rest=0.03),
]
"""The digits at k = 2, as measured."""

COWS = [
    group("cow", "grass", 570, 567, hidden=0.15, clue=0.11, thing=0.26, rest=0.11),
    group("cow", "desert", 30, 30, hidden=0.15, clue=0.09, thing=0.23, rest=0.09),
    group("camel", "grass", 30, 26, before=26, hidden=0.15, clue=0.12, thing=0.2, rest=0.12),
    group("camel", "desert", 570, 221, before=567, hidden=0.18, clue=0.2, thing=0.05, rest=0.2),
]
"""The cows before a background that tells, k = 1, as measured."""

BIRDS = [
    group("land", "land", 3498, 3113),
    group("land", "water", 184, 39),
    group("water", "land", 56, 8),
    group("water", "water", 1057, 909),
]
"""All of Waterbirds at k = 1, as measured outside the project: 89 / 21 / 14 / 86 %."""


def test_squares_that_are_covered_and_whose_pictures_break_are_what_the_model_leans_on():
    assert verdict_of(SQUARES) == "leans on"


def test_a_background_of_which_a_part_is_covered_is_not_what_hiding_takes_away():
    assert verdict_of(COWS) == "cannot tell"


def test_where_the_rare_groups_break_and_the_common_ones_stay_it_is_the_thing_itself():
    assert verdict_of(BIRDS) == "the thing itself"


def bare(groups):
    return [replace(one, clue=None, thing=None, rest=None) for one in groups]


@pytest.mark.parametrize("groups", [SQUARES, COWS], ids=["squares", "cows"])
def test_accuracies_alone_cannot_tell_squares_from_cows(groups):
    assert verdict_of(bare(groups)) == "cannot tell"


def test_rare_groups_that_together_lose_less_than_five_points_prove_nothing():
    common = [group("a", "x", 9000, 9000), group("b", "y", 9000, 9000)]
    few, most = group("a", "y", 1000, 900), group("b", "x", 4000, 4000)  # 2 points together

    assert verdict_of([*common, few, most]) == "cannot tell"
    assert verdict_of([*common, few, replace(most, count=900, right_before=900)]) == (
        "the thing itself"  # 5.3 points
    )


def test_the_rare_groups_say_nothing_where_the_rows_are_no_groups():
    assert verdict_of(BIRDS, by="class") == "cannot tell"
    assert verdict_of(BIRDS, by="clue") == "cannot tell"


@pytest.mark.parametrize(
    ("covered", "expected"),
    [
        ({"clue": 0.34, "thing": 0.1, "rest": 0.1}, "leans on"),
        ({"clue": 0.32, "thing": 0.1, "rest": 0.1}, "cannot tell"),  # not a third of it
        ({"clue": 0.34, "thing": 0.35, "rest": 0.3}, "cannot tell"),  # more of the thing
        ({"clue": 0.34, "thing": 0.35, "rest": 0.1}, "the thing itself"),
        ({"clue": 0.0, "thing": 0.2, "rest": 0.1}, "the thing itself"),
        ({"clue": 0.0, "thing": 0.19, "rest": 0.1}, "cannot tell"),  # not twice the rest
        ({"clue": 0.25, "thing": 0.2, "rest": 0.1}, "cannot tell"),  # more of the clue
        ({"clue": 0.9}, "leans on"),  # nobody knows the thing
        ({"thing": 0.3, "rest": 0.1}, "the thing itself"),  # nobody knows the clue
        ({}, "cannot tell"),
    ],
)
def test_what_is_covered_decides_what_a_broken_group_means(covered, expected):
    assert verdict_of([group("a", "x", 100, 50, **covered), group("b", "x", 100, 99)]) == expected


def test_a_clue_that_is_hidden_no_more_than_the_picture_is_not_singled_out():
    # Half of everything is hidden, and half of the clue with it.
    assert verdict_of([group("a", "x", 100, 50, hidden=0.5, clue=0.5)]) == "cannot tell"
    assert verdict_of([group("a", "x", 100, 50, hidden=0.25, clue=0.5)]) == "leans on"


def test_only_the_pictures_that_break_say_what_is_covered():
    # The stamp is covered where nothing breaks; where it does, the animal is.
    stamped = group("cow", "stamp", 500, 500, clue=1.0, thing=0.0, rest=0.1)
    plain = group("camel", "none", 500, 300, thing=0.5, rest=0.1)

    assert verdict_of([stamped, plain]) == "the thing itself"
    assert verdict_of([replace(stamped, broken=300), plain]) == "leans on"


def test_what_is_covered_is_not_averaged_over_groups_of_which_one_shows_the_clue_whole():
    hit = group("a", "square", 100, 0, clue=1.0, thing=0.1, rest=0.1)
    spared = group("b", "square", 100, 0, clue=0.0, thing=0.1, rest=0.1)
    assert verdict_of([hit]) == "leans on"
    assert verdict_of([hit, spared]) == "cannot tell"
    # A rare group does not speak for all, and one without the clue says nothing about it.
    assert verdict_of([group("a", "square", 1000, 0, clue=1.0), spared]) == "leans on"
    assert verdict_of([hit, replace(spared, clue=None)]) == "leans on"


def test_the_thing_is_hidden_in_each_group_that_breaks_or_it_is_not_the_thing_itself():
    hit = group("a", "x", 100, 0, thing=0.6, rest=0.1)
    spared = group("b", "x", 100, 0, thing=0.0, rest=0.1)
    assert verdict_of([hit, replace(spared, thing=Covered(0.4, 100))]) == "the thing itself"
    assert verdict_of([hit, spared]) == "cannot tell"


def test_where_no_group_breaks_nothing_that_matters_is_hidden():
    assert verdict_of([group("a", "x", 500, 499), group("b", "x", 500, 500)]) == (
        "nothing that matters"
    )


def test_few_pictures_do_not_show_that_nothing_is_lost():
    # All twelve stay right, and a loss of ten points would go unseen.
    assert verdict_of([group("a", "x", 6, 6), group("b", "x", 6, 6)]) == "cannot tell"
    # Of sixty each group shows that it keeps three quarters, and a loss of six points is not seen.
    assert verdict_of([group("a", "x", 30, 30), group("b", "x", 30, 30)]) == "cannot tell"
    assert verdict_of([group("a", "x", 60, 59), group("b", "x", 60, 60)]) == "nothing that matters"


def test_groups_that_the_model_is_wrong_on_do_not_show_that_nothing_is_lost():
    # It answers the same class to all: half of the pictures have no right answer to lose.
    groups = [group("a", "x", 500, 500), group("b", "x", 500, 0, before=0)]
    assert together(groups).change.interval[0] > -0.05
    assert verdict_of(groups) == "cannot tell"
    assert verdict_of([groups[0], group("b", "x", 500, 5, before=5)]) == "cannot tell"
    assert verdict_of([groups[0], group("b", "x", 500, 100, before=100)]) == "nothing that matters"


def test_rare_groups_alone_do_not_keep_it_from_being_told_that_nothing_is_lost():
    common = [group("a", "x", 460, 460), group("b", "y", 440, 440)]

    rare = [group("a", "y", 99, 0, before=0), group("b", "x", 1, 1)]
    assert verdict_of([*common, *rare]) == "nothing that matters"
    # From a tenth of the pictures on they are not rare.
    assert verdict_of([*common, replace(rare[0], count=101), rare[1]]) == "cannot tell"


def test_the_kept_verdicts_are_those_of_the_rule():
    kept = Path(__file__).parents[3] / "docs" / "results" / "verdicts"
    rows = [row for file in kept.glob("*.json") for row in json.loads(file.read_text())["rows"]]
    found = [as_type(Hiding, row["hiding"]) for row in rows]

    assert {one.verdict for one in found} >= {"leans on", "nothing that matters", "cannot tell"}
    assert [verdict_of(one.groups, by=one.by) for one in found] == [one.verdict for one in found]


def test_a_clear_loss_under_five_points_breaks_no_group():
    small = group("a", "x", 20_000, 19_200, clue=1.0)  # 4 points, far from 0

    assert small.change.interval[1] < 0
    assert verdict_of([small]) == "nothing that matters"
    assert verdict_of([replace(small, broken=1000)]) == "leans on"


def test_a_loss_that_chance_explains_breaks_no_group():
    # 2 of 18 is more than five points and not clear.
    assert verdict_of([group("a", "x", 18, 16, clue=1.0), group("b", "x", 3000, 3000)]) == (
        "nothing that matters"
    )


def test_groups_are_judged_together():
    # Alone 5 of 20 are a clear loss, among twenty groups they are not.
    loss = group("a", "x", 20, 15, clue=1.0)
    others = [group("a", f"y{n}", 20, 20) for n in range(19)]

    assert verdict_of([loss]) == "leans on"
    assert verdict_of([loss, *others]) != "leans on"


def test_a_common_group_that_keeps_less_than_three_quarters_does_not_stay_right():
    lost = replace(BIRDS[0], broken=900)  # of 3,498

    assert verdict_of([lost, *BIRDS[1:]]) == "cannot tell"


def test_rare_groups_that_lose_no_more_than_the_common_ones_say_nothing():
    alike = [group("a", "x", 1000, 850), group("a", "y", 40, 33)]

    assert verdict_of(alike) == "cannot tell"


def test_several_groups_as_one_weigh_what_is_covered_by_the_pictures_that_show_it():
    one = group("a", "x", 10, 5, hidden=0.2, clue=1.0, thing=0.4, rest=0.0)
    other = group("a", "y", 30, 30, hidden=0.4, thing=0.0, rest=0.2)

    both = together([one, other])

    assert (both.count, both.right_before, both.broken) == (40, 40, 5)
    assert both.hidden_fraction == pytest.approx(0.35)
    assert both.clue == Covered(1.0, 10)
    assert both.thing == Covered(pytest.approx(0.1), 40)
    assert both.rest == Covered(pytest.approx(0.15), 40)


def answers(right, labels, attributes=None):
    """Give predictions that are right where told."""
    said = np.where(right, labels, 1 - np.asarray(labels))
    return Predictions(np.eye(2)[said], np.asarray(labels), attributes)


LABELS, ATTRIBUTES = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])
NAN = float("nan")
MEASURED = Measured(
    hidden=np.array([0.5, 0.0, 0.1, 0.3]),
    clue=np.array([1.0, NAN, NAN, 0.5]),
    thing=np.array([0.0, 0.2, 0.4, 0.0]),
    rest=np.array([0.1, 0.0, 0.0, 0.2]),
)


def test_each_group_has_its_answers_and_what_is_covered_in_it():
    hiding = weigh_hiding(
        answers([1, 1, 1, 0], LABELS, ATTRIBUTES),
        answers([0, 1, 1, 1], LABELS, ATTRIBUTES),
        MEASURED,
        of=9,
        classes=("cow", "camel"),
        attributes=("grass", "sand"),
    )
    cow, other, camel = hiding.groups

    assert (hiding.by, hiding.of, hiding.whole.count) == ("group", 9, 4)
    assert (cow.label, cow.attribute, cow.right_before, cow.broken, cow.fixed) == (
        *("cow", "grass", 1, 1, 0),
    )
    assert (other.empty, other.clue, other.thing) == (1, None, Covered(0.2, 1))
    assert (camel.count, camel.fixed, camel.hidden_fraction) == (2, 1, pytest.approx(0.2))
    assert camel.clue == Covered(0.5, 1)
    assert hiding.empty_fraction == 0.25
    assert hiding.whole.clue == Covered(0.75, 2)


def test_without_attributes_places_stand_in_for_groups_or_the_classes_do():
    said = answers([1, 1, 1, 1], LABELS), answers([0, 1, 1, 1], LABELS)

    classes = weigh_hiding(*said, Measured(hidden=np.ones(4)), of=4, classes=("a", "b"))
    places = weigh_hiding(
        *said,
        Measured(hidden=np.ones(4)),
        of=4,
        clues={"centre": np.array([0, 2]), "top": np.array([1, 3])},
    )

    assert (classes.by, [g.label for g in classes.groups]) == ("class", ["a", "b"])
    assert (places.by, [g.label for g in places.groups]) == ("clue", ["centre", "top"])
    assert [g.broken for g in places.groups] == [1, 0]
    assert classes.groups[0].clue is None


def test_a_verdict_comes_back_from_json_and_shows_accuracies_there():
    hiding = Hiding(
        verdict="leans on", of=9, by="group", whole=together(SQUARES), groups=tuple(SQUARES)
    )
    document = hiding.to_json()

    assert as_type(Hiding, as_json(hiding)) == hiding
    assert as_type(Hiding, document) == hiding
    assert document["groups"][1]["before"] == 1.0
    assert document["groups"][1]["after"] == pytest.approx(559 / 1731)
    assert document["groups"][1]["clue"] == {"share": 1.0, "pictures": 1731}
    assert [g.label for g in hiding.broken] == ["0–4"]
    assert hiding.telling.clue == Covered(1.0, 1731)


def test_two_changes_are_apart_when_their_intervals_together_say_so():
    common = Change("a", count=100, right_before=100, fixed=0, broken=10)

    assert apart(common, common)[0] < 0 < apart(common, common)[1]
    assert apart(replace(common, broken=60), common)[1] < 0
    assert apart(replace(common, count=0, right_before=0, broken=0), common) is None


def test_the_rule_names_its_own_numbers():
    assert "5 points" in RULE
    assert "75%" in RULE
    assert "a third" in RULE
    assert "twice" in RULE
