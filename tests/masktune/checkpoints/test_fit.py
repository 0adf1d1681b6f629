"""Which architecture weights belong to."""

import functools
import sys
import types
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from masktune.checkpoints import blueprint
from masktune.checkpoints import fit as fitting
from masktune.checkpoints.blueprint import Unallocated, blueprints, draw, outline, shapes
from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes, load_checkpoint
from masktune.checkpoints.fit import PREFIXES, renamings
from masktune.checkpoints.inspect import diagnose
from masktune.errors import ModelError
from masktune.models.build import architectures, build

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "resnet32-d509ac18.th"


def zeros(arch, classes=5, **kwargs):
    """Weights of an architecture without the time to draw them."""
    model = outline(arch, classes, **kwargs)
    return {name: torch.zeros(shape) for name, shape in shapes(model).items()}


@pytest.mark.parametrize(
    "arch", ["resnet32", "resnet18", "squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x0_5"]
)
def test_an_architecture_is_told_by_its_tensors(arch, tmp_path):
    torch.save({"state_dict": zeros(arch)}, tmp_path / "a.pt")

    found = diagnose(tmp_path / "a.pt")

    assert (found.verdict, found.arch, found.classes, found.channels) == ("ok", arch, 5, 3)
    assert found.missing == found.unexpected == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arch", [a for a in blueprints() if a not in ("small-cnn", "small-cnn-stride2")]
)
def test_every_architecture_is_told_from_every_other(arch):
    # Tensors of one number seen from everywhere: the largest networks have gigabytes.
    model = outline(arch, 3)
    tensors = {
        f"module.{name}": torch.zeros((), dtype=torch.float32).expand(shape)
        for name, shape in shapes(model).items()
    }

    assert [found.arch for found in fitting.fits(tensors, hint=None)] == [arch]
    assert [name for name, b in model.named_buffers() if b.is_meta and "running" not in name] == []


@pytest.mark.slow
def test_the_table_of_blueprints_is_as_fresh_as_the_architectures():
    assert blueprint.TABLE.read_text("utf-8") == blueprint.table()


@pytest.mark.parametrize(
    "arch", ["small-cnn", "small-cnn-bn", "resnet20", "resnet18", "squeezenet1_1"]
)
def test_a_row_of_the_table_is_what_is_drawn(arch):
    assert blueprints()[arch] == draw(arch)


def test_what_a_newer_torchvision_adds_is_drawn_on_the_spot(monkeypatch):
    table = {name: row for name, row in blueprints().items() if name != "resnet18"}
    monkeypatch.setattr(blueprint, "blueprints", lambda: table)
    monkeypatch.setattr(fitting, "blueprints", lambda: table)
    monkeypatch.setattr(fitting, "newer", functools.cache(blueprint.newer.__wrapped__))

    assert [found.arch for found in fitting.fits(zeros("resnet18"), hint=None)] == ["resnet18"]


def test_outlines_take_no_memory_and_leave_other_models_alone():
    model = outline("vgg16", 1000)

    assert all(parameter.is_meta for parameter in model.parameters())
    assert not nn.Linear(2, 2).weight.is_meta
    with Unallocated():
        assert torch.arange(3).tolist() == [0, 1, 2]


@pytest.mark.slow
def test_a_vision_transformer_is_built_for_the_size_of_its_places(tmp_path):
    torch.save(zeros("vit_b_32", size=(96, 96)), tmp_path / "a.pt")

    loaded = load_checkpoint(tmp_path / "a.pt")

    assert (loaded.arch, loaded.size) == ("vit_b_32", (96, 96))
    assert loaded.model.eval()(torch.zeros(1, 3, 96, 96)).shape == (1, 5)


def test_side_heads_and_the_names_of_2017_do_not_matter():
    aux = zeros("googlenet") | {"aux1.fc1.weight": torch.zeros(4, 4)}
    dense = {
        name.replace(".norm1.", ".norm.1.").replace(".conv2.", ".conv.2."): value
        for name, value in zeros("densenet121").items()
    }

    assert [found.arch for found in fitting.fits(aux, hint=None)] == ["googlenet"]
    assert [found.arch for found in fitting.fits(dense, hint=None)] == ["densenet121"]


