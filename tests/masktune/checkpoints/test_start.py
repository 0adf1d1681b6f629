import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes
from masktune.checkpoints.settings import settings
from masktune.checkpoints.start import given_model, pretrained
from masktune.datasets.catalogue import card
from masktune.errors import DataError, ModelError
from masktune.models.build import build
from masktune.models.makers import timm_address

NAME = "ResNet18_Weights.IMAGENET1K_V1"


@pytest.fixture
def thousand():
    return build("resnet18", 1000, seed=7).state_dict()


def test_every_layer_but_the_last_has_learnt_already(tmp_path, thousand):
    torch.save(thousand, tmp_path / "imagenet.pth")

    model = pretrained("resnet18", 2, str(tmp_path / "imagenet.pth"), seed=3)

    state = model.state_dict()
    fresh = build("resnet18", 2, seed=3).state_dict()
    assert state["fc.weight"].shape == (2, 512)
    assert torch.equal(state["fc.weight"], fresh["fc.weight"])
    for name, value in thousand.items():
        assert name.startswith("fc.") or torch.equal(state[name], value)
    assert model.training


@pytest.mark.parametrize(
    "arch", ["small-cnn", "resnet20", pytest.param("vit_b_16", marks=pytest.mark.slow)]
)
def test_a_network_for_other_classes_gets_a_new_head_and_keeps_its_body(arch, tmp_path):
    seven = build(arch, 7, seed=7).state_dict()
    torch.save(seven, tmp_path / "seven.pth")

    state = pretrained(arch, 2, str(tmp_path / "seven.pth"), head="new").state_dict()

    new = {name for name in state if state[name].shape != seven[name].shape}
    assert len(new) == 2  # weight and bias of the last layer
    assert {len(state[name]) for name in new} == {2}
    assert all(torch.equal(state[name], seven[name]) for name in state if name not in new)


def test_a_head_that_is_kept_trains_on_as_it_is(tmp_path):
    seven = build("small-cnn", 7, seed=7).state_dict()
    torch.save(seven, tmp_path / "seven.pth")

    state = pretrained("small-cnn", 7, str(tmp_path / "seven.pth"), head="kept").state_dict()

    assert all(torch.equal(state[name], seven[name]) for name in seven)


def test_a_head_for_other_classes_cannot_be_kept(tmp_path):
    torch.save(build("small-cnn", 7).state_dict(), tmp_path / "seven.pth")

    with pytest.raises(ModelError, match="a last layer for 7 classes, the dataset has 2") as caught:
        pretrained("small-cnn", 2, str(tmp_path / "seven.pth"), head="kept")

    assert caught.value.remedy == "Give them a new one: --head new."


def test_a_body_has_no_head_to_keep(tmp_path, thousand):
    body = {name: value for name, value in thousand.items() if not name.startswith("fc.")}
    torch.save(body, tmp_path / "body.pth")

    with pytest.raises(ModelError, match="have no last layer"):
        pretrained("resnet18", 2, str(tmp_path / "body.pth"), head="kept")


def test_torchvisions_weights_go_by_name(monkeypatch, thousand):
    asked = []

    def fetch(url, **options):
        asked.append((url, options["check_hash"]))
        return thousand

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", fetch)

    model = pretrained("resnet18", 5, NAME)

    assert torch.equal(model.state_dict()["conv1.weight"], thousand["conv1.weight"])
    assert asked[0][0].endswith(".pth")
    assert asked[0][1] is True


def test_without_a_network_the_file_to_fetch_is_named(monkeypatch):
    def fetch(url, **_):
        raise OSError("no network")

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", fetch)

    with pytest.raises(ModelError, match="cannot be downloaded: no network") as caught:
        pretrained("resnet18", 5, NAME)

    assert "resnet18-" in caught.value.remedy
    assert "--weights" in caught.value.remedy


def test_a_name_that_nobody_knows_is_refused():
    with pytest.raises(ModelError, match="There are no weights 'ResNet18'"):
        pretrained("resnet18", 5, "ResNet18")


def test_weights_of_another_network_are_refused(tmp_path):
    torch.save(build("resnet20", 10).state_dict(), tmp_path / "small.pth")

    with pytest.raises(ModelError, match=r"do not fit resnet18"):
        pretrained("resnet18", 5, str(tmp_path / "small.pth"))


