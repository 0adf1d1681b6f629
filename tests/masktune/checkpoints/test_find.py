"""Weights are found, named and fitted wherever programs put them."""

import argparse
import collections
import pathlib

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.checkpoints.inspect import diagnose
from masktune.models.build import build


@pytest.fixture(scope="module")
def resnet():
    model = build("resnet20", 4, seed=3).train()
    model(torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(1)))
    return model.eval()


@pytest.fixture(scope="module")
def pictures():
    return torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(2))


def prefixed(prefix):
    return lambda state: {prefix + name: value for name, value in state.items()}


def split_head(backbone, head):
    """Name a backbone and its head apart, as in a class that holds both."""
    return lambda state: {
        (head + name.removeprefix("linear") if name.startswith("linear") else backbone + name): v
        for name, v in state.items()
    }


def robust(state):
    """Lay the network out as robustness does: twice, beside its normalisation."""
    stats = {"new_mean": torch.full((3, 1, 1), 0.5), "new_std": torch.full((3, 1, 1), 0.25)}
    return {
        **{f"module.normalizer.{k}": v for k, v in stats.items()},
        **prefixed("module.model.")(state),
        **{f"module.attacker.normalize.{k}": v for k, v in stats.items()},
        **prefixed("module.attacker.model.")(state),
    }


def old(state):
    return {name: v for name, v in state.items() if "num_batches" not in name}


def averaged(state):
    return {"n_averaged": torch.tensor(5), **prefixed("module.")(state)}


def half(state):
    return {name: v.half() if v.is_floating_point() else v for name, v in state.items()}


RENAMED = {
    "bare": lambda state: state,
    "parallel": prefixed("module."),
    "compiled": prefixed("_orig_mod."),
    "both": prefixed("_orig_mod.module."),
    "lightning": prefixed("model."),
    "group-dro": prefixed("network."),
    "wilds": prefixed("model.module."),
    "backbone": prefixed("backbone."),
    "net": prefixed("net."),
    "encoder": prefixed("encoder."),
    "normalised-sequential": lambda s: {
        "0.mean": torch.tensor([0.1, 0.2, 0.3]), "0.std": torch.ones(3), **prefixed("1.")(s)
    },
    "split": split_head("backbone.", "linear"),
    "own-head": split_head("backbone.", "classifier"),
    "own-head-deeper": split_head("module.backbone.", "module.head.out"),
    "featurizer": split_head("featurizer.network.", "classifier"),
    "robustness": robust,
    "old": old,
    "averaged": averaged,
}  # fmt: skip

WRAPPED = {
    "bare": (),
    "state_dict": ("state_dict",),
    "model": ("model",),
    "model_state_dict": ("model_state_dict",),
    "net": ("net",),
    "network": ("network",),
    "algorithm": ("algorithm",),
    "weights": ("weights",),
    "params": ("params",),
    "ema": ("state_dict_ema",),
    "model_ema": ("model_ema",),
    "nested": ("model", "state_dict"),
    "deep": ("algorithm", "network", "state_dict"),
}


def wrapped(content, path):
    for key in reversed(path):
        content = {key: content, "seed": 1}
    return content


@pytest.mark.parametrize("renamed", RENAMED)
def test_every_way_of_naming_gives_the_same_logits(renamed, resnet, pictures, tmp_path):
    torch.save({"state_dict": RENAMED[renamed](resnet.state_dict())}, tmp_path / "a.pth")

    loaded = load_checkpoint(tmp_path / "a.pth")

    assert (loaded.arch, loaded.classes, loaded.channels) == ("resnet20", 4, 3)
    assert torch.equal(loaded.model(pictures), resnet(pictures))


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("place", WRAPPED)
def test_every_place_of_the_weights_is_found(place, zipped, resnet, tmp_path):
    content = wrapped(resnet.state_dict(), WRAPPED[place])
    torch.save(content, tmp_path / "a.ckpt", _use_new_zipfile_serialization=zipped)

    found = diagnose(tmp_path / "a.ckpt")

    assert (found.verdict, found.problem) == ("ok", "")
    assert found.format == ("torch zip" if zipped else "torch legacy")
    assert load_checkpoint(tmp_path / "a.ckpt").origin.path == WRAPPED[place]


