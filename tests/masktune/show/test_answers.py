"""Captions under pictures: who says what."""

from types import SimpleNamespace

import numpy as np

from masktune.scores.groups import GroupScore
from masktune.scores.predictions import Predictions
from masktune.scores.result import Pair
from masktune.show.answers import answers_at


def said(*cow):
    """Give what a model says of cows, by how probable a cow is."""
    probabilities = np.array([[share, 1 - share] for share in cow])
    none = np.zeros(len(cow), dtype=np.int64)
    return Predictions(probabilities=probabilities, labels=none, attributes=none)


def run(before, after):
    scores = [GroupScore("cow", "any", 2, None, None)]
    return SimpleNamespace(
        pair=Pair(before=before, after=after),
        classes=("cow", "camel"),
        groups=np.zeros(2, dtype=np.int64),
        before=SimpleNamespace(scores=scores),
    )


def test_beside_another_run_the_caption_has_its_answer_and_not_the_model_before_s():
    this = run(said(0.9, 0.9), said(0.8, 0.7))
    other = run(said(0.9, 0.9), said(0.1, 0.2))

    (alone,) = answers_at(this, [1])
    (beside,) = answers_at(this, [1], other=other)

    assert (alone.before, alone.after, alone.state) == ("cow", "cow", "still right")
    assert (beside.before, beside.after, beside.state) == ("camel", "cow", "fixed")
    assert beside.words().endswith("camel by the other run (80% sure), cow by this run (70% sure)")
