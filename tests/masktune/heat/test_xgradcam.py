from functools import cache

import numpy as np
import pytest
import torch
from pytorch_grad_cam import XGradCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn
from torchvision.models import VisionTransformer

from masktune.errors import ModelError
from masktune.heat.explainers import explainer
from masktune.heat.layers import cam_layer
from masktune.heat.xgradcam import class_scores, look_at, stretch_, upsample, xgradcam
from masktune.models.build import build

ARCHITECTURES = {
    "small-cnn": 28,
    "resnet32": 32,
    "resnet18": 64,
    "resnet50": 64,
    "vgg11": 64,
    "mobilenet_v2": 64,
}


@cache
def seasoned(arch):
    """A model whose batch norms have seen data, in evaluation mode, and pictures for it."""
    side = ARCHITECTURES[arch]
    model = light_vgg() if arch == "vgg11" else build(arch, 4)
    images = torch.randn(3, 3, side, side, generator=torch.Generator().manual_seed(7))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # take the statistics of the one batch as they are
    with torch.no_grad():
        model.train()(images)
    return model.eval(), images


def light_vgg():
    """VGG-11 with one linear layer as its head: the real one takes seconds to initialise."""
    with torch.device("meta"):
        model = build("vgg11", 4)
    model.features.to_empty(device="cpu")
    torch.manual_seed(0)
    model.classifier = nn.Linear(512 * 7 * 7, 4)
    for parameter in model.features.parameters():
        nn.init.normal_(parameter, std=0.05)
    return model


def hand_net(last=None):
    """Two 1x1 channels, x and 4 - x, and a linear head over both 2x2 maps."""
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([1.0, -1.0]).view(2, 1, 1, 1))
        model[0].bias.copy_(torch.tensor([0.0, 4.0]))
        model[3].weight.copy_(
            torch.tensor([[1.0, 0, 0, 1, 0, 0, 1, 0], [0.0, 0, 0, -1, 1, 0, 0, 0]])
        )
        if last is not None:
            model[3] = nn.Linear(8, 1, bias=False)
            model[3].weight.copy_(torch.tensor([last]))
    return model


HAND_IMAGE = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_heat_equals_the_xgradcam_of_pytorch_grad_cam(arch):
    model, images = seasoned(arch)
    size = images.shape[2:]
    layer = cam_layer(model, size=tuple(size))

    ours = upsample(xgradcam(model, layer, images), size)

    with XGradCAM(model=model, target_layers=[layer]) as cam:
        theirs = cam(images, targets=None)
    model.zero_grad()
    assert ours.amax(dim=(1, 2)) == pytest.approx(1.0, abs=1e-3)
    assert ours.numpy() == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("arch", ["small-cnn", "resnet32", "resnet18"])
def test_heat_of_a_picture_does_not_depend_on_its_batch(arch):
    model, images = seasoned(arch)
    layer = cam_layer(model, size=tuple(images.shape[2:]))

    together = xgradcam(model, layer, images)
    alone = torch.cat([xgradcam(model, layer, image[None]) for image in images])

    assert together.amax() > 0.9
    assert together.numpy() == pytest.approx(alone.numpy(), abs=1e-5)


def test_heat_of_a_network_small_enough_to_multiply_by_hand():
    # Maps [1 2; 3 4] and [3 2; 1 0]; logits 1 + 4 + 1 = 6 and 3 - 4 = -1.
    # Class 0: weights 5/10 and 1/6, sum [1 4/3; 5/3 2], less its minimum 1.
    model = hand_net()

    heat = xgradcam(model, model[1], HAND_IMAGE)

    assert heat.dtype == torch.float32
    assert heat[0].numpy() == pytest.approx(np.array([[0, 1 / 3], [2 / 3, 1]]), abs=1e-6)


def test_a_class_given_is_explained_instead_of_the_answer():
    # Class 1: weights -4/10 and 3/6, sum [1.1 0.2; -0.7 -1.6], of which the ReLU leaves a row.
    model = hand_net()

    heat = xgradcam(model, model[1], HAND_IMAGE, classes=torch.tensor([1]))

    assert heat[0].numpy() == pytest.approx(np.array([[1, 2 / 11], [0, 0]]), abs=1e-6)


