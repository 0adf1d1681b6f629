import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from masktune.errors import ModelError
from masktune.heat.layers import cam_layer, name_of
from masktune.heat.xgradcam import upsample, xgradcam
from masktune.models.build import build

CODE = """
from torch import nn

class Net(nn.Module):
    def __init__(self, classes=7):
        super().__init__()
        self.head = nn.Linear(2, classes)

class Outer:
    Inner = Net

def by_position(count): return Net(count)
def by_name(width=3, *, num_classes): return Net(num_classes)
def width_first(width=16, num_classes=9): return Net(num_classes)
def fixed(): return Net(5)
def flagged(pretrained=False): return Net(4 if pretrained is False else 99)
def counted(number=3): return Net(number)
def keywords(**settings): return Net(6)
def keyword_only(*, width=3): return Net(8)
def broken(classes): raise KeyError("no such width")
def number(classes): return 5

ready = Net(3)
constant = 5
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A module of the user's, importable as ``users_own.nets``."""
    package = tmp_path / "users_own"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "nets.py").write_text(CODE)
    (package / "faulty.py").write_text("import a_package_nobody_has\n")
    (package / "unreadable.py").write_text("def (:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("users_own")]:
        del sys.modules[name]


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize(
    ("factory", "logits"),
    [
        ("Net", 2),
        ("Outer.Inner", 2),
        ("by_position", 2),
        ("by_name", 2),
        ("width_first", 2),
        ("fixed", 5),
        ("flagged", 4),
        ("counted", 2),
        ("keywords", 6),
        ("keyword_only", 8),
    ],
)
def test_a_factory_is_given_the_number_of_classes_if_it_asks_for_it(factory, logits):
    model = build(f"users_own.nets:{factory}", 2)

    assert model.head.out_features == logits
    assert model.training


@pytest.mark.usefixtures("code")
def test_the_weights_of_the_users_model_follow_the_seed():
    # The first call imports the module, which makes a model of its own there and then.
    first, again, other = (build("users_own.nets:Net", 2, seed=seed) for seed in (1, 1, 2))

    assert torch.equal(first.head.weight, again.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize(
    ("arch", "told", "remedy"),
    [
        ("nobody_has_this:make", "no Python module 'nobody_has_this'", "PYTHONPATH"),
        ("users_own.absent:make", "no Python module 'users_own.absent'", "PYTHONPATH"),
        (
            "users_own.faulty:make",
            "Importing users_own.faulty failed with ModuleNotFoundError",
            "python -c 'import users_own.faulty'",
        ),
        ("users_own.unreadable:make", "failed with SyntaxError", "python -c"),
        ("users_own.nets:absent", "users_own.nets has no 'absent'", "It has Net, Outer"),
        ("users_own.nets:broken", "failed with KeyError: 'no such width'", "as broken(2)"),
        ("users_own.nets:number", "gave a int, not a torch.nn.Module", "Return the model"),
        ("users_own.nets:ready", "is a Net, not a class or function", "Name the class"),
        ("users_own.nets:constant", "is a int, not a class or function", "Name the class"),
        ("users_own.nets:", "names no class or function", "package.module:factory"),
        (":make", "names no class or function", "package.module:factory"),
        ("users_own.nets:make()", "names no class or function", "package.module:factory"),
        ("..nets:make", "names no class or function", "package.module:factory"),
    ],
)
def test_code_that_gives_no_model_is_refused_with_the_reason(arch, told, remedy):
    with pytest.raises(ModelError, match=told) as caught:
        build(arch, 2)

    assert remedy in caught.value.remedy


class FakeBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width), nn.Linear(width, width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Attention(nn.Module):
    """As timm writes it: one linear layer for queries, keys and values."""

    def __init__(self, width):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=2)
        return self.proj((q @ k.mT).softmax(dim=2) @ v)


class FakeViT(nn.Module):
    """A ViT with a class token and four registers, under the names that timm documents."""

    num_prefix_tokens = 5

    def __init__(self, *, num_classes, in_chans, img_size=(64, 64)):
        super().__init__()
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(in_chans, 8, 16, stride=16)
        self.patch_embed.img_size = img_size
        self.places = img_size[0] // 16 * (img_size[1] // 16)
        self.tokens = nn.Parameter(torch.randn(1, 5 + self.places, 8))
        self.blocks = nn.Sequential(FakeBlock(8), FakeBlock(8))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, num_classes)

    def forward(self, x):
        patches = self.patch_embed.proj(x).flatten(2).mT
        extra = patches.new_zeros(len(x), 5, 8)
        x = torch.cat([extra, patches], dim=1) + self.tokens
        return self.head(self.norm(self.blocks(x))[:, 0])


