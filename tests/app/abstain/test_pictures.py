"""Which pictures are held back or answered, and what is said under them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.abstain import pictures
from masktune.show.abstained import rank
from tests.app.abstain.test_files import pair_of_three
from tests.app.abstain.test_numbers import card, ranked


def test_the_least_sure_are_held_back_first_and_the_surest_mistakes_lead():
    answers = ranked([0.1, 0.9, 0.4, 0.8, 0.4, 0.7], [True, False, True, False, False, True])

    assert pictures.choose(answers, 0.4, kind="Abstained").tolist() == [0, 2, 4]
    assert pictures.choose(answers, 0.4, kind="Answered and wrong").tolist() == [1, 3]
    assert pictures.choose(answers, 0.4, kind="Answered and right").tolist() == [5]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1), st.integers(-1, 6))
def test_every_picture_is_of_exactly_one_kind(answers, gamma):
    all_of_them = ranked([float(a) for a, _ in answers], [c for _, c in answers])

    found = [pictures.choose(all_of_them, gamma, kind=kind) for kind in pictures.KINDS]

    assert sorted(np.concatenate(found).tolist()) == list(range(len(answers)))


def test_captions_give_both_answers_the_truth_and_the_score_and_escape_names():
    pair = pair_of_three()
    named = card(classes=("<cat>", "dog"))

    ((caption, words),) = pictures.captions(
        pair, rank(pair, pair).test["joint"], [1], kind="Abstained", names=named
    )

    assert "<b>&lt;cat&gt; / dog</b>" in caption
    assert "is dog<br>score 0.180" in caption
    assert words == "Abstained: dog, before <cat>, after dog, score 0.180"