def test_shapes_tell_what_names_cannot():
    wide = zeros("wide_resnet50_2")

    assert [found.arch for found in fitting.fits(wide, hint=None)] == ["wide_resnet50_2"]
    assert [found.arch for found in fitting.fits(wide, hint="resnet50")] == ["wide_resnet50_2"]


def test_the_files_own_word_decides_between_equals(tmp_path):
    state = build("small-cnn-stride2", 2).state_dict()
    torch.save({"arch": "small-cnn-stride2", "state_dict": state}, tmp_path / "a.pt")
    torch.save(state, tmp_path / "b.pt")

    assert diagnose(tmp_path / "a.pt").arch == "small-cnn-stride2"
    assert diagnose(tmp_path / "b.pt").verdict == "refused"
    assert diagnose(tmp_path / "b.pt", arch="small-cnn").arch == "small-cnn"


def test_the_nearest_architecture_names_what_is_missing_and_what_is_too_much(tmp_path):
    state = zeros("resnet20")
    state["layer3.2.extra.weight"] = torch.zeros(3)
    del state["bn1.bias"]
    state["layer1.0.conv1.weight"] = torch.zeros(16, 16, 5, 5)
    torch.save(state, tmp_path / "a.pt")

    found = diagnose(tmp_path / "a.pt").to_json()

    assert found["verdict"] == "refused"
    assert found["arch"] == "resnet20"
    assert found["missing"] == ("bn1.bias", "layer1.0.conv1.weight")
    assert found["unexpected"] == ("layer1.0.conv1.weight", "layer3.2.extra.weight")
    assert "2 (bn1.bias, layer1.0.conv1.weight) are missing, 2 (layer1" in found["problem"]
    assert found["choices"] == ()


def test_a_head_without_numbers_does_not_make_a_billion_classes(tmp_path):
    torch.save({**zeros("resnet20"), "linear.weight": torch.zeros(10**9, 0)}, tmp_path / "a.pt")

    found = diagnose(tmp_path / "a.pt")

    assert (found.verdict, found.arch) == ("refused", "resnet20")
    assert "linear.weight" in found.missing
    assert fitting.nearest(torch.load(tmp_path / "a.pt")).classes == 1


def test_a_wrong_architecture_is_answered_with_the_right_one(tmp_path):
    torch.save(zeros("resnet20"), tmp_path / "a.pt")

    found = diagnose(tmp_path / "a.pt", arch="resnet32")

    assert "do not fit resnet32; they fit resnet20" in found.problem
    assert found.remedy == "Use --arch resnet20."
    assert found.choices == ("resnet20",)
    assert len(found.missing) == 60


def test_an_architecture_that_our_own_file_contradicts_is_refused(tmp_path):
    model = build("small-cnn-stride2", 2)
    kept = Checkpoint(model=model, arch="small-cnn-stride2", classes=2, lr=None)
    (tmp_path / "a.safetensors").write_bytes(checkpoint_bytes(kept))

    found = diagnose(tmp_path / "a.safetensors", arch="small-cnn")

    assert "do not fit small-cnn; they fit small-cnn-stride2" in found.problem
    assert diagnose(tmp_path / "a.safetensors", arch="small-cnn-stride2").ok


def test_an_architecture_that_does_not_exist_is_named(tmp_path):
    torch.save(zeros("resnet20"), tmp_path / "a.pt")

    assert "no architecture 'resnet7'" in diagnose(tmp_path / "a.pt", arch="resnet7").problem


class Own(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3)
        self.out = nn.Linear(2, num_classes)

    def forward(self, images):
        return self.out(self.conv(images).mean(dim=(2, 3)))


@pytest.fixture
def own(monkeypatch):
    module = types.ModuleType("ownmodel")
    module.Own = Own
    monkeypatch.setitem(sys.modules, "ownmodel", module)
    return "ownmodel:Own"


def test_a_class_of_the_users_own_is_built_when_the_user_names_it(own, tmp_path):
    model = Own(6).eval()
    torch.save({"model": model.state_dict()}, tmp_path / "a.pt")
    pictures = torch.rand(2, 3, 8, 8)

    loaded = load_checkpoint(tmp_path / "a.pt", arch=own)

    assert (loaded.arch, loaded.classes) == (own, 6)
    assert torch.equal(loaded.model(pictures), model(pictures))