@pytest.mark.parametrize("suffix", [".pt", ".bin", ".safetensors", ""])
def test_the_kind_is_told_by_bytes_and_not_by_name(suffix, resnet, tmp_path):
    torch.save(resnet.state_dict(), tmp_path / f"a{suffix}")
    save_file(resnet.state_dict(), tmp_path / f"b{suffix}")

    assert diagnose(tmp_path / f"a{suffix}").format == "torch zip"
    assert diagnose(tmp_path / f"b{suffix}").format == "safetensors"
    assert diagnose(tmp_path / f"b{suffix}").verdict == "ok"


def test_half_precision_loads_as_full(resnet, pictures, tmp_path):
    torch.save(half(resnet.state_dict()), tmp_path / "a.pt")

    model = load_checkpoint(tmp_path / "a.pt").model

    assert {value.dtype for value in model.parameters()} == {torch.float32}
    assert torch.allclose(model(pictures), resnet(pictures), atol=0.02)


def test_trained_weights_come_before_their_running_average(resnet, tmp_path):
    average = {name: torch.zeros_like(value) for name, value in resnet.state_dict().items()}
    torch.save({"state_dict_ema": average, "state_dict": resnet.state_dict()}, tmp_path / "a.pt")

    assert torch.equal(load_checkpoint(tmp_path / "a.pt").model.conv1.weight, resnet.conv1.weight)


def test_settings_called_model_do_not_hide_the_weights(resnet, tmp_path):
    torch.save({"model": {"depth": 20}, "weights": resnet.state_dict()}, tmp_path / "a.pt")

    assert load_checkpoint(tmp_path / "a.pt").origin.path == ("weights",)


def test_plain_company_is_read_and_foreign_numbers_with_it(resnet, tmp_path):
    company = {
        "args": argparse.Namespace(lr=0.3, root=pathlib.Path("/data")),
        "best": np.float64(0.75),
        "history": np.arange(5),
        "seen": collections.defaultdict(list, a=[1]),
        "epoch": 12,
    }
    torch.save({"state_dict": resnet.state_dict(), **company}, tmp_path / "a.pt")

    loaded = load_checkpoint(tmp_path / "a.pt")

    assert (loaded.lr, loaded.epoch) == (0.3, 12)
    assert loaded.origin.extras[0] == {"best": 0.75, "seen": {"a": [1]}, "epoch": 12}


def test_the_rate_is_the_optimizers_last_one_in_masktunes_own_files(resnet, tmp_path):
    optimizer = torch.optim.SGD(resnet.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1], gamma=0.1)
    optimizer.step()
    schedule.step()
    parts = {"model": resnet, "optimizer": optimizer, "scheduler": schedule}
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save({**state, "epoch": 99, "accuracy": 0.5}, tmp_path / "a.pt")

    found = diagnose(tmp_path / "a.pt")

    assert found.lr == pytest.approx(0.01)
    assert found.epoch == 99


def test_the_schedulers_rate_serves_where_no_optimizer_is(resnet, tmp_path):
    content = {"net": resnet.state_dict(), "scheduler": {"_last_lr": [0.002]}, "lr": 5.0}
    torch.save(content, tmp_path / "a.pt")

    assert diagnose(tmp_path / "a.pt").lr == 0.002


