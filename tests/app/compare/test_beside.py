"""Other runs beside the shown one: which stand there at first, and the way to a curve over k."""

from dataclasses import replace

import pytest

from app.compare.beside import at_first, how_to_sweep, left_out_words
from masktune.runs.index import Digest
from tests.app.shared.test_run_rows import CONFIG, job


def test_how_to_get_a_curve_over_k_depends_on_the_run(tmp_path):
    assert "Only k = 2 so far" in how_to_sweep(job("a", tmp_path))
    assert "such as 1.0 and 3.0" in how_to_sweep(job("a", tmp_path))
    assert "such as 2.0 and 3.0" in how_to_sweep(job("a", tmp_path, k=1.0))
    assert "has no k" in how_to_sweep(job("a", tmp_path, strategy="random"))


def test_runs_of_the_same_model_stand_beside_it_at_first_controls_leading(tmp_path):
    shown = job("a", tmp_path)
    other_k, control = job("b", tmp_path, k=1.0), job("c", tmp_path, strategy="none")
    other_seed = job("d", tmp_path, config=replace(CONFIG, seed=1))

    assert at_first(shown, [other_k, other_seed, control]) == ("c", "b")


def test_controls_at_the_rate_and_rounds_of_a_run_lead_those_at_others(tmp_path):
    shown, none = job("a", tmp_path), {"strategy": "none"}
    other_rate = job("b", tmp_path, config=replace(CONFIG, finetune_lr=0.5), **none)
    other_rounds = job("c", tmp_path, rounds=2, **none)
    own = job("d", tmp_path, **none)

    assert at_first(shown, [other_rate, other_rounds, own]) == ("d", "b", "c")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataset": "two-squares-mnist-5k"}, "mine, on other pictures (Two squares MNIST)"),
        ({"root": "/elsewhere"}, "mine, on other pictures (Biased MNIST)"),
        ({"seed": 1}, "mine, on another split of these pictures (seed 1)"),
        ({"validation": "test"}, "mine, which sees or splits these pictures otherwise"),
        ({"only_before": True, "model": None}, "mine, which only trained a model"),
    ],
    ids=str,
)
def test_why_a_chosen_run_cannot_stand_beside_another_is_said(tmp_path, changes, words):
    shown = job("a", tmp_path)
    other = job("b", tmp_path, config=replace(CONFIG, **changes))
    done = replace(other, name="mine", digest=Digest(tests={}, took=1.0))

    assert left_out_words("b", done, shown) == words


def test_a_chosen_run_that_has_no_numbers_is_said_to_have_none(tmp_path):
    shown, other = job("a", tmp_path), replace(job("b", tmp_path), name="mine")

    assert left_out_words("b", None, shown) == "b, which is not here any more"
    assert left_out_words("b", other, shown) == "mine, whose result cannot be read"
    waits = replace(other, state="queued")
    assert left_out_words("b", waits, shown) == "mine, which is not finished"
