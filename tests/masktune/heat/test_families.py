"""One network of every family: our heat beside that of pytorch-grad-cam."""

import gc

import pytest
import torch
from pytorch_grad_cam import XGradCAM
from torch import nn
from torchvision.models import SwinTransformer, VisionTransformer

from masktune.heat.layers import cam_layer, layer_named, name_of, usual_and_all
from masktune.heat.xgradcam import upsample, xgradcam
from masktune.models.build import build

pytestmark = pytest.mark.slow  # many networks, some of a hundred million weights

FAMILIES = [
    # architecture, side of the pictures, the layer found, its grid
    ("small-cnn", 28, "features", 8),
    ("small-cnn-bn", 28, "features", 8),
    ("resnet20", 32, "layer3", 8),
    ("resnet18", 64, "layer4", 2),
    ("vgg11", 64, "features.19", 4),
    ("alexnet", 64, "features.11", 3),
    ("mobilenet_v2", 64, "features", 2),
    ("mobilenet_v3_small", 64, "features", 2),
    ("efficientnet_b0", 64, "features", 2),
    ("densenet121", 64, "features", 2),
    ("convnext_tiny", 64, "features", 2),
    ("regnet_y_400mf", 64, "trunk_output", 2),
    ("shufflenet_v2_x0_5", 64, "conv5", 2),
    ("squeezenet1_1", 64, "classifier.2", 3),
    ("mnasnet0_5", 64, "layers", 2),
    ("inception_v3", 139, "Mixed_7c", 3),
    ("googlenet", 64, "inception5b", 2),
    ("vit_b_32", 96, "encoder.layers.encoder_layer_11.ln_1", 3),
    ("vit_b_16", 48, "encoder.layers.encoder_layer_11.ln_1", 3),
    ("swin_t", 64, "permute", 2),
    ("swin_v2_t", 64, "permute", 2),
    ("maxvit_t", 224, "blocks.3", 7),
]


@pytest.fixture(autouse=True)
def free_memory():
    yield
    gc.collect()


def pictures(side, channels=3):
    return torch.randn(3, channels, side, side, generator=torch.Generator().manual_seed(7))


def seasoned(arch, images, classes=4, channels=3):
    """A model with a head of random weights, whose batch norms have seen the pictures."""
    model = build(arch, classes, channels=channels, size=images.shape[-1])
    head = [m for m in model.modules() if isinstance(m, nn.Linear | nn.Conv2d)][-1]
    nn.init.normal_(head.weight, std=0.1, generator=torch.Generator().manual_seed(5))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # take the statistics of the one batch as they are
    with torch.no_grad():
        model.train()(images)
    return model.eval()


def tokens_to_maps(side):
    """What a user of pytorch-grad-cam writes for a ViT: drop the class token, make a grid."""

    def reshape(tokens):
        count, _, width = tokens.shape
        return tokens[:, 1:, :].reshape(count, side, side, width).permute(0, 3, 1, 2)

    return reshape


def channels_first(maps):
    return maps.permute(0, 3, 1, 2)


def predicted_side(logit):
    """The target of a one-logit model: the logit of the side it predicts."""
    return logit.abs().sum()


def reference(model, layer, images, *, reshape=None, targets=None):
    with XGradCAM(model=model, target_layers=[layer], reshape_transform=reshape) as cam:
        heat = cam(images, targets=targets)
    model.zero_grad()
    return heat


def attends(arch):
    return arch.startswith(("vit", "swin", "maxvit"))


@pytest.mark.parametrize(("arch", "side", "name", "grid"), FAMILIES)
def test_heat_of_every_family_equals_the_xgradcam_of_pytorch_grad_cam(arch, side, name, grid):
    images = pictures(side)
    model = seasoned(arch, images)
    if attends(arch) or arch.startswith("efficientnet"):
        # After a layer norm or a SiLU a channel's sum can nearly cancel, and XGradCAM divides by
        # it: in single precision the two agree as far as their order of summation does.
        model, images = model.double(), images.double()
    layer = cam_layer(model, size=(side, side))

    heat = xgradcam(model, layer, images)

    assert name_of(model, layer) == name
    assert name in usual_and_all(model, size=(side, side))[1]
    assert heat.shape == (3, grid, grid)
    assert heat.amax(dim=(1, 2)).min() > 0.9
    reshape = tokens_to_maps(grid) if "encoder" in name else None
    theirs = reference(model, layer, images, reshape=reshape)
    assert upsample(heat, (side, side)).numpy() == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("name", ["norm", "features.3.1", "features.3.0.norm1", "features.1.1.mlp"])
def test_every_layer_of_a_swin_is_read_with_its_channels_last(name):
    torch.manual_seed(1)
    model = SwinTransformer(
        patch_size=[4, 4], embed_dim=8, depths=[2, 2], num_heads=[1, 2], window_size=[3, 3]
    )
    model, images = model.eval().double(), pictures(48).double()
    layer = layer_named(model, name)

    heat = xgradcam(model, layer, images)

    assert name in usual_and_all(model, size=(48, 48))[1]
    assert heat.amax(dim=(1, 2)).min() > 0.9
    theirs = reference(model, layer, images, reshape=channels_first)
    assert upsample(heat, (48, 48)).numpy() == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_heat_of_a_small_vit_equals_that_of_pytorch_grad_cam(dtype):
    torch.manual_seed(1)
    model = VisionTransformer(
        image_size=32, patch_size=8, num_layers=3, num_heads=2, hidden_dim=16, mlp_dim=32
    )
    nn.init.normal_(model.heads.head.weight)
    model, images = model.eval().to(dtype), pictures(32).to(dtype)
    layer = cam_layer(model, size=(32, 32))

    heat = xgradcam(model, layer, images)

    assert layer is model.encoder.layers[2].ln_1
    assert heat.amax(dim=(1, 2)).min() > 0.9
    theirs = reference(model, layer, images, reshape=tokens_to_maps(4))
    assert upsample(heat, (32, 32)).numpy() == pytest.approx(theirs, abs=1e-5)


def test_a_layer_inside_a_convnext_block_is_read_with_its_channels_last():
    images = pictures(64)
    model = seasoned("convnext_tiny", images)
    layer = layer_named(model, "features.7.2.block.5")

    heat = xgradcam(model, layer, images)

    assert isinstance(layer, nn.Linear)
    assert heat.shape == (3, 2, 2)
    theirs = reference(model, layer, images, reshape=channels_first)
    assert upsample(heat, (64, 64)).numpy() == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize(
    ("arch", "side"),
    [
        ("small-cnn", 28),
        ("resnet20", 32),
        ("resnet18", 64),
        ("mobilenet_v3_small", 64),
        ("convnext_tiny", 64),
        ("squeezenet1_1", 64),
        ("swin_t", 64),
    ],
)
def test_heat_of_a_grey_one_logit_network_equals_that_of_pytorch_grad_cam(arch, side):
    images = pictures(side)
    model = seasoned(arch, images, classes=1, channels=1)
    layer = cam_layer(model, size=(side, side))

    heat = xgradcam(model, layer, images)

    assert model(images).shape == (3, 1)
    assert heat.amax() > 0.9
    theirs = reference(model, layer, images, targets=[predicted_side] * 3)
    assert upsample(heat, (side, side)).numpy() == pytest.approx(theirs, abs=1e-5)