@pytest.mark.parametrize("kept", ["robustness", "metadata", "settings", "none"])
def test_a_normalisation_in_the_file_is_read(kept, resnet, tmp_path):
    state, mean, std = resnet.state_dict(), (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
    if kept == "metadata":
        save_file(state, tmp_path / "a", {"mean": str(list(mean)), "std": str(list(std))})
    elif kept == "settings":
        torch.save({"net": state, "pretrained_cfg": {"mean": mean, "std": std}}, tmp_path / "a")
    else:
        torch.save(robust(state) if kept == "robustness" else state, tmp_path / "a")

    loaded = load_checkpoint(tmp_path / "a")
    said = diagnose(tmp_path / "a").to_json()["normalisation"]

    assert said == (None if kept == "none" else "0.5 0.5 0.5 / 0.25 0.25 0.25")
    assert (loaded.mean, loaded.std) == ((None, None) if kept == "none" else (mean, std))


def test_a_network_stored_twice_must_be_twice_the_same(resnet, tmp_path):
    state = robust(resnet.state_dict())
    state["module.attacker.model.linear.bias"] = state["module.model.linear.bias"] + 1
    torch.save(state, tmp_path / "a.pt")

    assert diagnose(tmp_path / "a.pt").verdict == "refused"


def test_grey_pictures_and_one_logit_are_read_off_the_weights(tmp_path):
    torch.save(build("resnet20", 1, channels=1).state_dict(), tmp_path / "a.pt")

    found = diagnose(tmp_path / "a.pt")

    assert (found.arch, found.classes, found.channels) == ("resnet20", 1, 1)
    assert load_checkpoint(tmp_path / "a.pt", classes=2).classes == 1


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantised_weights_are_refused_by_name(tmp_path):
    odd = torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8)
    torch.save({"fc.weight": odd}, tmp_path / "a.pt")

    assert "quantised weights (fc.weight)" in diagnose(tmp_path / "a.pt").problem


def test_a_linear_model_of_ones_own_needs_its_name(tmp_path):
    torch.save(nn.Linear(3, 2).state_dict(), tmp_path / "a.pt")

    found = diagnose(tmp_path / "a.pt")

    assert found.verdict == "refused"
    assert "--arch package.module:factory" in found.remedy


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_weights_of_bytes_are_quantised_ones(dtype, resnet, tmp_path):
    state = resnet.state_dict()
    torch.save({**state, "linear.weight": torch.zeros(4, 64).to(dtype)}, tmp_path / "a.pt")

    assert "quantised weights (linear.weight)" in diagnose(tmp_path / "a.pt").problem


def test_a_small_file_that_looks_large_is_refused(tmp_path):
    views = {f"layer{i}.weight": torch.zeros(1000).expand(10, 1000) for i in range(50)}
    torch.save(views, tmp_path / "a.pt")

    assert "far more than the file can hold" in diagnose(tmp_path / "a.pt").problem


def test_odd_rates_and_means_are_passed_over(resnet, tmp_path):
    odd = {"lr": torch.zeros(3), "mean": torch.eye(3).to_sparse(), "std": [1, "a", 3], "epoch": "x"}
    torch.save({"net": resnet.state_dict(), **odd}, tmp_path / "a.pt")

    found = load_checkpoint(tmp_path / "a.pt")

    assert (found.lr, found.mean, found.std, found.epoch) == (None, None, None, None)


def test_numbers_that_are_no_floats_are_passed_over(resnet, tmp_path):
    odd = {"lr": torch.tensor([1 + 2j]), "mean": [10**400] * 3, "std": [1, 1, 1]}
    torch.save({"net": resnet.state_dict(), **odd}, tmp_path / "a.pt")

    found = load_checkpoint(tmp_path / "a.pt")

    assert (found.lr, found.mean, found.std) == (None, None, None)


@pytest.mark.parametrize(
    ("lr", "read"), [(".5", 0.5), ("1e-4", 1e-4), (2, 2.0), (torch.tensor(0.25), 0.25), ("x", None)]
)
def test_a_rate_is_read_as_people_write_it(lr, read, resnet, tmp_path):
    torch.save({"net": resnet.state_dict(), "hparams": {"lr": lr}}, tmp_path / "a.pt")

    assert load_checkpoint(tmp_path / "a.pt").lr == read
