from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import SwinTransformer, VisionTransformer

from masktune.errors import ModelError
from masktune.models import (
    CifarBlock,
    CifarResNet,
    SmallCNN,
    architectures,
    build,
    cam_layer,
    layer_named,
    name_of,
)

CHECKPOINT = Path(__file__).parents[2].parent / "shared" / "data" / "resnet32-d509ac18.th"


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
    return VisionTransformer(
        image_size=32, patch_size=8, num_layers=1, num_heads=2, hidden_dim=16, mlp_dim=32
    )


def tiny_swin():
    return SwinTransformer(
        patch_size=[4, 4], embed_dim=8, depths=[2], num_heads=[1], window_size=[2, 2]
    )


def no_convolution():
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))


@pytest.mark.parametrize("side", [32, 40])
@pytest.mark.parametrize("make", [tiny_vit, tiny_swin, no_convolution])
def test_a_network_without_a_feature_map_is_refused(make, side):
    # The ViT is made for 32 pixels and would fail at 40; the reason given is the same.
    model = make()

    with pytest.raises(ModelError, match="no last convolutional feature map") as caught:
        cam_layer(model, size=(side, side))

    assert "convolutional network" in caught.value.remedy
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("arch", ["vit_b_16", "swin_t"])
def test_transformers_of_torchvision_are_refused(arch):
    with pytest.raises(ModelError, match="no last convolutional feature map"):
        cam_layer(outline(arch))


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


def test_names_of_the_cifar_resnet_are_those_of_the_public_checkpoints():
    names = list(build("resnet20", 10).state_dict())

    assert names[:6] == [
        "conv1.weight",
        "bn1.weight",
        "bn1.bias",
        "bn1.running_mean",
        "bn1.running_var",
        "bn1.num_batches_tracked",
    ]
    assert names[-2:] == ["linear.weight", "linear.bias"]
    assert {name.rsplit(".", 1)[0] for name in names[6:-2]} == {
        f"layer{stage}.{block}.{part}"
        for stage in (1, 2, 3)
        for block in (0, 1, 2)
        for part in ("conv1", "bn1", "conv2", "bn2")
    }


@pytest.mark.parametrize(
    ("arch", "count"),
    [("resnet20", 269_722), ("resnet32", 464_154), ("resnet56", 853_018), ("resnet110", 1_727_962)],
)
def test_cifar_resnets_have_as_many_parameters_as_published(arch, count):
    assert sum(p.numel() for p in outline(arch, 10).parameters()) == count


def test_a_public_checkpoint_loads_key_by_key():
    if not CHECKPOINT.exists():
        pytest.skip(f"no {CHECKPOINT.name} beside the repository")
    stored = torch.load(CHECKPOINT, map_location="cpu", weights_only=True)["state_dict"]
    model = build("resnet32", 10)

    model.load_state_dict({k.removeprefix("module."): v for k, v in stored.items()}, strict=True)

    assert torch.equal(model.linear.bias, stored["module.linear.bias"])


def silent(block):
    """Make the convolutions of a block add nothing, so that only the shortcut is left."""
    nn.init.zeros_(block.bn2.weight)
    return block.eval()


def test_the_shortcut_halves_the_picture_and_adds_empty_channels_on_both_sides():
    # Every second pixel of [0 .. 15] in rows of four, between two channels of zeros.
    block = silent(CifarBlock(2, 4, 2))
    maps = torch.stack([torch.arange(16.0).view(4, 4), torch.arange(16.0).view(4, 4) + 100])[None]

    out = block(maps)

    assert out[0].tolist() == [
        [[0.0, 0.0], [0.0, 0.0]],
        [[0.0, 2.0], [8.0, 10.0]],
        [[100.0, 102.0], [108.0, 110.0]],
        [[0.0, 0.0], [0.0, 0.0]],
    ]


def test_the_shortcut_of_an_equal_stage_is_the_picture_itself():
    maps = torch.rand(2, 3, 5, 5)

    assert torch.equal(silent(CifarBlock(3, 3, 1))(maps), maps)