class FakeConvNet(nn.Sequential):
    def __init__(self, *, num_classes, in_chans):
        conv = nn.Conv2d(in_chans, 4, 3)
        super().__init__(conv, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, num_classes))


@pytest.fixture
def timm(monkeypatch):
    """A package with what is used of timm; it notes what it is asked for."""
    made = {"vit_fake": FakeViT, "conv_fake": FakeConvNet}
    package = ModuleType("timm")
    package.asked = []

    def create_model(name, pretrained=False, **settings):
        package.asked.append(SimpleNamespace(name=name, pretrained=pretrained, **settings))
        return made[name](**settings)

    package.is_model = made.__contains__
    package.create_model = create_model
    monkeypatch.setitem(sys.modules, "timm", package)
    return package


def test_timms_networks_need_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)  # importing it now fails

    with pytest.raises(ModelError, match="timm/resnet18 needs the package timm") as caught:
        build("timm/resnet18", 2)

    assert "pip install timm" in caught.value.remedy


@pytest.mark.parametrize(("classes", "channels"), [(1, 3), (3, 1)])
def test_a_network_of_timms_has_the_head_and_the_colours_asked_for(timm, classes, channels):
    model = build("timm/conv_fake", classes, channels=channels, size=(40, 48))

    assert model(torch.rand(2, 3, 9, 9)).shape == (2, classes)
    assert model[0].in_channels == channels
    assert [asked.pretrained for asked in timm.asked] == [False]


def test_a_transformer_of_timms_is_built_for_the_size_of_the_pictures(timm):
    model = build("timm/vit_fake", 2, size=(32, 48))

    assert model.tokens.shape == (1, 5 + 2 * 3, 8)
    timm.asked.clear()
    assert build("timm/vit_fake", 2, size=(64, 64)).tokens.shape == (1, 5 + 4 * 4, 8)
    assert len(timm.asked) == 1  # it was of this size at once


def test_a_size_that_timm_cannot_build_is_refused(timm, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("img_size must be divisible")

    monkeypatch.setattr(timm, "create_model", refuse)

    with pytest.raises(ModelError, match="could not build vit_fake for 30x30 pictures: img_size"):
        build("timm/vit_fake", 2, size=30)


@pytest.mark.parametrize("name", ["resnet9000", "hf-hub:someone/model", ""])
def test_a_name_unknown_to_timm_is_refused_and_never_looked_up(timm, name):
    with pytest.raises(ModelError, match=f"timm has no architecture '{name}'"):
        build(f"timm/{name}", 2)

    assert timm.asked == []


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize("size", [(64, 64), (32, 48)])
def test_a_transformer_of_timms_is_looked_at_before_its_last_attention(size):
    model = build("timm/vit_fake", 2, size=size).eval()
    layer = cam_layer(model, size=size)
    images = torch.randn(3, 3, *size, generator=torch.Generator().manual_seed(0))

    heat = xgradcam(model, layer, images)

    assert name_of(model, layer) == "blocks.1.norm1"
    assert heat.shape == (3, size[0] // 16, size[1] // 16)
    assert heat.amax(dim=(1, 2)).max() > 0.9
    assert upsample(heat, size).shape == (3, *size)


def test_networks_of_the_real_timm_have_heat():
    pytest.importorskip("timm", reason="timm is optional and not installed")
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    model = build("timm/vit_tiny_patch16_224", 3, size=(32, 32)).eval()
    layer = cam_layer(model, size=(32, 32))

    heat = xgradcam(model, layer, images)

    assert name_of(model, layer) == "blocks.11.norm1"
    assert heat.shape == (2, 2, 2)