def test_each_picture_has_its_own_class():
    model = hand_net()
    two = HAND_IMAGE.expand(2, -1, -1, -1)

    heat = xgradcam(model, model[1], two, classes=torch.tensor([1, 0]))

    assert heat[:, 0, 0].tolist() == pytest.approx([1.0, 0.0], abs=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_single_logit_is_explained_on_its_predicted_side(sign):
    # The logit is +6 or -6 with the head of class 0 above; either side has the same heat.
    model = hand_net([sign, 0, 0, sign, 0, 0, sign, 0])

    heat = xgradcam(model, model[1], HAND_IMAGE)

    assert heat[0].numpy() == pytest.approx(np.array([[0, 1 / 3], [2 / 3, 1]]), abs=1e-6)


@pytest.mark.parametrize(
    ("side", "expected"), [(1, [[0, 1 / 3], [2 / 3, 1]]), (0, [[0, 0], [0, 0]])]
)
def test_a_side_given_is_explained_for_a_single_logit(side, expected):
    model = hand_net([1.0, 0, 0, 1, 0, 0, 1, 0])

    heat = xgradcam(model, model[1], HAND_IMAGE, classes=torch.tensor([side]))

    assert heat[0].numpy() == pytest.approx(np.array(expected), abs=1e-6)


def test_scores_are_the_largest_logit_or_the_one_asked_for():
    logits = torch.tensor([[1.0, 5.0, 2.0], [-1.0, -3.0, -2.0]])

    assert class_scores(logits).tolist() == [5.0, -1.0]
    assert class_scores(logits, torch.tensor([2, 1])).tolist() == [2.0, -3.0]


def test_scores_of_one_logit_speak_for_both_sides():
    logits = torch.tensor([[2.0], [-3.0], [0.0]])

    assert class_scores(logits).tolist() == [2.0, 3.0, 0.0]
    assert class_scores(logits, torch.tensor([0, 1, 1])).tolist() == [-2.0, -3.0, 0.0]


def test_heat_that_speaks_against_the_class_everywhere_is_zero():
    model = hand_net([-1.0, -1, -1, -1, 0, 0, 0, 0])

    heat = xgradcam(model, model[1], HAND_IMAGE, classes=torch.tensor([1]))

    assert heat.tolist() == [[[0.0, 0.0], [0.0, 0.0]]]


def conv_net(*after):
    """A convolution with negative outputs, whatever comes after it, and a head."""
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 5, 3), *after, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(20, 3)
    ).eval()


@pytest.fixture
def images():
    return torch.randn(4, 3, 9, 9, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("position", [0, 1], ids=["before the ReLU", "the ReLU itself"])
def test_a_relu_in_place_changes_nothing(images, position):
    plain = conv_net(nn.ReLU())
    in_place = conv_net(nn.ReLU(inplace=True))

    heat = xgradcam(in_place, in_place[position], images)

    assert heat.amax() > 0.9
    assert torch.equal(heat, xgradcam(plain, plain[position], images))


def test_frozen_parameters_give_the_same_heat(images):
    model = conv_net(nn.ReLU())
    expected = xgradcam(model, model[1], images)
    model.requires_grad_(requires_grad=False)

    heat = xgradcam(model, model[1], images)

    assert heat.amax() > 0.9
    assert torch.equal(heat, expected)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_caller_without_gradients_gets_the_same_heat(images, mode):
    model = conv_net(nn.BatchNorm2d(5), nn.ReLU(inplace=True))
    expected = xgradcam(model, model[2], images)

    with mode():
        heat = xgradcam(model, model[2], images.clone())
        off = not torch.is_grad_enabled()

    assert off
    assert heat.amax() > 0.9
    assert torch.equal(heat, expected)


def test_gradients_stay_switched_on_for_a_caller_that_uses_them(images):
    model = conv_net(nn.ReLU())

    heat = xgradcam(model, model[1], images)

    assert torch.is_grad_enabled()
    assert not heat.requires_grad


class Undifferentiable(torch.autograd.Function):
    @staticmethod
    def forward(_, x):
        return x * 1

    @staticmethod
    def backward(*_):
        raise AssertionError("something before the layer was differentiated")


class Barrier(nn.Module):
    def forward(self, x):
        return Undifferentiable.apply(x)


def test_nothing_before_the_layer_is_differentiated(images):
    # The convolution's parameters want gradients, so a graph that reached back would use Barrier.
    model = conv_net(Barrier(), nn.ReLU())

    heat = xgradcam(model, model[2], images)

    assert heat.amax() > 0.9
    with pytest.raises(AssertionError, match="was differentiated"):
        xgradcam(model, model[0], images)


def test_a_layer_that_runs_twice_is_read_the_last_time(images):
    class Twice(nn.Module):
        def __init__(self, shared):
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 5, 3), nn.Conv2d(5, 5, 3)
            self.relu = nn.ReLU()
            self.last = self.relu if shared else nn.ReLU()
            self.head = nn.Linear(5, 3)

        def forward(self, x):
            x = self.last(self.second(self.relu(self.first(x))))
            return self.head(x.mean(dim=(2, 3)))

    shared, apart = Twice(shared=True), Twice(shared=False)
    apart.load_state_dict(shared.state_dict())

    heat = xgradcam(shared, shared.relu, images)

    assert heat.amax() > 0.9
    assert torch.equal(heat, xgradcam(apart, apart.last, images))


