"""The same run on two processes: torch.distributed by gloo on the CPU, as NCCL would on GPUs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.models.build import build
from masktune.scores.result import RunPredictions

ROOT = Path(__file__).resolve().parents[3]


def two_processes(*words):
    """Carry out a command as README says it, with no word about the device."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*launcher, "--standalone", "-m", "masktune", *words, "--json"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # one document, not one from each process


def steps(folder):
    """Give every training step that a run has recorded: stage, number, of how many."""
    lines = (folder / "events.jsonl").read_text().splitlines()
    return [(e["stage"], e["step"], e["total"]) for e in map(json.loads, lines)]


@pytest.mark.slow
def test_two_processes_share_the_batches_and_one_of_them_speaks(tmp_path):
    words = ("--dataset", "biased-mnist-5k", "--model", "bundled", "--out", str(tmp_path / "two"))

    document = two_processes("run", *words)

    # 3,500 training pictures in batches of 64: each step once, not once in each process.
    assert steps(tmp_path / "two") == [("finetune", n, 55) for n in range(1, 56)]
    stored = RunPredictions.read(tmp_path / "two" / "predictions.npz").tests["biased"]
    # Every example is answered once and in its place, although the processes interleave them.
    assert stored.after.probabilities.shape == (1000, 2)
    assert np.allclose(stored.after.probabilities.sum(axis=1), 1)
    # Batch norm sees half batches, so the numbers move a little, the finding does not.
    scores = document["test"]["biased"]
    assert scores["before"]["average"] < 0.5
    assert scores["after"]["average"] > 0.85


@pytest.mark.slow
def test_two_processes_train_a_model_alone_as_they_do_within_a_run(tmp_path):
    words = ("--dataset", "biased-mnist-5k", "--epochs", "1", "--out")

    document = two_processes("train", *words, str(tmp_path / "alone"))

    two_processes("run", *words, str(tmp_path / "run"))
    # 3,500 training pictures in batches of 64: each step once, not once in each process.
    assert steps(tmp_path / "alone") == [("train", n, 55) for n in range(1, 56)]
    assert [*document["test"]["biased"]] == ["before"]
    alone, within = (
        load_checkpoint(tmp_path / name / "before.safetensors").model.state_dict()
        for name in ("alone", "run")
    )
    assert all(torch.equal(alone[name], within[name]) for name in within)


@pytest.mark.slow
def test_two_processes_agree_on_the_best_epoch_and_on_what_is_frozen(tmp_path):
    words = ["--dataset", "cows-and-camels-stamp", "--epochs", "2", "--batch-size", "64"]
    words += ["--schedule", "cosine", "--warmup", "0.5", "--optimizer", "adamw", "--lr", "0.001"]
    words += ["--best", "worst-group", "--patience", "2", "--freeze", "features.1"]
    words += ["--batch-norm", "frozen", "--out", str(tmp_path / "two")]

    document = two_processes("run", *words)

    assert document["best_epoch"] in (1, 2)
    start = build("small-cnn-stride2", 2, seed=0).state_dict()
    before, after = (
        load_checkpoint(tmp_path / "two" / f"{name}.safetensors").model.state_dict()
        for name in ("before", "after")
    )
    statistics = {name for name, _ in build("small-cnn-stride2", 2).named_buffers()}
    for name in start:
        still = name.startswith(("features.0.", "features.1."))
        assert torch.equal(start[name], before[name]) == still
        assert torch.equal(before[name], after[name]) == (still or name in statistics)


@pytest.mark.slow
def test_an_experiment_on_two_processes_has_one_writer_and_one_table(tmp_path):
    words = ("--scale", "tiny", "--seeds", "1", "--out", str(tmp_path))

    table = two_processes("reproduce", "biased-mnist-5k", *words)

    folder = tmp_path / "biased-mnist-5k-tiny"
    (erm,) = (tmp_path / "erm").glob("*/seed-0")
    assert json.loads((folder / "table.json").read_text()) == table
    assert {path.name for path in folder.iterdir()} == {
        "seed-0", "study.json", "table.json", "table.md",
    }  # fmt: skip
    for run in (erm, *(folder / "seed-0").iterdir()):
        finetune = [n for stage, n, _ in steps(run) if stage == "finetune"]
        assert finetune == list(range(1, 220))  # 3,500 pictures in batches of 16, each step once
        assert (run / "log.txt").read_text().count(" done\n") == 1
    assert [n for stage, n, _ in steps(erm) if stage == "train"] == list(range(1, 220))