def test_the_sum_in_a_block_goes_through_a_relu():
    block = silent(CifarBlock(1, 1, 1))

    assert block(torch.tensor([[[[-1.0, 2.0]]]])).tolist() == [[[[0.0, 2.0]]]]


def test_a_block_adds_two_convolutions_to_its_shortcut():
    # Both kernels pick the centre, times 2 and times 3, batch norms are (almost) the identity:
    # x becomes relu(6 relu(x) + x) = 7 x for positive x.
    block = CifarBlock(1, 1, 1).eval()
    with torch.no_grad():
        for conv, factor in ((block.conv1, 2.0), (block.conv2, 3.0)):
            conv.weight.zero_()
            conv.weight[0, 0, 1, 1] = factor

    out = block(torch.tensor([[[[1.0, -1.0], [2.0, 0.0]]]]))

    assert out.flatten().tolist() == pytest.approx([7.0, 0.0, 14.0, 0.0], rel=1e-4)


@pytest.mark.parametrize("channels", [1, 3])
def test_own_networks_take_grey_and_coloured_pictures(channels):
    assert SmallCNN(4, channels=channels)(torch.rand(2, channels, 28, 28)).shape == (2, 4)
    assert CifarResNet(1, 4, channels=channels)(torch.rand(2, channels, 32, 32)).shape == (2, 4)


@pytest.mark.parametrize("size", [(28, 28), (32, 32), (45, 61), (64, 64)])
def test_the_small_network_takes_larger_pictures_too(size):
    assert build("small-cnn", 2)(torch.rand(2, 3, *size)).shape == (2, 2)


@pytest.mark.parametrize("arch", ["small-cnn", "resnet20", "mobilenet_v2"])
def test_the_same_seed_gives_the_same_weights(arch):
    first, again, other = (build(arch, 3, seed=seed).state_dict() for seed in (1, 1, 2))

    assert all(torch.equal(value, again[name]) for name, value in first.items())
    assert not all(torch.equal(value, other[name]) for name, value in first.items())


@pytest.mark.parametrize("arch", ["small-cnn", "resnet20", "mobilenet_v2"])
def test_building_leaves_torchs_own_generator_alone(arch):
    before = torch.get_rng_state()

    build(arch, 3)

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("arch", "side"), [("googlenet", 64), ("inception_v3", 96)])
def test_networks_with_side_exits_give_plain_logits_while_training(arch, side):
    model = build(arch, 3)

    assert model.training
    with torch.no_grad():
        assert model(torch.rand(2, 3, side, side)).shape == (2, 3)


@pytest.mark.parametrize("arch", ["resnet9000", "", "ResNet18", "fasterrcnn_resnet50_fpn"])
def test_an_unknown_architecture_is_refused(arch):
    with pytest.raises(ModelError, match=f"no architecture '{arch}'") as caught:
        build(arch, 2)

    assert "small-cnn" in caught.value.remedy


def test_grey_pictures_are_refused_for_torchvisions_networks():
    with pytest.raises(ModelError, match="resnet18 takes 3 colour channels, not 1"):
        build("resnet18", 2, channels=1)


def test_every_name_is_listed_once_and_own_networks_first():
    names = architectures()

    assert names[:2] == ["small-cnn", "small-cnn-stride2"]
    assert len(names) == len(set(names))
    assert {"resnet18", "resnet50", "vgg16_bn", "googlenet", "densenet121"} <= set(names)


@pytest.mark.parametrize(
    "arch", ["alexnet", "densenet121", "mnasnet0_5", "shufflenet_v2_x0_5", "squeezenet1_1", "vgg11"]
)
def test_heads_of_all_kinds_have_as_many_logits_as_classes(arch):
    logits = outline(arch, 7).eval()(torch.zeros(1, 3, 224, 224, device="meta"))

    assert logits.shape == (1, 7)