def test_weights_that_a_file_of_ours_trained_as_something_else_are_refused(tmp_path):
    made = Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)
    (tmp_path / "small.safetensors").write_bytes(checkpoint_bytes(made))

    with pytest.raises(ModelError, match="they were trained as small-cnn") as caught:
        pretrained("small-cnn-stride2", 2, str(tmp_path / "small.safetensors"))

    assert "--arch small-cnn" in caught.value.remedy


def test_weights_that_are_no_numbers_are_refused(tmp_path, thousand):
    thousand["layer1.0.conv1.weight"][0] = torch.nan
    torch.save(thousand, tmp_path / "broken.pth")

    with pytest.raises(ModelError, match=r"infinite or not a number, first in layer1\.0\.conv1"):
        pretrained("resnet18", 5, str(tmp_path / "broken.pth"))


def test_a_backbone_without_its_last_layer_is_enough(tmp_path, thousand):
    backbone = {n: v for n, v in thousand.items() if not n.startswith("fc.") and "num_b" not in n}
    torch.save({"state_dict": {f"module.{n}": v for n, v in backbone.items()}}, tmp_path / "b.pth")

    state = pretrained("resnet18", 2, str(tmp_path / "b.pth")).state_dict()

    assert all(torch.equal(state[name], value) for name, value in backbone.items())


CODE = """
from torch import nn

class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.project = nn.Linear(4, 6)
        self.answer = nn.Linear(6, num_classes)

def fixed(): return Net(2)
"""


