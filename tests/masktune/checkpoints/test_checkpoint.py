import json
import pickle
import sys
import types

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from masktune.checkpoints.checkpoint import (
    Checkpoint,
    checkpoint_bytes,
    load_checkpoint,
    read_tensors,
)
from masktune.checkpoints.inspect import diagnose
from masktune.checkpoints.start import pretrained
from masktune.errors import ModelError
from masktune.models.build import build


@pytest.fixture
def checkpoint():
    model = build("small-cnn", 3, seed=4).eval()
    return Checkpoint(model=model, arch="small-cnn", classes=3, lr=0.00125)


def same(a, b):
    return all(torch.equal(value, b.state_dict()[name]) for name, value in a.state_dict().items())


def test_a_checkpoint_survives_its_file_with_its_last_rate(checkpoint, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(checkpoint_bytes(checkpoint, dataset="toy"))

    again = load_checkpoint(path)

    assert (again.arch, again.classes, again.lr) == ("small-cnn", 3, 0.00125)
    assert same(again.model, checkpoint.model)
    assert not again.model.training
    assert read_tensors(path)[1]["dataset"] == "toy"


@pytest.mark.parametrize("key", [None, "state_dict", "model", "model_state_dict", "net"])
def test_weights_of_other_programs_are_found_and_lose_their_prefix(key, checkpoint, tmp_path):
    weights = {f"module.{name}": value for name, value in checkpoint.model.state_dict().items()}
    torch.save(weights if key is None else {key: weights, "epoch": 7}, tmp_path / "a.pt")

    again = load_checkpoint(tmp_path / "a.pt", arch="small-cnn")

    assert same(again.model, checkpoint.model)
    assert again.classes == 3
    assert again.lr is None


class Canary:
    def __reduce__(self):
        return (pytest.fail, ("code in a checkpoint was executed",))


def test_nothing_in_a_file_is_ever_executed(tmp_path):
    (tmp_path / "a.pt").write_bytes(pickle.dumps({"model": Canary()}, protocol=2))

    with pytest.raises(ModelError, match="PyTorch did not write"):
        load_checkpoint(tmp_path / "a.pt", arch="small-cnn")


def write(path, kind, checkpoint):
    weights = dict(checkpoint.model.state_dict())
    match kind:
        case "other":
            torch.save(build("resnet20", 3).state_dict(), path)
        case "partial":
            weights.pop("head.bias")
            torch.save(weights, path)
        case "truncated":
            torch.save(weights, path)
            path.write_bytes(path.read_bytes()[:1000])
        case "text":
            path.write_text("<html>404</html>")
        case "numbers":
            torch.save({"epoch": 3}, path)
        case "scalars":
            torch.save({"step": torch.tensor(1)}, path)


@pytest.mark.parametrize("kind", ["other", "partial", "truncated", "text", "numbers", "scalars"])
def test_a_file_that_does_not_fit_exactly_is_refused_with_a_remedy(kind, checkpoint, tmp_path):
    write(tmp_path / "a.pt", kind, checkpoint)

    with pytest.raises(ModelError) as caught:
        load_checkpoint(tmp_path / "a.pt", arch="small-cnn")

    assert caught.value.problem
    assert caught.value.remedy


def test_a_damaged_safetensors_file_is_refused(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"\xff" * 20)

    with pytest.raises(ModelError, match="is not a PyTorch or safetensors file"):
        load_checkpoint(tmp_path / "a.safetensors")


def test_a_file_that_names_no_architecture_asks_for_it(tmp_path):
    save_file({"weight": torch.zeros(2, 2)}, tmp_path / "a.safetensors")

    with pytest.raises(ModelError, match="which architecture"):
        load_checkpoint(tmp_path / "a.safetensors")


def test_a_model_of_one_logit_is_said_to_tell_two_classes_apart(tmp_path):
    single = Checkpoint(model=build("small-cnn", 1), arch="small-cnn", classes=1, lr=None)
    (tmp_path / "one.safetensors").write_bytes(checkpoint_bytes(single))

    with pytest.raises(ModelError, match="tells 2 classes apart, the dataset has 3"):
        load_checkpoint(tmp_path / "one.safetensors", classes=3)


def test_a_model_for_other_classes_is_refused(checkpoint, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(checkpoint_bytes(checkpoint))

    with pytest.raises(ModelError, match="3 classes apart, the dataset has 2") as caught:
        load_checkpoint(path, classes=2)

    command = f"masktune train --arch small-cnn --weights {path} --head new"
    assert command in caught.value.remedy


def test_the_new_last_layer_that_is_offered_can_be_had(checkpoint, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(checkpoint_bytes(checkpoint))

    model = pretrained("small-cnn", 2, str(path))

    assert model.head.weight.shape == (2, 256)
    assert torch.equal(model.hidden.weight, checkpoint.model.hidden.weight)


def test_all_that_a_file_said_survives_a_run_folder(checkpoint, tmp_path):
    weights = {f"module.{name}": value for name, value in checkpoint.model.state_dict().items()}
    extra = {"module.AuxLogits.fc.weight": torch.ones(2, 2)}
    content = {"state_dict": {**weights, **extra}, "epoch": 7, "lr": 0.5, "note": "ünïcode"}
    content["pretrained_cfg"] = {"mean": [0.1, 0.2, 0.3], "std": [1.0, 2.0, 3.0]}
    torch.save(content, tmp_path / "a.ckpt")
    first = load_checkpoint(tmp_path / "a.ckpt", arch="small-cnn")
    (tmp_path / "before.safetensors").write_bytes(checkpoint_bytes(first))

    again = load_checkpoint(tmp_path / "before.safetensors")

    assert again.origin.path == ("state_dict",)
    assert again.origin.suffix == ".ckpt"
    assert again.origin.names["module.head.bias"] == "head.bias"
    assert again.origin.extras == first.origin.extras
    assert again.origin.extras[0]["note"] == "ünïcode"
    assert torch.equal(again.origin.tensors["module.AuxLogits.fc.weight"], torch.ones(2, 2))
    assert (again.epoch, again.lr, again.channels) == (7, 0.5, 3)
    assert (again.mean, again.std) == ((0.1, 0.2, 0.3), (1.0, 2.0, 3.0))


def test_a_model_that_was_trained_here_has_no_origin(checkpoint, tmp_path):
    (tmp_path / "a.safetensors").write_bytes(checkpoint_bytes(checkpoint))

    assert load_checkpoint(tmp_path / "a.safetensors").origin is None


@pytest.mark.parametrize(
    "note", ["", "[]", '["a"]', "[1, 2, [], {}, [{}]]", '["a", "b", 3, 4, 5]', "[" * 200_000]
)
def test_a_damaged_note_of_the_origin_is_refused(note, checkpoint, tmp_path):
    (tmp_path / "a.safetensors").write_bytes(checkpoint_bytes(checkpoint, origin=note))

    with pytest.raises(ModelError, match="made from is damaged"):
        load_checkpoint(tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    "origin",
    [
        ["torch zip", ".pt", [], {"a.weight": "nowhere"}, [{}]],
        ["torch zip", "/../../evil.pt", [], {"head.bias": "head.bias"}, [{}]],
        ["torch zip", ".p\\t", [], {"head.bias": "head.bias"}, [{}]],
        ["pickle", ".pt", [], {"head.bias": "head.bias"}, [{}]],
        ["torch zip", ".pt", "ab", {"head.bias": "head.bias"}, [{}, {}, {}]],
    ],
    ids=["name", "folders", "backslash", "kind", "path"],
)
def test_a_crafted_note_of_the_origin_is_refused_before_it_is_exported(
    origin, checkpoint, tmp_path
):
    path = tmp_path / "a.safetensors"
    path.write_bytes(checkpoint_bytes(checkpoint, origin=json.dumps(origin)))

    assert diagnose(path).verdict == "refused"
    with pytest.raises(ModelError, match="made from is damaged"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    "note",
    ["", "3", "{}", "[0, 1]", "[0, 0, -1]", "[0, 1, 1000000000000]", "[0, 0, 2]", '["a", 0, 0]',
     "[0, 1, true]", "[0.0, 1.0, 1.0]", "[" * 200_000],
)  # fmt: skip
def test_a_note_that_gives_logits_no_class_is_refused(note, checkpoint, tmp_path):
    (tmp_path / "a.safetensors").write_bytes(checkpoint_bytes(checkpoint, pool=note))

    assert diagnose(tmp_path / "a.safetensors").verdict == "refused"
    with pytest.raises(ModelError, match="classes of its logits is damaged"):
        load_checkpoint(tmp_path / "a.safetensors")


class Tied(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv = nn.Conv2d(3, num_classes, 1)
        self.out = nn.Linear(num_classes, num_classes)
        self.again = nn.Linear(num_classes, num_classes)
        self.again.weight = self.out.weight

    def forward(self, images):
        return self.again(self.out(self.conv(images).mean(dim=(2, 3))))


def test_weights_that_two_layers_share_are_saved_and_shared_again(tmp_path, monkeypatch):
    module = types.ModuleType("tied")
    module.Tied = Tied
    monkeypatch.setitem(sys.modules, "tied", module)
    model = Tied(3).eval()
    kept = Checkpoint(model=model, arch="tied:Tied", classes=3, lr=None)

    (tmp_path / "a.safetensors").write_bytes(checkpoint_bytes(kept))
    again = load_checkpoint(tmp_path / "a.safetensors", arch="tied:Tied").model

    assert again.again.weight is again.out.weight
    assert same(again, model)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match="no checkpoint"):
        load_checkpoint(tmp_path / "none.pt")