class Failing(nn.Module):
    def forward(self, _):
        raise FloatingPointError("the model fails here")


def state_of(model):
    """Everything of a model that explaining it might change."""
    return [
        (
            module.training,
            len(module._forward_hooks),
            len(module._forward_pre_hooks),
            len(module._backward_hooks),
            [
                (p.requires_grad, p.grad is None or p.grad.tolist(), p.tolist())
                for p in module.parameters(recurse=False)
            ],
            [b.tolist() for b in module.buffers(recurse=False)],
        )
        for module in model.modules()
    ]


def lived_in(model):
    """Give every kind of state a value that a careless explainer would change."""
    model.train()
    model[1].eval()
    model[0].weight.requires_grad_(requires_grad=False)
    model[0].bias.grad = torch.ones_like(model[0].bias)
    model[-1].weight.grad = torch.full_like(model[-1].weight, 2.0)
    model[2].register_forward_hook(lambda *_: None)
    return model


def test_the_model_is_given_back_as_it_was(images):
    model = lived_in(conv_net(nn.BatchNorm2d(5), nn.ReLU(), nn.Dropout()))
    before = state_of(model)

    heat = xgradcam(model, model[2], images)

    assert heat.amax() > 0.9
    assert [m.training for m in model] == [True, False, True, True, True, True, True]
    assert state_of(model) == before


def test_a_model_that_fails_is_given_back_as_it_was(images):
    model = lived_in(conv_net(nn.BatchNorm2d(5), nn.ReLU(), Failing()))
    before = state_of(model)

    with torch.no_grad(), pytest.raises(FloatingPointError):
        xgradcam(model, model[2], images)

    assert state_of(model) == before
    assert torch.is_grad_enabled()


def test_dropout_and_batch_statistics_are_off_while_looking(images):
    model = conv_net(nn.BatchNorm2d(5), nn.ReLU(), nn.Dropout(0.9))
    expected = xgradcam(model, model[2], images)

    heat = xgradcam(model.train(), model[2], images)

    assert torch.equal(heat, expected)


def test_a_double_precision_model_gives_float32_heat(images):
    model = conv_net(nn.ReLU()).double()

    heat = xgradcam(model, model[1], images.double())

    assert heat.dtype == torch.float32
    assert heat.amax() > 0.9


class Branching(nn.Module):
    """Only ``used`` leads to the logits that a gradient can follow back."""

    def __init__(self):
        super().__init__()
        self.used, self.aside, self.unused = (nn.Conv2d(3, 5, 3) for _ in range(3))
        self.cut, self.head = nn.Conv2d(3, 5, 3), nn.Linear(5, 3)

    def forward(self, x):
        self.aside(x)
        with torch.no_grad():
            fixed = self.cut(x)
        return self.head(self.used(x).mean(dim=(2, 3)) + fixed.mean(dim=(2, 3)).detach())


@pytest.mark.parametrize("name", ["unused", "aside", "cut"])
def test_a_layer_that_does_not_lead_to_the_logits_is_refused(images, name):
    model = Branching()

    with pytest.raises(ModelError, match="No gradient leads") as caught:
        xgradcam(model, getattr(model, name), images)

    assert "on the way to the logits" in caught.value.remedy
    assert xgradcam(model, model.used, images).amax() > 0.9


