"""Weights go back into the code they came from."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes, load_checkpoint
from masktune.models.build import build
from masktune.runs.export import weights_bytes

PICTURES = torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)

PARALLEL = """
import sys, torch, torchvision

model = torch.nn.DataParallel(torchvision.models.resnet18(num_classes=4))
checkpoint = torch.load(sys.argv[1])
model.load_state_dict(checkpoint["state_dict"])
assert checkpoint["epoch"] == 7 and checkpoint["arch"] == "resnet18", checkpoint.keys()
assert not {"optimizer", "scheduler"} & set(checkpoint)
model.eval()
with torch.no_grad():
    torch.save(model(torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)), sys.argv[2])
assert not [name for name in sys.modules if name.startswith("masktune")]
"""

HANDMADE = """
import sys, torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(b)
        self.conv2 = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(b)
        self.shrink = stride
    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.shrink == 2:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, x.shape[1] // 2, x.shape[1] // 2))
        return F.relu(x + y)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        widths = [(16, 16, 1), (16, 32, 2), (32, 64, 2)]
        for i, (a, b, s) in enumerate(widths, 1):
            blocks = Block(a, b, s), Block(b, b, 1), Block(b, b, 1)
            setattr(self, f"layer{i}", nn.Sequential(*blocks))
        self.linear = nn.Linear(64, 4)
    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))

model = nn.DataParallel(Net())
model.load_state_dict(torch.load(sys.argv[1])["state_dict"])
model.eval()
with torch.no_grad():
    torch.save(model(torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)), sys.argv[2])
assert not [name for name in sys.modules if name.startswith("masktune")]
"""


def tuned(checkpoint):
    """Give the checkpoint after a change of every weight, through a run folder's file."""
    with torch.no_grad():
        for parameter in checkpoint.model.parameters():
            parameter.mul_(1.01)
    return checkpoint


@pytest.mark.parametrize(
    ("arch", "script"),
    [("resnet18", PARALLEL), ("resnet20", HANDMADE)],
    ids=["torchvision", "handmade"],
)
@pytest.mark.slow
def test_tuned_weights_drop_back_into_code_without_masktune(arch, script, tmp_path):
    model = build(arch, 4, seed=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1).state_dict()
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    came = {"epoch": 7, "arch": arch, "state_dict": state, "optimizer": optimizer}
    torch.save(came, tmp_path / "came.pth.tar")
    after = tuned(load_checkpoint(tmp_path / "came.pth.tar"))
    (tmp_path / "after.safetensors").write_bytes(checkpoint_bytes(after))

    suffix, content = weights_bytes(load_checkpoint(tmp_path / "after.safetensors"))
    (tmp_path / f"out{suffix}").write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", script, f"out{suffix}", "logits.pt"],
        cwd=tmp_path,
        env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert suffix == ".pth.tar"
    with torch.no_grad():
        wanted = after.model(PICTURES)
    assert torch.allclose(torch.load(tmp_path / "logits.pt"), wanted, atol=1e-5)
    assert not torch.allclose(model.eval()(PICTURES), wanted, atol=1e-3)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_the_layout_comes_out_as_it_went_in(zipped, tmp_path):
    state = {f"net.module.{k}": v for k, v in build("resnet20", 4).state_dict().items()}
    state["net.module.AuxLogits.weight"] = torch.ones(2)
    inner = {"state_dict": state, "seed": 3}
    came = {"model": inner, "accuracy": 0.5, "classes": ["a", "b"], "model_ema": {"a": state}}
    came |= {"optimizer": {"param_groups": [{"lr": 0.1}]}, "scheduler": {"_last_lr": [0.1]}}
    torch.save(came, tmp_path / "a.th", _use_new_zipfile_serialization=zipped)

    suffix, content = weights_bytes(load_checkpoint(tmp_path / "a.th"))
    (tmp_path / "b").write_bytes(content)
    went = torch.load(tmp_path / "b")

    assert suffix == ".th"
    assert (content[:2] == b"PK") == zipped
    assert {**went, "model": None} == {"model": None, "accuracy": 0.5, "classes": ["a", "b"]}
    assert went["model"]["seed"] == 3
    assert list(went["model"]["state_dict"]) == list(state)
    assert all(torch.equal(v, state[k]) for k, v in went["model"]["state_dict"].items())


def test_a_network_that_was_stored_twice_goes_out_tuned_twice(tmp_path):
    state = build("resnet20", 4).state_dict()
    came = {
        f"module.{part}.{k}": v for part in ("model", "attacker.model") for k, v in state.items()
    }
    torch.save(came, tmp_path / "a.pt")
    after = tuned(load_checkpoint(tmp_path / "a.pt"))

    (tmp_path / "b.pt").write_bytes(weights_bytes(after)[1])
    went = torch.load(tmp_path / "b.pt")

    for part in ("model", "attacker.model"):
        assert torch.equal(went[f"module.{part}.linear.weight"], after.model.linear.weight)


def test_safetensors_go_out_as_safetensors_with_their_notes(tmp_path):
    state = {f"backbone.{k}": v for k, v in build("resnet20", 4).state_dict().items()}
    save_file(state, tmp_path / "a.safetensors", {"author": "somebody"})

    suffix, content = weights_bytes(load_checkpoint(tmp_path / "a.safetensors"))
    (tmp_path / "b.safetensors").write_bytes(content)

    assert suffix == ".safetensors"
    assert set(load_file(tmp_path / "b.safetensors")) == set(state)
    assert b'"author":"somebody"' in content


def test_what_was_trained_here_and_what_is_asked_so_goes_out_for_masktune(tmp_path):
    model = build("resnet20", 4).eval()
    here = Checkpoint(model=model, arch="resnet20", classes=4, lr=0.1)
    torch.save({"net": model.state_dict()}, tmp_path / "a.pt")
    given = load_checkpoint(tmp_path / "a.pt")

    for checkpoint, file_format in ((here, "original"), (given, "safetensors")):
        suffix, content = weights_bytes(replace(checkpoint), file_format=file_format)
        (tmp_path / f"b{suffix}").write_bytes(content)
        assert suffix == ".safetensors"
        assert load_checkpoint(tmp_path / f"b{suffix}").arch == "resnet20"
