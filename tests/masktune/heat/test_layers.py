import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import SwinTransformer, VisionTransformer

from masktune.errors import ModelError
from masktune.heat.layers import (
    cam_layer,
    layer_named,
    name_of,
    usual_and_all,
)
from masktune.models.build import build


def outline(arch, classes=5):
    """A model of shapes without numbers: the largest networks cost nothing to build and run."""
    with torch.device("meta"):
        return build(arch, classes)


def outputs(model, images, *names):
    """Run a model and give what the named layers put out."""
    found = {}
    hooks = [
        layer_named(model, name).register_forward_hook(
            lambda _, __, output, name=name: found.__setitem__(name, output.clone())
        )
        for name in names
    ]
    with torch.no_grad():
        model.eval()(images)
    for hook in hooks:
        hook.remove()
    return [found[name] for name in names]


@pytest.mark.parametrize(
    ("arch", "side", "name", "shape"),
    [
        ("resnet32", 32, "layer3", (64, 8, 8)),
        ("resnet18", 224, "layer4", (512, 7, 7)),
        ("resnet50", 224, "layer4", (2048, 7, 7)),
        ("vgg11", 224, "features.19", (512, 14, 14)),
        ("vgg16_bn", 224, "features.42", (512, 14, 14)),
        ("alexnet", 224, "features.11", (256, 13, 13)),
        ("mobilenet_v2", 224, "features", (1280, 7, 7)),
        ("mobilenet_v3_small", 224, "features", (576, 7, 7)),
        ("densenet121", 224, "features", (1024, 7, 7)),
        ("efficientnet_b0", 224, "features", (1280, 7, 7)),
        ("convnext_tiny", 224, "features", (768, 7, 7)),
        ("googlenet", 224, "inception5b", (1024, 7, 7)),
        ("inception_v3", 299, "Mixed_7c", (2048, 8, 8)),
        ("squeezenet1_1", 224, "classifier.2", (5, 13, 13)),
    ],
)
def test_the_layer_is_the_last_map_before_pooling(arch, side, name, shape):
    model = outline(arch)

    layer = cam_layer(model, size=(side, side))

    assert name_of(model, layer) == name
    (maps,) = outputs(model, torch.zeros(2, 3, side, side, device="meta"), name)
    assert maps.shape == (2, *shape)


def test_the_layer_of_the_small_network_gives_what_its_last_relu_gives():
    model = build("small-cnn", 2)
    images = torch.rand(2, 3, 28, 28)

    name = name_of(model, cam_layer(model, size=(28, 28)))

    maps, activations = outputs(model, images, name, "features.12")
    assert isinstance(model.features[12], nn.ReLU)
    assert maps.shape == (2, 32, 8, 8)
    assert torch.equal(maps, activations)
    assert maps.amin() == 0


def test_the_layer_of_a_resnet_gives_what_its_last_block_gives():
    model = build("resnet18", 2)
    images = torch.rand(1, 3, 96, 96)

    name = name_of(model, cam_layer(model, size=(96, 96)))

    maps, block = outputs(model, images, name, "layer4.1")
    assert maps.shape == (1, 512, 3, 3)
    assert torch.equal(maps, block)


@pytest.mark.parametrize(
    ("arch", "size", "name"),
    [
        ("resnet18", (32, 32), "layer3"),
        ("resnet18", (32, 64), "layer4"),
        ("vgg11", (32, 32), "features.19"),
    ],
)
def test_small_pictures_are_looked_at_where_a_map_is_left(arch, size, name):
    # At 32 pixels ResNet-18's fourth stage is a single cell; any wider picture leaves it two.
    model = outline(arch)

    assert name_of(model, cam_layer(model, size=size)) == name


def test_a_functional_pooling_or_none_at_all_does_not_matter():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
            self.act = nn.ReLU()
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            return self.head(F.max_pool2d(self.act(self.body(x)), 2).mean(dim=(2, 3)))

    model = Plain()

    assert cam_layer(model, size=(9, 9), channels=1) is model.act


