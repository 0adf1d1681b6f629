import math

import numpy as np
import pytest

from masktune.scores.overall import overall
from masktune.scores.predictions import Predictions


def said(probabilities, labels):
    return Predictions(np.array(probabilities, dtype=np.float64), np.array(labels))


def test_accuracy_and_loss_are_over_all_pictures():
    found = overall(said([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.5, 0.5]], [0, 1, 1, 0]))

    assert (found.count, found.right, found.accuracy) == (4, 3, 0.75)
    assert found.loss == pytest.approx(-math.log(0.9 * 0.6 * 0.2 * 0.5) / 4)
    assert found.interval == pytest.approx((0.301, 0.954), abs=1e-3)  # Wilson of 3 out of 4


def test_one_picture_that_the_model_calls_impossible_leaves_the_loss_a_number():
    found = overall(said([[1.0, 0.0], [1.0, 0.0]], [0, 1]))

    assert found.loss == pytest.approx(708.4 / 2, abs=0.1)  # -ln 2.2e-308
