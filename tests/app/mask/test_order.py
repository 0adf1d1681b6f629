"""Which training pictures come first on Mask, and what is said about it."""

from contextlib import contextmanager
from dataclasses import replace
from math import exp
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
import torch
from torch import nn

from app import loaded
from app.mask import order
from app.mask.sheet import ALIKE, TRAINING, chosen_positions, how_chosen
from masktune.cache import Cache
from masktune.data.types import DatasetBundle, in_memory
from masktune.datasets.catalogue import CATALOGUE
from masktune.progress import unwatched
from masktune.scores.predictions import Predictions
from masktune.show.clues import group_numbers
from tests.app.load.test_does import Held
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


class Brightness(nn.Module):
    """Says class 1 the surer the more red there is; its only map is the red of each place."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 1, 1, bias=False)
        self.features.weight.data = torch.tensor([1.0, 0, 0]).reshape(1, 3, 1, 1)

    def forward(self, images):
        for_one = 5 * self.features(images).sum(dim=(1, 2, 3)) - 2.5
        return torch.stack([torch.zeros_like(for_one), for_one], dim=1)


@pytest.fixture
def four(monkeypatch):
    """Give four pictures of 2 x 2 places as the training set, and a model of known numbers."""
    red = torch.tensor([[1, 0.2, 0, 0], [0, 0, 0.8, 0.2], [0.4, 0, 0, 0], [1, 1, 0, 0]])
    pixels = torch.zeros(4, 3, 2, 2, dtype=torch.uint8)
    pixels[:, 0] = (255 * red).round().to(torch.uint8).reshape(4, 2, 2)
    labels, attributes = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 0, 1])
    parts = {n: in_memory(n, pixels, labels, attributes) for n in ("train", "validation", "test")}
    card = replace(CATALOGUE["biased-mnist-5k"], size=(2, 2))
    tests = {"test": parts["test"]}
    train, validation = parts["train"], parts["validation"]
    bundle = DatasetBundle(card=card, train=train, validation=validation, tests=tests)
    monkeypatch.setattr(loaded, "bundle", lambda *_, **__: bundle)
    monkeypatch.setattr(loaded, "checkpoint", lambda _: SimpleNamespace(model=Brightness().eval()))
    monkeypatch.setattr(loaded, "known", lambda _: "four pictures")


def scores(name, now, *, k):
    return order.scoring(name, now, k=k).make(unwatched)


def test_pictures_are_ordered_by_the_drop_that_hiding_them_at_k_makes(four):
    now = choice(layer="features", count=4)

    found = scores(order.DROP, now, k=0.0)

    # At the mean the brightest place goes: 5 * 1.2 - 2.5 becomes 5 * 0.2 - 2.5, and 2.5 likewise.
    # The third is answered 0, which nothing speaks for; the fourth is hot alike and stays whole.
    first, second = (sigmoid(was) - sigmoid(-1.5) for was in (3.5, 2.5))
    assert found.tolist() == pytest.approx([first, second, 0, 0], abs=1e-6)
    # At one sigma, 0.6 + 0.4 and 0.625 + 0.375 of the heat, nothing is hotter.
    assert scores(order.DROP, now, k=1.01).tolist() == pytest.approx([0, 0, 0, 0], abs=1e-6)


def test_pictures_are_ordered_by_how_like_a_groups_mean_their_heat_is(four):
    # The heat of the first two, which are the group, is (1, 0.2, 0, 0) and (0, 0, 1, 0.25); their
    # mean is (0.5, 0.1, 0.5, 0.125), 0.725 long. The third has none, the fourth (1, 1, 0, 0).
    found = scores(f"{order.HEAT}0", choice(layer="features", count=4), k=2.0)

    cosines = [0.52 / 1.04**0.5, 0.53125 / 1.0625**0.5, 0, 0.6 / 2**0.5]
    assert found.tolist() == pytest.approx([one / 0.725 for one in cosines], abs=1e-5)


def sigmoid(value):
    return 1 / (1 + exp(-value))


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

    (ask,) = [button for button in at.button if button.key == "ask_order"]
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


def test_an_order_that_was_asked_for_goes_on_while_somebody_clicks_until_it_is_stopped(
    home, open_page, slow_looks, monkeypatch
):
    monkeypatch.setattr(loaded, "_ANSWERS", Cache(most=16))
    monkeypatch.setattr(order, "_SCORES", Cache(most=8))
    at = open_page("mask", dataset="biased-mnist-5k", mask_order="sure", mask_pictures="6")
    monkeypatch.setattr(loaded, "ask", held := Held(loaded.ask))

    @contextmanager
    def stopping(*_, **__):
        yield lambda _: st.stop()

    monkeypatch.setattr("app.shared.wanted.shown_progress", stopping)
    at.button(key="ask_order").click().run()
    at.run()

    assert not at.exception
    assert held.begun == 1
    assert not held.ended.is_set()
    at.button(key="stop_order").click().run()
    assert held.ended.wait(5)  # with the order goes what it was waiting for
    assert not at.exception
    assert "ask_order" in [button.key for button in at.button]
    assert any("Drawn at random" in caption.value for caption in at.caption)