def test_a_file_never_starts_a_class_of_the_users_own(own, tmp_path, monkeypatch):
    torch.save({"model": Own(6).state_dict()}, tmp_path / "a.pt")
    path = tmp_path / "b.safetensors"
    path.write_bytes(checkpoint_bytes(load_checkpoint(tmp_path / "a.pt", arch=own)))
    monkeypatch.setattr(Own, "__init__", lambda *_: pytest.fail("it was started"))

    with pytest.raises(ModelError, match="a file may not start"):
        load_checkpoint(path)


def test_a_run_of_the_users_own_class_is_read_again_by_its_name(own, tmp_path):
    torch.save({"model": Own(6).state_dict()}, tmp_path / "a.pt")
    path = tmp_path / "b.safetensors"
    path.write_bytes(checkpoint_bytes(load_checkpoint(tmp_path / "a.pt", arch=own)))

    assert load_checkpoint(path, arch=own).arch == own


def test_timm_is_asked_when_it_is_there(monkeypatch):
    asked = []

    def fake(arch, classes, **_):
        asked.append(arch)
        return Own(classes) if arch == "timm/vit_tiny_patch16_224" else build("small-cnn", 2)

    monkeypatch.setattr(fitting.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(fitting, "outline", fake)
    state = Own(3).state_dict()
    monkeypatch.setattr(fitting, "_TIMM", {"conv.weight": {2: "deit vit_tiny_patch16_224"}})

    assert [f.arch for f in fitting.fits(state, hint=None)] == ["timm/vit_tiny_patch16_224"]
    assert asked == ["timm/deit", "timm/vit_tiny_patch16_224"]


def test_a_name_that_timm_does_not_know_does_not_hide_what_fits(monkeypatch):
    package = types.ModuleType("timm")
    package.is_model = lambda _: False
    package.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "timm", package)

    fits = fitting.fits(zeros("resnet20"), hint="net_of_my_own")

    assert [found.arch for found in fits] == ["resnet20"]


def test_a_network_of_timms_asks_for_timm_where_it_is_not_there(monkeypatch, tmp_path):
    shapes = {"patch_embed.proj.weight": (192, 3, 16, 16), "cls_token": (1, 1, 192)}
    state = {f"module.{name}": torch.zeros(shape) for name, shape in shapes.items()}
    torch.save(state, tmp_path / "a.pt")
    there = fitting.importlib.util.find_spec
    monkeypatch.setattr(
        fitting.importlib.util, "find_spec", lambda name: None if name == "timm" else there(name)
    )

    found = diagnose(tmp_path / "a.pt")

    assert found.verdict == "refused"
    assert "timm's vit_tiny_patch16_224" in found.remedy
    assert "pip install timm" in found.remedy
    assert found.choices is None  # no name helps before timm is there


@given(st.lists(st.sampled_from(PREFIXES), max_size=5))
def test_prefixes_come_off_in_any_order_and_number(prefixes):
    names = ["conv1.weight", "layer1.0.bn1.bias", "fc.weight"]
    before = {"".join(prefixes) + name: name for name in names}

    assert before in list(renamings(before))


def test_text_for_people_counts_what_it_does_not_show(tmp_path):
    torch.save(zeros("resnet20"), tmp_path / "a.pt")

    text = diagnose(tmp_path / "a.pt", arch="resnet32").text()

    assert "and 52 more" in text
    assert len({len(line) - len(line.split(maxsplit=1)[1]) for line in text.splitlines()}) == 1


def test_all_names_of_the_table_can_be_built():
    assert set(blueprints()) <= set(architectures())


@pytest.mark.skipif(not SHARED.is_file(), reason="the public ResNet-32 is not beside the project")
def test_the_public_cifar_resnet_is_recognised():
    found = diagnose(SHARED)

    assert (found.verdict, found.arch, found.classes) == ("ok", "resnet32", 10)
    assert (found.channels, found.matched, found.format) == (3, 157, "torch legacy")
