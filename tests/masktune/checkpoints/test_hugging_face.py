"""Folders of the Hugging Face hub. Names are those of transformers 4 and timm 1."""

import json
import re

import pytest
import torch
from safetensors.torch import save_file

from masktune.checkpoints import hugging_face
from masktune.checkpoints.checkpoint import load_checkpoint
from masktune.checkpoints.hugging_face import as_torchvision, weights_file
from masktune.checkpoints.inspect import diagnose
from masktune.checkpoints.settings import settings
from masktune.models.build import build

RESNET = {
    "architectures": ["ResNetForImageClassification"],
    "model_type": "resnet",
    "hidden_act": "relu",
    "downsample_in_first_stage": False,
    "id2label": {"0": "landbird", "1": "waterbird", "2": "seabird"},
}
PICTURES = {"do_normalize": True, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.2, 0.1]}


def in_transformers(name):
    """Give the name that transformers has for a tensor of torchvision's ResNet."""
    kinds = {"conv": "convolution", "bn": "normalization"}
    if found := re.match(r"(conv|bn)1\.", name):
        return f"resnet.embedder.embedder.{kinds[found[1]]}.{name[found.end() :]}"
    if found := re.match(r"layer(\d)\.(\d+)\.(conv|bn)(\d)\.", name):
        stage, block, kind, layer = found.groups()
        inner = f"layer.{int(layer) - 1}.{kinds[kind]}"
    elif found := re.match(r"layer(\d)\.(\d+)\.downsample\.(\d)\.", name):
        stage, block, kind = found.groups()
        inner = f"shortcut.{('convolution', 'normalization')[int(kind)]}"
    else:
        return name.replace("fc.", "classifier.1.")
    return f"resnet.encoder.stages.{int(stage) - 1}.layers.{block}.{inner}.{name[found.end() :]}"


def folder(path, state, config, pictures=None, name="model.safetensors"):
    path.mkdir()
    save_file(state, path / name, metadata={"format": "pt"})
    (path / "config.json").write_text(json.dumps(config))
    if pictures is not None:
        (path / "preprocessor_config.json").write_text(json.dumps(pictures))
    return path


@pytest.fixture(scope="module")
def resnet():
    return build("resnet18", 3).eval()


@pytest.fixture
def transformers_folder(tmp_path, resnet):
    state = {in_transformers(name): value for name, value in resnet.state_dict().items()}
    return folder(tmp_path / "birds", state, RESNET, PICTURES)


def test_a_resnet_of_transformers_answers_as_the_one_it_was_made_from(transformers_folder, resnet):
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))

    found = load_checkpoint(weights_file(transformers_folder), classes=3)

    assert found.arch == "resnet18"
    with torch.no_grad():
        assert torch.equal(found.model(images), resnet(images))
    assert found.origin.names["classifier.1.weight"] == "fc.weight"


def test_names_and_normalisation_come_from_the_files_beside(transformers_folder):
    found = diagnose(transformers_folder)

    assert found.ok
    assert found.class_names == ("landbird", "waterbird", "seabird")
    assert found.normalisation == "0.5 0.4 0.3 / 0.2 0.2 0.1"
    assert "class names    landbird, waterbird, seabird" in found.text()


def test_every_name_of_a_resnet_goes_there_and_back():
    for name in build("resnet50", 3).state_dict():
        if not name.startswith("fc."):
            assert as_torchvision(in_transformers(name)) == name


def test_a_run_takes_the_folder_and_notes_its_file(transformers_folder):
    config = settings({"dataset": "biased-mnist-5k", "model": str(transformers_folder)})

    assert config.model == str(transformers_folder / "model.safetensors")


def test_a_timm_folder_is_read_with_its_normalisation(tmp_path, resnet):
    config = {
        "architecture": "resnet18",
        "num_classes": 3,
        "pretrained_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
    }
    path = folder(tmp_path / "timm", resnet.state_dict(), config)

    found = diagnose(path)

    assert (found.ok, found.arch, found.normalisation) == (True, "resnet18", "half")
    assert found.class_names == ()


def test_a_preprocessor_that_does_not_normalise_says_nothing_of_it(tmp_path, resnet):
    path = folder(tmp_path / "f", resnet.state_dict(), {}, {**PICTURES, "do_normalize": False})

    assert diagnose(path).normalisation is None


@pytest.mark.parametrize(
    "id2label",
    [
        {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"},
        {"0": "a", "1": "b"},
        {"0": "a", "1": "b", "3": "c"},
        {"0": "a", "1": "a", "2": "b"},
        {"first": "a"},
        ["a", "b", "c"],
    ],
)
def test_names_that_are_made_up_or_do_not_fit_are_not_taken(tmp_path, resnet, id2label):
    path = folder(tmp_path / "f", resnet.state_dict(), {**RESNET, "id2label": id2label})

    assert diagnose(path).class_names == ()


def test_a_resnet_that_computes_otherwise_is_refused_with_the_way_to_build_it(tmp_path, resnet):
    state = {in_transformers(name): value for name, value in resnet.state_dict().items()}
    path = folder(tmp_path / "odd", state, {**RESNET, "downsample_in_first_stage": True})

    found = diagnose(path)

    assert not found.ok
    assert "downsample_in_first_stage = True" in found.problem
    assert "--arch mynet:make" in found.remedy


def test_a_network_that_no_one_here_knows_is_refused_with_the_way_to_build_it(tmp_path):
    state = {
        "vit.embeddings.cls_token": torch.zeros(1, 1, 8),
        "classifier.weight": torch.ones(2, 8),
    }
    path = folder(tmp_path / "vit", state, {"architectures": ["ViTForImageClassification"]})

    found = diagnose(path)

    assert not found.ok
    assert "ViTForImageClassification" in found.remedy
    assert f"C.from_pretrained({str(path)!r})" in found.remedy
    assert "?" not in found.remedy  # what a terminal could not print would be one


def test_weights_in_several_files_are_refused_with_the_way_to_join_them(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text("{}")

    found = diagnose(tmp_path)

    assert "cut into several files" in found.problem
    assert "max_shard_size" in found.remedy


def test_other_paths_stay_as_they_are(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")  # without a config beside it

    assert weights_file(tmp_path) == tmp_path
    assert weights_file(tmp_path / "x.pth") == tmp_path / "x.pth"
    assert weights_file(tmp_path / ("x" * 5000)) == tmp_path / ("x" * 5000)


def test_a_config_of_a_giant_is_not_read(transformers_folder, monkeypatch):
    monkeypatch.setattr(hugging_face, "MOST_BYTES", 100)

    assert diagnose(transformers_folder).class_names == ()


@pytest.mark.parametrize("text", ["", "[1]", "{", "\x00"])
def test_a_config_that_cannot_be_read_says_nothing(tmp_path, resnet, text):
    path = folder(tmp_path / "f", resnet.state_dict(), {})
    (path / "config.json").write_text(text)

    assert diagnose(path / "model.safetensors").ok


def test_a_training_begins_with_the_weights_of_a_folder_in_their_architecture(transformers_folder):
    config = settings({"dataset": "biased-mnist-5k", "weights": str(transformers_folder)})

    assert config.weights == str(transformers_folder / "model.safetensors")
    assert config.arch == "resnet18"