def test_a_layer_of_another_model_is_refused(images):
    with pytest.raises(ModelError, match="No gradient leads"):
        xgradcam(conv_net(nn.ReLU()), nn.ReLU(), images)


@pytest.mark.parametrize("position", [-1, -2], ids=["the head", "the flattening"])
def test_a_layer_without_a_feature_map_is_refused(images, position):
    model = conv_net(nn.ReLU())

    with pytest.raises(ModelError, match="no feature map") as caught:
        xgradcam(model, model[position], images)

    assert "--layer out" in caught.value.remedy
    assert "cam_layer" in caught.value.remedy
    assert not model[position]._forward_hooks


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (lambda x: x, r"shape \(4, 3, 9, 9\)"),
        (lambda x: {"features": x.mean(dim=(2, 3))}, "type dict with features"),
        (lambda x: (None, x.mean(dim=(2, 3))), "type NoneType"),
    ],
)
def test_a_model_that_gives_no_logits_is_refused(images, output, told):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 3, 1)

        def forward(self, x):
            return output(self.layer(x))

    model = Odd()

    with pytest.raises(ModelError, match=told):
        xgradcam(model, model.layer, images)


def tiny_vit(layers=2):
    torch.manual_seed(0)
    model = VisionTransformer(
        image_size=32, patch_size=8, num_layers=layers, num_heads=2, hidden_dim=16, mlp_dim=32
    )
    nn.init.normal_(model.heads.head.weight)
    return model.eval()


def last_norm(model):
    return model.encoder.layers[-1].ln_1


VIEWS = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


class LikeSwin(nn.Module):
    """The hand-computed network with its maps in another order on the way.

    It has as many channels as rows and columns: its name tells that channels are last.
    """

    def __init__(self, order):
        super().__init__()
        self.body, self.order, self.tap = hand_net(), order, nn.Identity()

    def forward(self, x):
        maps = self.body[1](self.body[0](x))
        if self.order == "last":
            return self.body[2:](self.tap(maps.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))
        extra = torch.full((len(x), 1, 2), 9.0)
        tokens = self.tap(torch.cat([extra, maps.flatten(2).transpose(1, 2)], dim=1))
        return self.body[2:](tokens[:, 1:].transpose(1, 2))


@pytest.mark.parametrize("order", ["last", "tokens"])
def test_the_order_of_places_and_channels_does_not_matter(order):
    # As worked out above: weights 5/10 and 1/6; the token without a place, 9 and 9, adds nothing.
    model = LikeSwin(order)

    heat = xgradcam(model, model.tap, HAND_IMAGE)

    assert heat[0].numpy() == pytest.approx(np.array([[0, 1 / 3], [2 / 3, 1]]), abs=1e-6)


def test_a_layer_after_which_only_the_class_token_counts_is_refused_with_one_that_works():
    model = tiny_vit()
    name = "encoder.layers.encoder_layer_1.ln_1"

    with pytest.raises(ModelError, match=r"After layer encoder.ln .* class token alone") as caught:
        xgradcam(model, model.encoder.ln, VIEWS)

    assert caught.value.remedy == f"Use layer {name}."
    assert xgradcam(model, model.get_submodule(name), VIEWS).amax() > 0.9


def test_a_head_of_zeros_gives_no_heat_and_no_refusal():
    model = tiny_vit()
    nn.init.zeros_(model.heads.head.weight)

    assert xgradcam(model, last_norm(model), VIEWS).tolist() == torch.zeros(3, 4, 4).tolist()


def test_pictures_a_transformer_was_not_made_for_are_refused_with_the_right_size():
    model = tiny_vit()

    with pytest.raises(ModelError, match="takes 32x32 pictures, not 16x16") as caught:
        xgradcam(model, last_norm(model), VIEWS[:, :, :16, :16])

    assert "Use 32x32 pictures" in caught.value.remedy


def test_attention_rounds_as_it_does_with_gradients():
    # The fused kernel that PyTorch uses without gradients differs in the last digits.
    model = tiny_vit(layers=4)
    found = []
    hook = last_norm(model).register_forward_hook(lambda _, __, output: found.append(output))
    model(VIEWS)
    hook.remove()

    maps = look_at(model, last_norm(model), VIEWS).maps

    assert torch.equal(maps.flatten(2).transpose(1, 2), found[0][:, 1:])


