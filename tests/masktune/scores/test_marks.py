"""What was clicked leads to its pictures, as many as the mark says."""

import numpy as np
import pytest

from masktune.errors import ConfigError
from masktune.scores.marks import (
    MARKS,
    AbstainedMark,
    AnsweredMark,
    CellMark,
    ClassMark,
    ClueMark,
    DecileMark,
    Examples,
    FlipMark,
    GroupMark,
    OnlyMark,
    WrongMark,
    all_of,
    filters,
    ordered,
    orders,
    read_mark,
    written,
)
from masktune.scores.predictions import Predictions
from masktune.scores.result import Pair
from masktune.show.marks import captions, of_two, pictures_csv

# Six pictures: three cows, three camels; on grass (0) or sand (1).
LABELS = np.array([0, 0, 0, 1, 1, 1])
PLACES = np.array([0, 1, 1, 0, 1, 1])
BEFORE = np.array([0.9, 0.4, 0.3, 0.6, 0.2, 0.1])  # how sure of a cow
AFTER = np.array([0.8, 0.6, 0.4, 0.7, 0.3, 0.6])


class Herd:
    classes = ("cow", "camel")
    attributes = ("grass", "sand")


def said(cow: np.ndarray) -> Predictions:
    return Predictions(np.stack([cow, 1 - cow], axis=1), LABELS, PLACES)


@pytest.fixture
def herd() -> Examples:
    return Examples.of_pair(Pair(before=said(BEFORE), after=said(AFTER)), Herd())


@pytest.mark.parametrize(
    ("mark", "rows", "title"),
    [
        (GroupMark("test", 1), [1, 2], "cow, sand"),
        (GroupMark("test", 2), [3], "camel, grass"),
        (ClassMark("test", 1), [3, 4, 5], "camel"),
        (CellMark("test", "before", 0, 1), [1, 2], "cow, answered camel before"),
        (CellMark("test", "after", 0, 1), [2], "cow, answered camel after"),
        (FlipMark("test", "fixed"), [1], "Fixed"),
        (FlipMark("test", "broken"), [5], "Broken"),
        (FlipMark("test", "still wrong"), [2, 3], "Still wrong"),
        (FlipMark("test", "still wrong", 2, "a:b"), [3], "Still wrong, camel, grass"),
        # joint: 0.72 0.24 0.42 0.42 0.56 0.36 -> surest 0, 4, then 2 and 3 tie.
        (AnsweredMark("test", "joint", 2), [0, 4], "Answered by the joint score"),
        (AnsweredMark("test", "joint", 4, 3), [4], "Answered by the joint score, camel, sand"),
        (AnsweredMark("test", "joint", 2, run="a:b"), [0, 4], "Answered by the joint score"),
        (all_of("test", 6), [0, 1, 2, 3, 4, 5], "All pictures"),
        (all_of("test", 6, 3, run="a:b"), [4, 5], "camel, sand"),
        # the joint score takes 2 and 3 for what they are not, as both models do
        (WrongMark("test", "joint", 4), [2, 3], "Answered wrongly by the joint score"),
        (WrongMark("test", "joint", 4, 1), [2], "Answered wrongly by the joint score, cow, sand"),
        (AbstainedMark("test", "joint", 4), [1, 5], "Abstained by the joint score"),
        (AbstainedMark("test", "joint", 0), [0, 1, 2, 3, 4, 5], "Abstained by the joint score"),
        # before alone: 0.9 0.6 0.7 0.6 0.8 0.9; ranks of 6 fall into deciles 1 2 4 6 7 9.
        (
            DecileMark("test", "before", 1),
            [1],
            "Decile 1 of 10 by the before score, the least sure",
        ),
        (DecileMark("test", "before", 2), [3], "Decile 2 of 10 by the before score"),
        (DecileMark("test", "before", 9), [5], "Decile 9 of 10 by the before score"),
    ],
)
def test_the_pictures_behind_a_mark_of_six_pictures(mark, rows, title, herd):
    assert mark.rows(herd).tolist() == rows
    assert mark.title(herd) == title
    assert read_mark(written(mark)) == mark


def test_what_one_of_two_runs_alone_answers_rightly_are_two_sets_of_pictures(herd):
    # The other run's model after answers as this run's model before.
    both = of_two(herd, said(BEFORE))
    this, other = (OnlyMark("test", right, "a:b") for right in ("this", "other"))

    assert this.rows(both).tolist() == [1]
    assert other.rows(both).tolist() == [5]
    assert OnlyMark("test", "other", "a:b", 1).rows(both).tolist() == []
    assert other.title(both) == "Only the other is right"
    assert read_mark(written(this)) == this
    with pytest.raises(ConfigError, match="There is no run “both”"):
        OnlyMark("test", "both", "a:b").rows(both)
    assert set(filters(both)) >= {"right by this run", "wrong by the other run"}
    assert ordered(np.arange(6), both, by="changed").tolist()[:2] == [5, 1]
    [caption] = captions(both, [1], None)
    assert "fixed" not in caption[0]
    assert "camel by the other run (60% sure), cow by this run (60% sure)" in caption[1]
    head = pictures_csv(both, [1], split="test").decode().splitlines()[0]
    assert head.endswith("by the other run,by the other run sure,by this run,by this run sure")