def test_a_pooling_that_keeps_the_size_is_passed_over():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=1, padding=1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 2),
    )

    assert cam_layer(model, size=(9, 9)) is model[1]


def tiny_vit():
    torch.manual_seed(0)
    return VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32
    )


def tiny_swin():
    torch.manual_seed(0)
    return SwinTransformer(
        patch_size=[4, 4], embed_dim=8, depths=[2, 2], num_heads=[1, 2], window_size=[2, 2]
    )


class Mixer(nn.Module):
    """Tokens without attention: a linear layer over places, one over channels, the mean."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 44, 8, stride=8)
        self.places, self.channels = nn.Linear(16, 16), nn.Linear(44, 44)
        self.norm, self.head = nn.LayerNorm(44), nn.Linear(44, 2)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = tokens + self.places(tokens.transpose(1, 2)).transpose(1, 2)
        tokens = self.norm(tokens + self.channels(tokens))
        return self.head(tokens.mean(dim=1))


class Registers(nn.Module):
    """Two tokens without a place, then attention, then only the first token goes to the head."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 8, stride=8)
        self.extra = nn.Parameter(torch.randn(1, 2, 8))
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = self.norm1(torch.cat([self.extra.expand(len(x), -1, -1), tokens], dim=1))
        tokens = tokens + self.attend(tokens, tokens, tokens, need_weights=False)[0]
        return self.head(self.norm2(tokens)[:, 0])


def test_a_vit_is_looked_at_before_its_last_attention():
    # Its head starts with zeros, so that the logits have no gradient yet.
    model = tiny_vit()
    assert model.heads.head.weight.count_nonzero() == 0

    assert cam_layer(model, size=(32, 32)) is model.encoder.layers[1].ln_1


def test_a_frozen_vit_is_looked_at_in_the_same_place():
    model = tiny_vit().requires_grad_(requires_grad=False)

    with torch.no_grad():
        layer = cam_layer(model, size=(32, 32))

    assert layer is model.encoder.layers[1].ln_1
    assert all(p.grad is None for p in model.parameters())


def test_layers_after_which_only_the_class_token_counts_are_not_offered():
    _, names = usual_and_all(tiny_vit(), size=(32, 32))

    assert names[:2] == ["encoder.layers.encoder_layer_1.ln_1", "encoder.layers.encoder_layer_0"]
    assert names[-1] == "conv_proj"
    assert not {"encoder", "encoder.ln", "encoder.layers.encoder_layer_1.ln_2"} & set(names)


def test_the_parts_of_an_attention_layer_are_not_offered():
    _, names = usual_and_all(tiny_swin(), size=(32, 32))

    assert names[:4] == ["permute", "norm", "features", "features.3"]
    assert "features.1.1.attn" in names
    assert not any(".attn." in name for name in names)


@pytest.mark.parametrize("side", [32, 40])
def test_a_swin_is_looked_at_in_its_last_map(side):
    model = tiny_swin()

    assert cam_layer(model, size=(side, side)) is model.permute


def test_tokens_without_attention_are_looked_at_too():
    torch.manual_seed(0)
    model = Mixer()

    assert cam_layer(model, size=(32, 32)) is model.norm
    assert usual_and_all(model, size=(32, 32))[1] == ["norm", "channels", "patches"]


def test_flattened_maps_are_no_tokens():
    # 64 channels of 49 places are not 64 places of a grid of 8 x 8.
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Flatten(2), nn.AdaptiveAvgPool1d(1), nn.Flatten()
    ).append(nn.Linear(64, 2))

    assert cam_layer(model, size=(9, 9)) is model[1]
    assert usual_and_all(model, size=(9, 9)) == ("1", ["1", "0"])


def test_tokens_without_a_place_are_told_from_the_others():
    torch.manual_seed(0)
    model = Registers()

    assert cam_layer(model, size=(32, 32)) is model.norm1


