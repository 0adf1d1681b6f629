"""Predictions of a run, written and read back."""

import numpy as np

from masktune.scores.predictions import Predictions
from masktune.scores.result import Pair, RunPredictions


def test_a_test_set_whose_name_holds_slashes_is_read_back(tmp_path):
    said = Predictions(np.eye(2, dtype=np.float32), np.array([0, 1]), np.array([-1, -1]))
    pair = Pair(said, said)
    (tmp_path / "p.npz").write_bytes(
        RunPredictions(validation=pair, tests={"test-a/b": pair, "c": pair}).to_bytes()
    )

    found = RunPredictions.read(tmp_path / "p.npz")

    assert list(found.tests) == ["test-a/b", "c"]
    assert np.array_equal(found.tests["test-a/b"].after.probabilities, said.probabilities)
