"""The same run on two processes: torch.distributed by gloo on the CPU, as NCCL would on GPUs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from masktune.scores.result import RunPredictions

ROOT = Path(__file__).resolve().parents[3]
COMMAND = ["-m", "masktune", "run", "--dataset", "biased-mnist-5k", "--model", "bundled", "--json"]


@pytest.mark.slow
def test_two_processes_share_the_batches_and_one_of_them_speaks(tmp_path):
    # As README says it, with no word about the device: the launcher's wish is honoured.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]

    done = subprocess.run(
        [*launcher, "--standalone", *COMMAND, "--out", str(tmp_path / "two")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)  # one document, not one from each process
    # 3,500 training pictures in batches of 64: each step once, not once in each process.
    events = (tmp_path / "two" / "events.jsonl").read_text().splitlines()
    steps = [(e["stage"], e["step"], e["total"]) for e in map(json.loads, events)]
    assert steps == [("finetune", n, 55) for n in range(1, 56)]
    stored = RunPredictions.read(tmp_path / "two" / "predictions.npz").tests["biased"]
    # Every example is answered once and in its place, although the processes interleave them.
    assert stored.after.probabilities.shape == (1000, 2)
    assert np.allclose(stored.after.probabilities.sum(axis=1), 1)
    # Batch norm sees half batches, so the numbers move a little, the finding does not.
    scores = document["test"]["biased"]
    assert scores["before"]["average"] < 0.5
    assert scores["after"]["average"] > 0.85