def test_a_network_without_convolutions_is_looked_at_where_it_has_places():
    model = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))

    assert cam_layer(model, size=(32, 32)) is model[1]


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 8), nn.ReLU(), nn.Linear(8, 2)),
        nn.Sequential(nn.Conv2d(3, 4, 32), nn.Flatten(), nn.Linear(4, 2)),
    ],
    ids=["no map at all", "maps of one place"],
)
def test_a_network_without_places_is_refused(model):
    with pytest.raises(ModelError, match="Sequential has no spatial feature map") as caught:
        cam_layer(model, size=(32, 32))

    assert "in pictures of 32x32" in caught.value.problem  # with larger ones it may have
    assert "strategy random" in caught.value.remedy
    assert not any(module._forward_hooks for module in model.modules())


def test_pictures_of_another_size_are_refused_with_the_right_one():
    model = tiny_vit()

    with pytest.raises(ModelError, match="VisionTransformer takes 32x32 pictures, not 40x24"):
        cam_layer(model, size=(40, 24))

    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_torchscript_model_is_refused():
    model = torch.jit.trace(build("small-cnn", 2).eval(), torch.zeros(1, 3, 28, 28))

    for look in (cam_layer, usual_and_all):
        with pytest.raises(ModelError, match="TorchScript") as caught:
            look(model, size=(28, 28))
        assert "state dict" in caught.value.remedy


def test_a_model_that_changes_the_picture_it_is_given_is_looked_at():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.vit = tiny_vit()

        def forward(self, x):
            return self.vit(x.sub_(0.5))

    model = InPlace()

    assert cam_layer(model, size=(32, 32)) is model.vit.encoder.layers[1].ln_1


def test_layers_inside_a_convnext_block_are_offered_with_the_map_they_have():
    _, names = usual_and_all(outline("convnext_tiny"), size=(64, 64))

    assert names[0] == "features"
    assert "features.7.2.block.5" in names


def test_layers_of_a_resnet_are_offered_latest_first():
    _, names = usual_and_all(outline("resnet18"), size=(64, 64))

    assert names[:3] == ["layer4", "layer4.1", "layer4.1.relu"]
    assert names[-1] == "conv1"
    assert "avgpool" not in names


def test_pictures_a_network_cannot_take_are_refused():
    model = build("small-cnn", 2)

    with pytest.raises(ModelError, match="SmallCNN does not take 8x9 pictures") as caught:
        cam_layer(model, size=(8, 9))

    assert "larger pictures" in caught.value.remedy
    assert not any(module._forward_hooks for module in model.modules())


def test_looking_for_the_layer_changes_nothing_in_the_model():
    model = build("small-cnn", 2)
    model.features[1].eval()
    modes = [module.training for module in model.modules()]
    weights = {name: value.clone() for name, value in model.state_dict().items()}

    cam_layer(model, size=(28, 28))

    assert [module.training for module in model.modules()] == modes
    assert not any(module._forward_hooks for module in model.modules())
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def test_a_model_in_double_precision_is_probed_in_its_own():
    model = build("small-cnn", 2).double()

    assert cam_layer(model, size=(28, 28)) is model.features


def test_a_layer_has_a_name_and_a_name_a_layer():
    model = build("resnet32", 10)

    assert layer_named(model, "layer3.4") is model.layer3[4]
    assert name_of(model, model.layer3[4].bn2) == "layer3.4.bn2"


@pytest.mark.parametrize("name", ["layer9", ""])
def test_a_name_without_a_layer_is_refused(name):
    with pytest.raises(ModelError, match=f"no layer '{name}'") as caught:
        layer_named(build("resnet20", 10), name)

    assert "linear" in caught.value.remedy


def test_the_usual_layer_and_all_others_are_found_by_running_a_transformer_once():
    model, runs = tiny_vit(), []
    model.register_forward_hook(lambda *_: runs.append(1))

    usual, _ = usual_and_all(model, size=(32, 32))

    assert runs == [1]
    assert usual == name_of(model, cam_layer(model, size=(32, 32)))