def test_pictures_chosen_by_the_joint_score_say_whether_it_is_right(herd):
    # Picture 1 is mended by the model after, and the product goes by it; 2 is wrong in both.
    by_both = captions(herd, [1, 2], None, score="joint")

    assert ["right by the joint score" in words for _, words in by_both] == [True, False]
    assert ["wrong by the joint score" in shown for shown, _ in by_both] == [False, True]
    assert captions(herd, [1], None, score="before") == captions(herd, [1], None)


def test_a_clue_is_of_the_pictures_that_it_was_found_in(herd):
    found = Examples(
        labels=herd.labels,
        groups=herd.groups,
        classes=herd.classes,
        names=herd.names,
        clues=[np.array([0, 3, 5]), np.array([1, 2])],
    )

    assert ClueMark("train", 2).rows(found).tolist() == [1, 2]
    with pytest.raises(ConfigError, match="no clue 3 in these pictures: 2 were found"):
        ClueMark("train", 3).rows(found)


def test_every_cell_of_a_matrix_together_holds_every_picture_once(herd):
    cells = [CellMark("test", "after", is_, said) for is_ in (0, 1) for said in (0, 1)]

    rows = [row for cell in cells for row in cell.rows(herd).tolist()]

    assert sorted(rows) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("group:test:4", "There is no group 4 in these pictures: they have 4"),
        ("group:test:-1", "There is no group -1"),
        ("class:test:2", "There is no class 2 in these pictures: they have 2"),
        ("cell:test:later:0:0", "There is no model “later”"),
        ("cell:test:before:0:7", "There is no class 7"),
        ("flip:test:lost", "There is no change “lost”"),
        ("answered:test:own:3", "There is no score “own”"),
        ("answered:test:joint:3", "No threshold of the joint score answers just 3 of these 6"),
        ("abstained:test:joint:7", "answers just 7 of these 6"),
        ("answered:test:joint:2:9", "There is no group 9"),
        ("flip:test:fixed:9", "There is no group 9"),
        ("wrong:test:own:3", "There is no score “own”"),
        ("decile:test:joint:11", "There is no decile 11"),
        ("clue:train:1", "There is no clue 1"),
    ],
)
def test_a_mark_that_does_not_fit_the_pictures_says_why(text, said, herd):
    with pytest.raises(ConfigError, match=said):
        read_mark(text).rows(herd)


@pytest.mark.parametrize(
    "text", ["", "group", "group:test", "group:test:x", "group:test:1:2", "picture:test:1"]
)
def test_what_is_no_mark_is_refused_with_the_way_to_write_one(text):
    with pytest.raises(ConfigError, match="names no pictures"):
        read_mark(text)


def test_every_kind_says_in_its_name_what_an_address_begins_with():
    assert [kind.kind for kind in MARKS.values()] == [*MARKS]


def test_pictures_are_filtered_by_what_became_of_their_answers(herd):
    found = {name: np.flatnonzero(inside).tolist() for name, inside in filters(herd).items()}

    assert found == {
        "fixed": [1],
        "broken": [5],
        "still wrong": [2, 3],
        "still right": [0, 4],
        "right before": [0, 4, 5],
        "wrong before": [1, 2, 3],
        "right after": [0, 1, 4],
        "wrong after": [2, 3, 5],
    }


def test_pictures_are_put_in_the_order_asked_for(herd):
    rows = np.arange(6)

    assert ordered(rows, herd, by="data").tolist() == [0, 1, 2, 3, 4, 5]
    # The right class moved by 0.1 0.2 0.1 0.1 0.1 0.5.
    assert ordered(rows, herd, by="changed").tolist()[:2] == [5, 1]
    # The model after is sure by 0.8 0.6 0.6 0.7 0.7 0.6.
    assert ordered(rows, herd, by="unsure").tolist() == [1, 2, 5, 3, 4, 0]
    assert ordered(rows, herd, by="sure").tolist()[0] == 0
    assert ordered(rows, herd, by="sure", score="joint").tolist()[:2] == [0, 4]


def test_one_model_alone_is_right_or_wrong_and_nothing_changed(herd):
    alone = Examples(
        labels=herd.labels,
        groups=herd.groups,
        classes=herd.classes,
        names=herd.names,
        said={"before": herd.said["before"]},
    )

    assert {name: int(found.sum()) for name, found in filters(alone).items()} == {
        "right": 3,
        "wrong": 3,
    }
    assert orders(alone) == ("data", "unsure", "sure")
    assert ordered(np.arange(6), alone, by="unsure").tolist() == [1, 3, 2, 4, 0, 5]
