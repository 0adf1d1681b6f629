"""Predictions and result of a run, written and read back."""

import json
from pathlib import Path

import numpy as np
import torch

from masktune.data.card import DatasetCard
from masktune.data.images import TensorImages
from masktune.data.types import DatasetBundle, Split
from masktune.scores.predictions import Predictions
from masktune.scores.result import (
    MaskingResult,
    Pair,
    RoundResult,
    RunPredictions,
    RunResult,
    score_split,
    score_tests,
)


def test_a_test_set_whose_name_holds_slashes_is_read_back(tmp_path):
    said = Predictions(np.eye(2, dtype=np.float32), np.array([0, 1]), np.array([-1, -1]))
    pair = Pair(said, said)
    (tmp_path / "p.npz").write_bytes(
        RunPredictions(validation=pair, tests={"test-a/b": pair, "c": pair}).to_bytes()
    )

    found = RunPredictions.read(tmp_path / "p.npz")

    assert list(found.tests) == ["test-a/b", "c"]
    assert np.array_equal(found.tests["test-a/b"].after.probabilities, said.probabilities)


def a_result() -> RunResult:
    """The result of a run on one test set of two cows and a camel; no rate was recorded."""
    said = Predictions(np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]]), np.array([0, 0, 1]))
    card = DatasetCard(
        key="herd", title="", summary="", classes=("cow", "camel"), size=(8, 8), recipe="",
        source="", licence="",
    )  # fmt: skip
    labels, pixels = torch.tensor([0, 1]), torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    split = Split(
        name="train",
        images=TensorImages(pixels),
        labels=labels,
        attributes=torch.full((2,), -1),
    )
    bundle = DatasetBundle(card=card, train=split, validation=split, tests={})
    pair = Pair(said, said)
    return RunResult(
        folder=Path("a-run"),
        dataset="herd",
        seed=0,
        config={},
        device="cpu",
        test=score_tests(RunPredictions(validation=pair, tests={"test": pair}), bundle),
        validation=score_split("validation", pair, bundle),
        masking=MaskingResult(
            rounds=(RoundResult(k=2.0, hidden_fraction=0.1, empty_fraction=0.0),), layer=None
        ),
        seconds={"train": 1.0},
    )


def test_a_result_is_read_back_as_it_was_written():
    result = a_result()

    written = json.dumps(result.to_json(), allow_nan=False)

    assert RunResult.from_json(json.loads(written), folder=Path("a-run")) == result


def test_json_has_no_infinity_so_the_threshold_that_answers_all_is_null():
    rows = a_result().to_json()["selective"]["test"]

    assert rows[0] == {
        "score": "joint", "target": 1.0, "coverage": 1.0, "error": 1 / 3, "gamma": None,
    }  # fmt: skip


def test_what_is_not_known_is_left_out_but_a_network_without_maps_has_the_layer_null():
    masking = a_result().to_json()["masking"]

    assert masking == {
        "rounds": [{"k": 2.0, "hidden_fraction": 0.1, "empty_fraction": 0.0, "fitted": True}],
        "layer": None,
        "stopped_early": False,
    }