@pytest.fixture
def nets(tmp_path, monkeypatch):
    """A module of the user's with a class ``Net``."""
    (tmp_path / "users_nets.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("users_nets")
    del sys.modules["users_nets"]


def test_a_model_class_of_ones_own_takes_all_but_what_depends_on_the_classes(nets, tmp_path):
    learnt = nets.Net(10).state_dict()
    torch.save(learnt, tmp_path / "ten.pth")

    model = pretrained("users_nets:Net", 2, str(tmp_path / "ten.pth"), seed=3)

    state, fresh = model.state_dict(), build("users_nets:Net", 2, seed=3).state_dict()
    assert torch.equal(state["answer.weight"], fresh["answer.weight"])
    for name in ("body.0.weight", "body.1.weight", "project.weight", "project.bias"):
        assert torch.equal(state[name], learnt[name])


def test_a_model_class_of_ones_own_with_another_body_is_refused(nets, tmp_path):
    learnt = nets.Net(10).state_dict()
    learnt["project.weight"] = torch.zeros(6, 5)
    torch.save(learnt, tmp_path / "other.pth")

    with pytest.raises(ModelError, match=r"do not fit users_nets:Net: project\.weight is missing"):
        pretrained("users_nets:Net", 2, str(tmp_path / "other.pth"))


@pytest.mark.usefixtures("nets")
def test_a_factory_that_always_makes_as_many_classes_has_no_last_layer_to_renew(tmp_path):
    with pytest.raises(ModelError, match="no layer whose shape depends on the number") as caught:
        pretrained("users_nets:fixed", 2, str(tmp_path / "any.pth"))

    assert "num_classes" in caught.value.remedy


class Timms(nn.Module):
    """As timm's EfficientNets: the last layer starts far out, unless it is set anew."""

    def __init__(self, classes, channels=3):
        super().__init__()
        self.stem, self.classifier = nn.Conv2d(channels, 4, 3), nn.Linear(4, classes)
        self.deep = nn.Conv2d(4, 4, 3, groups=4)  # first by the alphabet, of one channel
        nn.init.constant_(self.classifier.weight, 7.0)

    def reset_classifier(self, classes):
        self.classifier = nn.Linear(4, classes)


@pytest.fixture
def timm(monkeypatch, tmp_path):
    """A package with what is used of timm, and of the one that knows where its weights are."""
    package, hub = ModuleType("timm"), ModuleType("huggingface_hub")
    package.is_model = {"lite"}.__contains__
    package.create_model = lambda _, num_classes, in_chans, **__: Timms(num_classes, in_chans)
    package.is_model_pretrained = {"lite.in1k", "lite.old"}.__contains__
    places = {"lite.in1k": ("timm/lite.in1k", None), "lite.old": (None, "https://a.example/o.pth")}
    package.get_pretrained_cfg = lambda name: SimpleNamespace(
        hf_hub_id=places[name][0], hf_hub_filename=None, url=places[name][1]
    )
    hub.hf_hub_url = lambda repository, file: f"https://hub.example/{repository}/{file}"
    monkeypatch.setitem(sys.modules, "timm", package)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setenv("MASKTUNE_HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("timm")
def test_timms_networks_take_a_file_and_a_last_layer_that_starts_near(tmp_path):
    learnt = Timms(1000).state_dict()
    save_file(learnt, tmp_path / "imagenet.safetensors")

    first, again = (
        pretrained("timm/lite", 2, str(tmp_path / "imagenet.safetensors"), seed=seed).state_dict()
        for seed in (3, 3)
    )

    for name in ("stem.weight", "deep.weight"):
        assert torch.equal(first[name], learnt[name])
    assert first["classifier.weight"].shape == (2, 4)
    assert first["classifier.weight"].abs().max() <= 0.5  # within 1 / sqrt(4)
    assert torch.equal(first["classifier.weight"], again["classifier.weight"])


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    ("name", "address", "kept"),
    [
        (
            "lite.in1k",
            "https://hub.example/timm/lite.in1k/model.safetensors",
            "lite.in1k.safetensors",
        ),
        ("lite.old", "https://a.example/o.pth", "lite.old.pth"),
    ],
)
def test_timms_weights_go_by_name_and_are_kept(monkeypatch, tmp_path, name, address, kept):
    learnt, asked = Timms(1000).state_dict(), []

    def fetch(url, *, to, watcher):
        asked.append(url)
        to.parent.mkdir(parents=True)
        torch.save(learnt, to) if to.suffix == ".pth" else save_file(learnt, to)
        return to

    monkeypatch.setattr("masktune.checkpoints.start.fetch", fetch)

    model = pretrained("timm/lite", 2, f"timm/{name}")

    assert asked == [address]
    assert [path.name for path in (tmp_path / "home" / "weights").iterdir()] == [kept]
    assert torch.equal(model.state_dict()["stem.weight"], learnt["stem.weight"])


@pytest.mark.usefixtures("timm")
def test_without_a_network_the_file_of_timms_to_fetch_is_named(monkeypatch):
    def fetch(url, **_):
        raise DataError(f"{url} cannot be downloaded: no network.", "Give its folder as --root.")

    monkeypatch.setattr("masktune.checkpoints.start.fetch", fetch)

    with pytest.raises(ModelError, match=r"timm/lite\.in1k cannot be downloaded") as caught:
        pretrained("timm/lite", 2, "timm/lite.in1k")

    assert "hub.example/timm/lite.in1k/model.safetensors where" in caught.value.remedy
    assert "--weights" in caught.value.remedy


@pytest.mark.usefixtures("timm")
def test_a_name_that_timm_has_no_weights_of_is_refused():
    with pytest.raises(ModelError, match=r"timm has no weights 'lite\.in2k'"):
        pretrained("timm/lite", 2, "timm/lite.in2k")


def test_the_real_timm_says_where_its_weights_are():
    pytest.importorskip("timm", reason="timm is not installed; it is an extra")

    assert timm_address("tf_efficientnet_lite0.in1k").endswith(
        "/timm/tf_efficientnet_lite0.in1k/resolve/main/model.safetensors"
    )


def test_a_run_takes_the_classes_of_its_model_in_the_order_that_it_says(tmp_path):
    images = torch.rand(2, 3, 28, 28)
    state = build("small-cnn", 2).state_dict()
    torch.save(state, tmp_path / "model.pth")
    given = {"dataset": "biased-mnist-5k", "model": str(tmp_path / "model.pth")}
    digits = card("biased-mnist-5k")

    plain, swapped = (
        given_model(given["model"], digits, config=settings({**given, **more})).model
        for more in ({"arch": "small-cnn"}, {"arch": "small-cnn", "class_order": "1,0"})
    )

    with torch.no_grad():
        assert torch.equal(swapped(images), plain(images).flip(1))