def test_channels_that_add_up_to_zero_are_refused_with_a_method_that_works(images):
    model = conv_net(nn.InstanceNorm2d(5))

    with pytest.raises(ModelError, match="InstanceNorm2d add up to zero") as caught:
        xgradcam(model, model[1], images)

    assert "hirescam" in caught.value.remedy
    explain = explainer("hirescam", model, model[1])
    assert explain(images).amax() > 0.9


@pytest.mark.parametrize(
    "after", [[nn.InstanceNorm2d(5), nn.ReLU()], [nn.BatchNorm2d(5)]], ids=["ReLU", "batch norm"]
)
def test_channels_that_do_not_add_up_to_zero_are_not_refused(images, after):
    model = conv_net(*after)

    assert xgradcam(model, model[len(after)], images).amax() > 0.9


def test_channels_that_are_silent_do_not_count_as_cancelling():
    # One channel is zero everywhere; the other, x itself, adds up to 10.
    model = hand_net()
    nn.init.constant_(model[0].bias, -9.0)
    with torch.no_grad():
        model[0].bias[0] = 0.0

    assert xgradcam(model, model[1], HAND_IMAGE).amax() > 0.9


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_torchscript_model_is_refused(images):
    model = torch.jit.trace(conv_net(nn.ReLU()), images)

    with pytest.raises(ModelError, match="TorchScript"):
        xgradcam(model, next(model.children()), images)


def test_upsampling_is_bilinear_between_the_centres_of_the_pixels():
    # Four pixels over two cells have their centres at -1/4, 1/4, 3/4 and 5/4 of a cell.
    fine = upsample(torch.tensor([[[0.0, 1.0]]]), (1, 4))

    assert fine.dtype == torch.float64
    assert fine[0, 0].tolist() == pytest.approx([0.0, 0.25, 0.75, 1.0], abs=2e-7)


def test_upsampled_heat_is_stretched_again():
    # Two pixels over four cells lie halfway between neighbours: 1/2 and 0 before the stretch.
    fine = upsample(torch.tensor([[[0.0, 1.0, 0.0, 0.0]]]), (1, 2))

    assert fine[0, 0].tolist() == pytest.approx([1.0, 0.0], abs=1e-6)


def test_the_size_is_height_then_width():
    assert upsample(torch.rand(2, 3, 3), (5, 7)).shape == (2, 5, 7)


def test_stretching_divides_by_slightly_more_than_the_largest_value():
    heat = torch.tensor([[[1.0, 3.0]], [[5.0, 5.0]], [[0.0, 1e-7]]], dtype=torch.float64)

    assert stretch_(heat).flatten(1).tolist() == [[0.0, 2 / (2 + 1e-7)], [0.0, 0.0], [0.0, 0.5]]


def test_heat_that_is_upsampled_stays_as_it_was():
    heat = torch.tensor([[[1.0, 3.0], [2.0, 5.0]]], dtype=torch.float64)
    before = heat.clone()

    upsample(heat, (2, 2))

    assert torch.equal(heat, before)


def test_a_layer_that_passes_the_pictures_on_does_not_mark_them():
    model = nn.Sequential(nn.Identity(), nn.Flatten(), nn.Linear(4, 2))
    images = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])

    xgradcam(model, model[0], images)

    assert not images.requires_grad
    assert images.tolist() == [[[[1.0, 2.0], [3.0, 4.0]]]]


def test_an_explicit_target_of_pytorch_grad_cam_is_our_explicit_class():
    model, images = seasoned("small-cnn")
    layer = cam_layer(model, size=(28, 28))
    classes = torch.tensor([3, 1, 0])

    ours = upsample(xgradcam(model, layer, images, classes=classes), (28, 28))

    with XGradCAM(model=model, target_layers=[layer]) as cam:
        theirs = cam(images, targets=[ClassifierOutputTarget(c) for c in classes.tolist()])
    model.zero_grad()
    assert ours.amax() > 0.9
    assert ours.numpy() == pytest.approx(theirs, abs=1e-5)
