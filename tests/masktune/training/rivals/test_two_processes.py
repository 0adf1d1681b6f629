"""Rivals on two processes: by gloo on the CPU, as NCCL would on GPUs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[4]

SCRIPT = """
import sys

import torch
from torch import nn

from masktune.__main__ import leave
from masktune.compute import accelerator
from masktune.config import TrainConfig
from masktune.data.preprocess import Preprocess
from masktune.data.types import in_memory
from masktune.training.fit import ERM, fit
from masktune.training.rivals.cvar_dro import CVaR
from masktune.training.rivals.groupdro import GroupDRO
from masktune.training.rivals.lff import LfF

compute = accelerator("cpu")
chance = torch.Generator().manual_seed(0)
labels, attributes = torch.arange(48) % 2, torch.arange(48) % 3 % 2
pixels = torch.randint(0, 90, (48, 3, 4, 4), generator=chance)
pixels += 90 * attributes[:, None, None, None]
split = in_memory("train", pixels.to(torch.uint8), labels, attributes)


def flat(scale):
    # Batch norm would see half batches, and nothing could be as on one process.
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    for parameter in model.parameters():
        nn.init.constant_(parameter, scale)
    nn.init.constant_(model[1].weight[0], -scale)
    return model


objectives = {
    "groupdro": GroupDRO(
        split, attributes=2, classes=2, step=0.5, adjustment=0.5, compute=compute
    ),
    "cvar-dro": CVaR(share=0.3, compute=compute),
    "lff": LfF(flat(0.02), split, classes=2, power=0.7, compute=compute),
    "batch norm": ERM(),
}
found = {}
for name, objective in objectives.items():
    start = flat(0.01)
    if name == "batch norm":
        start.insert(1, nn.BatchNorm1d(48))
    model = fit(
        start,
        split,
        objective=objective,
        config=TrainConfig(epochs=3, batch_size=12, lr=0.1),
        stage="finetune",
        preprocess=Preprocess(),
        compute=compute,
    )
    found[name] = {"model": model.state_dict(), "objective": objective.modules().state_dict()}
torch.save(found, f"{sys.argv[1]}-{compute.process_index}.pt")
compute.end_training()
leave(0)  # as commands do
"""


def launched(words, *, processes):
    """Run a command on some processes; fail with what it said."""
    several = ("-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--standalone")
    done = subprocess.run(
        [sys.executable, *(several if processes > 1 else ()), *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    for processes in (1, 2):
        launched([str(script), str(tmp_path / f"{processes}")], processes=processes)

    one, first, second = (
        torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in ("1-0", "2-0", "2-1")
    )
    for rival, parts in one.items():
        for part, tensors in parts.items():
            for name, wanted in tensors.items():
                case, found = (rival, part, name), first[rival][part][name]
                assert torch.equal(found, second[rival][part][name]), case
                if rival != "batch norm":
                    assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-5), case
    assert one["groupdro"]["objective"]["weights.q"].max() > 0.3  # they have moved from 1/4
    assert one["lff"]["objective"]["difficulty.averages"].min() >= 0  # all pictures were seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rival", "fact"), [("groupdro", "weights of groups"), ("lff", "mean weight")]
)
def test_a_rival_runs_on_two_processes_from_settings_to_result(tmp_path, rival, fact):
    out = tmp_path / "two"
    words = ["-m", "masktune", "run", "--dataset", "biased-mnist-5k", "--model", "bundled"]
    words += ["--rival", rival, "--epochs", "1", "--batch-size", "64", "--out", str(out), "--json"]

    document = json.loads(launched(words, processes=2))

    lines = (out / "events.jsonl").read_text().splitlines()
    # 3,500 training pictures in batches of 64: each step once, not once in each process.
    assert [e["step"] for e in map(json.loads, lines)] == list(range(1, 56))
    assert len(document["rival"][fact]) == 4
    assert not list(out.glob("tuning-*"))
