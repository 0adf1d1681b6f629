import pytest
import torch

from masktune.checkpoints.start import pretrained
from masktune.errors import ModelError
from masktune.models.build import build

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


def test_a_model_class_of_ones_own_starts_afresh():
    with pytest.raises(ModelError, match="cannot be put into"):
        pretrained("package.module:make", 5, NAME)
