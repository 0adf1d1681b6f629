"""Which pictures stand for a test set."""

import numpy as np

from masktune.scores.predictions import Predictions
from masktune.scores.result import Pair
from masktune.show.contact_sheets import most_changed


def test_the_most_changed_come_first_and_the_groups_take_turns():
    labels, attributes = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0])
    right_before, right_after = np.array([0.9, 0.1, 0.5, 0.6]), np.array([0.8, 0.9, 0.0, 0.6])

    def said(right):
        shares = np.stack([right, 1 - right], axis=1)
        shares[3] = shares[3][::-1]
        return Predictions(shares, labels, attributes)

    # The right class of 0 to 2, one group, changed by 0.1, 0.8 and 0.5; 3 is a group of its own.
    assert most_changed(Pair(said(right_before), said(right_after))) == [1, 3, 2, 0]
