"""Which training pictures come first on Mask, and what is said about it."""

import numpy as np
import pytest
import torch

from app import loaded
from app.mask import order
from app.mask.sheet import ALIKE, TRAINING, chosen_positions, how_chosen
from masktune.scores.predictions import Predictions
from masktune.show.clues import group_numbers
from tests.app.mask.test_page import choice


def said(*rows, labels):
    return Predictions(np.array(rows), np.array(labels))


BEFORE = said([0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.55, 0.45], labels=[0, 0, 1, 1])
"""Right and sure; wrong and unsure; right; wrong and least sure."""


@pytest.mark.parametrize(
    ("name", "first"),
    [
        (order.WRONG, [1, 3, 2, 0]),  # the wrong ones give their own class 0.4 and 0.45
        (order.UNSURE, [3, 1, 2, 0]),
        (order.SURE, [0, 2, 1, 3]),
    ],
)
def test_answers_order_pictures_by_error_and_by_confidence(name, first):
    assert order.by_answers(name, BEFORE).argsort(descending=True).tolist() == first


def test_a_right_answer_never_comes_before_a_wrong_one():
    # Of three classes: the right answer gives its own class 0.34, the wrong one 0.45.
    three = said([0.34, 0.33, 0.33], [0.1, 0.45, 0.45 + 1e-9], labels=[0, 1])

    assert order.by_answers(order.WRONG, three).argmax() == 1


def test_the_drop_is_what_the_first_answer_loses_whatever_is_answered_then():
    after = said([0.2, 0.8], [0.4, 0.6], [0.0, 1.0], [0.5, 0.5], labels=[0, 0, 1, 1])

    assert order.drop(BEFORE, after).tolist() == pytest.approx([0.7, 0.0, -0.2, 0.05])


def test_heat_is_like_a_groups_where_it_lies_in_the_same_place_however_strong():
    heat = torch.zeros(4, 2, 2)
    heat[0, 0, 0], heat[1, 0, 0], heat[2, 1, 1] = 1.0, 0.1, 1.0  # the last has none
    members = torch.tensor([True, False, False, False])

    assert order.likeness(heat, members).tolist() == pytest.approx([1.0, 1.0, 0.0, 0.0])


def test_the_sheet_has_the_highest_scores_first_and_other_pictures_are_the_next(digits):
    scores = torch.arange(len(digits.train)).double()
    last = len(digits.train) - 1

    first, second = (chosen_positions(choice(count=6, draw=n), digits, scores) for n in (0, 1))

    assert first == [last - n for n in range(6)]
    assert second == [last - n for n in range(6, 12)]
    # 18 pictures of 5-9 with a square fill three sheets of 6: then it begins again.
    of_group = [chosen_positions(choice(count=6, draw=n, by=3), digits, scores) for n in (0, 3)]
    assert of_group[0] == of_group[1]
    assert group_numbers(digits.train, 2)[of_group[0]].tolist() == [3] * 6
    alike = chosen_positions(choice(count=8, by=ALIKE), digits, scores)
    assert torch.bincount(group_numbers(digits.train, 2)[alike]).tolist() == [2, 2, 2, 2]


def test_as_in_training_is_the_first_order_and_each_is_told_in_a_sentence(digits):
    found = order.orders(digits)

    assert list(found)[:5] == ["training", "wrong", "unsure", "sure", "drop"]
    assert found["heat:1"] == "heat as in 0–4, square"
    words = {name: order.first_words(name, digits, k=1.5) for name in found}
    assert words["training"] == ""
    assert words["drop"].endswith("when they are hidden at k = 1.5")
    assert how_chosen(choice(by=3), digits, first=words["unsure"]) == (
        "Of the 18 training pictures of 5–9, square: the least sure answers first. They do not "
        "show what is usual in training."
    )
    assert how_chosen(choice(by=TRAINING), digits, first=words["heat:1"]).startswith(
        "Of all 3,500 training pictures: those first whose heat is most like the mean heat of 0–4"
    )


def test_an_order_that_takes_long_is_offered_with_its_time_and_the_sheet_stays_as_it_is(
    home, open_page, monkeypatch
):
    # A clock that moves by a second at each look: 3,500 pictures seem to take minutes.
    now = iter(range(100_000))
    monkeypatch.setattr(loaded.time, "monotonic", lambda: float(next(now)))
    for kept in (loaded._ANSWERS, loaded._SAMPLES):
        kept.clear()

    at = open_page("mask", dataset="biased-mnist-5k", mask_order="wrong", mask_pictures="6")

    (ask,) = [button for button in at.button if button.key == "order_ask"]
    assert ask.label == "Ask about all of them (about 10 min)"  # 3,500 / 6 s
    assert any("Drawn at random" in caption.value for caption in at.caption)
    ask.click().run()
    assert any("wrong answers first" in caption.value for caption in at.caption)
    loaded._ANSWERS.clear()
    at.run()  # ordered once, it stays so
    assert any("wrong answers first" in caption.value for caption in at.caption)
    assert not loaded.has_answers(choice().subject, "train")
    for kept in (loaded._ANSWERS, loaded._SAMPLES):
        kept.clear()
