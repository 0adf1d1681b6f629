import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from masktune.compute import accelerator
from masktune.training.whole_batch import whole

ROOT = Path(__file__).resolve().parents[3]

SHARED = """
import torch
from types import SimpleNamespace
from torch import nn
from masktune.__main__ import leave
from masktune.compute import accelerator
from masktune.data.types import Batch, in_memory
from masktune.config import TrainConfig
from masktune.data.preprocess import Preprocess
from masktune.training.fit import _averaged, fit
from masktune.training.rivals.divdis import DivDis
from masktune.training.rivals.osp import Constraints, OneSided
from masktune.training.rivals.selectivenet import SelectionHeads, SelectiveNet

compute = accelerator("cpu")
alone = SimpleNamespace(num_processes=1, reduce=lambda part, _: part)
chance = torch.Generator().manual_seed(0)
images, others = (torch.randn(8, 1, 1, 3, generator=chance) for _ in range(2))
labels = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
split = in_memory("unlabelled", torch.zeros(8, 3, 1, 1, dtype=torch.uint8), labels)


def gradients(objective_of, compute, mine):
    torch.manual_seed(1)
    model, further = nn.Sequential(nn.Flatten(), nn.Linear(3, 2)), nn.Linear(3, 2)
    objective = objective_of(further, compute)
    wrapped = compute.prepare_model(model) if compute.num_processes > 1 else model
    batch = Batch(torch.arange(8)[mine], images[mine], labels[mine], labels[mine])
    loss, _ = objective.loss(wrapped, images[mine], batch, others[mine])
    loss.backward()
    _averaged(objective.modules(), compute)
    parts = [p.grad for m in (model, objective.modules()) for p in m.parameters()]
    return torch.cat([part.flatten() for part in parts] + [*objective.modules().buffers()])


def divdis(further, compute):
    heads = nn.ModuleList([further])
    return DivDis("1", heads, unlabelled=split, compute=compute)


def osp(_, compute):
    return OneSided(Constraints(2, trade_off=1.0), trade_off=1.0, compute=compute)


def selectivenet(further, compute):
    heads = SelectionHeads(3, 2)
    heads["selection"] = nn.Linear(3, 1)  # without batch norm, which sees half batches
    return SelectiveNet("1", heads, coverage=0.9, compute=compute)


half = slice(4 * compute.process_index, 4 * compute.process_index + 4)
for objective_of in (divdis, osp, selectivenet):
    found = gradients(objective_of, compute, half)
    wanted = gradients(objective_of, alone, slice(None))
    assert torch.allclose(found, wanted, atol=1e-6), (objective_of, found, wanted)
assert compute.num_processes == 2

pixels = torch.randint(0, 255, (8, 3, 1, 1), generator=chance).to(torch.uint8)
heads = SelectionHeads(3, 2)
fit(
    nn.Sequential(nn.Flatten(), nn.Linear(3, 2)),
    in_memory("train", pixels, labels),
    objective=SelectiveNet("1", heads, coverage=0.9, compute=compute),
    config=TrainConfig(epochs=1, batch_size=8, lr=0.1),
    stage="finetune",
    preprocess=Preprocess(),
    compute=compute,
)
first, second = compute.gather(heads["selection"][2].running_mean[None])
assert torch.equal(first, second)
assert first.any()
print("the same")
compute.end_training()
leave(0)  # as commands do
"""


def test_one_process_has_the_whole_batch():
    part = torch.tensor([1.0, 2.0], requires_grad=True)

    sums = whole(part, accelerator("cpu"))
    sums.prod().backward()

    assert sums.tolist() == [1.0, 2.0]
    assert part.grad.tolist() == [2.0, 1.0]


def test_a_part_has_the_gradient_that_the_mean_over_processes_makes_that_of_the_sum():
    part = torch.tensor([1.0, 2.0], requires_grad=True)
    two = SimpleNamespace(num_processes=2, reduce=lambda mine, _: mine + torch.tensor([3.0, 4.0]))

    sums = whole(part, two)
    sums.prod().backward()

    assert sums.tolist() == [4.0, 6.0]
    assert part.grad.tolist() == [12.0, 8.0]  # twice that of 4 * 6 by each


@pytest.mark.slow
def test_two_processes_have_the_gradient_of_the_batch_that_they_share(tmp_path):
    (tmp_path / "shared.py").write_text(SHARED)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]

    done = subprocess.run(
        [*launcher, "--standalone", str(tmp_path / "shared.py")],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the same") == 2
