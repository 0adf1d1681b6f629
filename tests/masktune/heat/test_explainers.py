import gc
import runpy
import sys
from typing import get_args

import numpy as np
import pytest
import pytorch_grad_cam
import torch
from torch import nn
from torchvision.models import SwinTransformer, VisionTransformer

from masktune.config import Method
from masktune.errors import ConfigError, ModelError
from masktune.heat import explainers
from masktune.heat.explainers import METHODS, SLOW, explainer
from masktune.heat.layers import cam_layer
from masktune.heat.xgradcam import upsample, xgradcam
from masktune.models.build import build

PACKAGE = {
    "xgradcam": pytorch_grad_cam.XGradCAM,
    "gradcam": pytorch_grad_cam.GradCAM,
    "gradcam++": pytorch_grad_cam.GradCAMPlusPlus,
    "layercam": pytorch_grad_cam.LayerCAM,
    "hirescam": pytorch_grad_cam.HiResCAM,
    "eigencam": pytorch_grad_cam.EigenCAM,
    "scorecam": pytorch_grad_cam.ScoreCAM,
    "ablationcam": pytorch_grad_cam.AblationCAM,
}

every_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module")
def small_cnn():
    model = build("small-cnn", 3)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        model(pictures(8, side=28))
    return model.eval()


def pictures(count, side=9, seed=0):
    return torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(seed))


def tiny(classes=3, *after):
    """A network of five channels: cheap even for the methods that run it for every channel."""
    torch.manual_seed(4)
    return nn.Sequential(
        nn.Conv2d(3, 5, 3),
        nn.BatchNorm2d(5),
        nn.ReLU(inplace=True),
        *after,
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(20, classes),
    ).eval()


def undecided(model, images):
    """Move the biases of the head so that no class wins for all pictures."""
    with torch.no_grad():
        model[-1].bias -= model(images).mean(dim=0)
    return model


def heat_of(method, model, layer, images):
    explain = explainer(method, model, layer)
    return explain(images)


def test_every_method_of_the_table_has_a_counterpart_in_the_package():
    assert list(METHODS) == list(PACKAGE)
    assert set(METHODS) > SLOW == {"scorecam", "ablationcam"}


@every_method
def test_heat_equals_what_pytorch_grad_cam_gives(method, small_cnn, capsys):
    images = pictures(3, side=28, seed=1)
    layer = cam_layer(small_cnn, size=(28, 28))

    coarse = heat_of(method, small_cnn, layer, images)

    assert capsys.readouterr() == ("", "")
    assert coarse.shape == (3, 8, 8)
    assert coarse.dtype == torch.float32
    assert coarse.amin() == 0.0
    assert coarse.amax(dim=(1, 2)).numpy() == pytest.approx(1.0, abs=2e-3)
    with PACKAGE[method](model=small_cnn, target_layers=[layer]) as cam:
        theirs = cam(images, targets=None)
    small_cnn.zero_grad()
    assert upsample(coarse, (28, 28)).numpy() == pytest.approx(theirs, abs=1e-5)


def test_our_own_method_is_the_first_and_is_used_as_it_is():
    model = tiny()
    images = pictures(2)

    heat = heat_of("xgradcam", model, model[2], images)

    assert next(iter(METHODS)) == "xgradcam"
    assert torch.equal(heat, xgradcam(model, model[2], images))


@every_method
def test_heat_of_a_picture_does_not_depend_on_its_batch(method):
    model = tiny()
    images = pictures(4)

    explain = explainer(method, model, model[2])
    together = explain(images)
    alone = torch.cat([explain(image[None]) for image in images])

    assert together.amax() > 0.9
    assert together.numpy() == pytest.approx(alone.numpy(), abs=1e-5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@every_method
def test_a_single_logit_is_explained_on_its_predicted_side(method, sign):
    # The same network with two logits, -z and z, whose larger one is the predicted side.
    one, two = tiny(classes=1), tiny(classes=2)
    images = pictures(5)
    with torch.no_grad():
        one[-1].bias.fill_(sign)
        two[-1].weight.copy_(torch.cat([-one[-1].weight, one[-1].weight]))
        two[-1].bias.copy_(torch.cat([-one[-1].bias, one[-1].bias]))
        assert (one(images) * sign > 0).all()

    heat = heat_of(method, one, one[2], images)

    assert heat.amax() > 0.9
    assert heat.numpy() == pytest.approx(heat_of(method, two, two[2], images).numpy(), abs=1e-5)


@pytest.mark.parametrize("method", ["gradcam", "scorecam", "ablationcam"])
def test_each_picture_is_explained_for_its_own_answer(method):
    images = pictures(12)
    model = undecided(tiny(), images)
    with torch.no_grad():
        answers = model(images).argmax(dim=1)
    assert len(set(answers.tolist())) > 1

    heat = heat_of(method, model, model[2], images)

    for answer in set(answers.tolist()):
        chosen = images[answers == answer]
        targets = [pytorch_grad_cam.utils.model_targets.ClassifierOutputTarget(answer)] * len(
            chosen
        )
        with PACKAGE[method](model=model, target_layers=[model[2]]) as cam:
            theirs = cam(chosen, targets=targets)
        assert upsample(heat[answers == answer], (9, 9)).numpy() == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.SiLU])
@every_method
def test_an_activation_in_place_does_not_spoil_the_layer_before_it(method, activation):
    # pytorch-grad-cam itself explains what the activation has overwritten.
    model, plain = tiny(), tiny()
    model[2], plain[2] = activation(inplace=True), activation()
    images = pictures(3)

    heat = heat_of(method, model, model[1], images)

    assert heat.amax() > 0.9
    assert torch.equal(heat, heat_of(method, plain, plain[1], images))


@every_method
def test_dropout_and_batch_statistics_are_off_while_looking(method):
    model = undecided(tiny(3, nn.Dropout(0.8)), pictures(12))
    expected = heat_of(method, model, model[2], pictures(12))

    heat = heat_of(method, model.train(), model[2], pictures(12))

    assert heat.amax() > 0.9
    assert torch.equal(heat, expected)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@every_method
def test_a_caller_without_gradients_and_frozen_parameters_change_nothing(method, mode):
    model = tiny()
    images = pictures(3)
    expected = heat_of(method, model, model[2], images)
    model.requires_grad_(requires_grad=False)

    with mode():
        heat = explainer(method, model, model[2])(images.clone())

    assert heat.amax() > 0.9
    assert torch.equal(heat, expected)
    assert torch.is_grad_enabled()


class Counter:
    """Counts down; a copied model goes on with the same counter."""

    def __init__(self, left):
        self.left = left

    def __deepcopy__(self, _):
        return self


class Fuse(nn.Module):
    """Lets a number of batches through, then fails."""

    def __init__(self, batches):
        super().__init__()
        self.counter = Counter(batches)

    def forward(self, x):
        self.counter.left -= 1
        if self.counter.left < 0:
            raise FloatingPointError("the model fails here")
        return x


def state_of(model):
    """Everything of a model that explaining it might change."""
    return [
        (
            module,
            module.training,
            dict(module._forward_hooks),
            dict(module._forward_pre_hooks),
            dict(module._backward_hooks),
            [
                (id(p), p.requires_grad, p.grad is None or p.grad.tolist(), p.tolist())
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


@every_method
def test_the_model_is_given_back_as_it_was(method):
    model = lived_in(tiny(3, nn.Dropout()))
    before = state_of(model)

    explain = explainer(method, model, model[2])
    for seed in range(2):
        assert explain(pictures(2, seed=seed)).amax() > 0.9
        assert state_of(model) == before

    assert state_of(model) == before


def explain_often(method, model, images):
    explain = explainer(method, model, model[2])
    for _ in range(4):
        explain(images)


@pytest.mark.parametrize("batches", [0, 1, 2, 3])
@every_method
def test_a_model_that_fails_is_given_back_as_it_was(method, batches):
    model = lived_in(tiny(3, Fuse(batches)))
    before = state_of(model)
    images = pictures(2)

    with pytest.raises(FloatingPointError):
        explain_often(method, model, images)

    assert state_of(model) == before


def live_tensors():
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


@every_method
def test_nothing_stays_in_memory_from_batch_to_batch(method):
    model = tiny()

    gc.disable()  # what only the collector could free would grow until it runs
    try:
        explain = explainer(method, model, model[2])
        explain(pictures(2))
        after_one = live_tensors()
        for seed in range(12):
            explain(pictures(2, seed=seed))
        after_many = live_tensors()
    finally:
        gc.enable()

    assert after_many == after_one
    assert not any(module._forward_hooks for module in model.modules())


def test_the_packages_shared_ablation_layer_is_not_used():
    shared = pytorch_grad_cam.AblationCAM.__init__.__defaults__[1]
    before = dict(vars(shared))
    model = tiny()

    heat_of("ablationcam", model, model[2], pictures(1))

    assert vars(shared) == before


@every_method
def test_pictures_without_any_heat_give_zeros_not_warnings(method):
    # All logits are 0 and no gradient leads anywhere but to zeros; AblationCAM divides by 0.
    model = tiny()
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)
    nn.init.constant_(model[1].bias, -100.0)

    heat = heat_of(method, model, model[2], pictures(2))

    assert heat.tolist() == torch.zeros(2, 7, 7).tolist()


def test_a_score_of_zero_gives_ablationcam_no_heat():
    model = tiny(classes=1)
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)

    assert heat_of("ablationcam", model, model[2], pictures(2)).amax() == 0.0


@pytest.mark.parametrize("method", [name for name in METHODS if name != "xgradcam"])
@pytest.mark.parametrize("position", [0, -1], ids=["activations", "gradients"])
def test_a_model_that_has_diverged_is_refused(method, position):
    model = tiny()
    nn.init.constant_(model[position].weight, float("nan"))

    with pytest.raises(ModelError, match="not numbers") as caught:
        heat_of(method, model, model[2], pictures(2))

    assert "learning rate" in caught.value.remedy


@every_method
def test_a_layer_without_a_feature_map_is_refused(method):
    model = tiny()

    with pytest.raises(ModelError, match="no feature map"):
        heat_of(method, model, model[-1], pictures(2))


def tiny_vit():
    torch.manual_seed(0)
    model = VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32
    )
    nn.init.normal_(model.heads.head.weight)
    return model.double().eval(), "encoder.layers.encoder_layer_1.ln_1", vit_maps


def tiny_swin():
    torch.manual_seed(0)
    model = SwinTransformer(
        patch_size=[4, 4], embed_dim=8, depths=[2], num_heads=[1], window_size=[2, 2]
    )
    return model.double().eval(), "norm", lambda maps: maps.permute(0, 3, 1, 2)


def vit_maps(tokens):
    return tokens[:, 1:].reshape(len(tokens), 4, 4, 16).permute(0, 3, 1, 2)


@pytest.mark.parametrize("make", [tiny_vit, tiny_swin])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "ablationcam"])
def test_heat_of_a_transformer_equals_what_pytorch_grad_cam_gives(method, make):
    model, name, reshape = make()
    layer = model.get_submodule(name)
    images = pictures(2, side=32).double()

    heat = heat_of(method, model, layer, images)

    assert heat.dtype == torch.float32
    assert heat.amax(dim=(1, 2)).min() > 0.9
    with PACKAGE[method](model=model, target_layers=[layer], reshape_transform=reshape) as cam:
        theirs = cam(images, targets=None)
    assert upsample(heat, (32, 32)).numpy() == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("make", [tiny_vit, tiny_swin])
def test_ablationcam_of_a_transformer_is_refused_with_a_method_that_works(make):
    model, name, _ = make()
    layer = model.get_submodule(name)
    images = pictures(1, side=32).double()

    with pytest.raises(ModelError, match="AblationCAM cannot switch off") as caught:
        heat_of("ablationcam", model, layer, images)

    for method in ("scorecam", "hirescam"):
        assert method in caught.value.remedy
        assert heat_of(method, model, layer, images).amax() > 0.9


@pytest.mark.parametrize("method", ["GradCAM", "smoothgrad", ""])
def test_an_unknown_method_is_refused_with_the_list(method):
    model = tiny()

    with pytest.raises(ConfigError, match=f"no explainer '{method}'") as caught:
        heat_of(method, model, model[2], pictures(1))

    assert all(name in caught.value.remedy for name in METHODS)


def test_a_slow_method_holds_the_masked_pictures_of_one_picture_only(monkeypatch):
    # The package multiplies every picture by every channel at once: terabytes for a ResNet's batch.
    model = tiny()
    shapes = []
    original = pytorch_grad_cam.ScoreCAM.get_cam_image

    def noting(self, images, *others):
        shapes.append(images.shape)
        return original(self, images, *others)

    monkeypatch.setattr(pytorch_grad_cam.ScoreCAM, "get_cam_image", noting)

    heat_of("scorecam", model, model[2], pictures(3))

    assert shapes == [(1, 3, 9, 9)] * 3


def test_the_papers_method_does_not_need_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytorch_grad_cam", None)  # importing it now fails
    fresh = runpy.run_path(explainers.__file__)
    model = tiny()

    assert fresh["explainer"]("xgradcam", model, model[2])(pictures(1)).amax() > 0.9

    with pytest.raises(ImportError):
        fresh["explainer"]("gradcam", model, model[2])(pictures(1))


def test_progress_bars_of_the_package_itself_stay(small_cnn, capsys):
    layer = cam_layer(small_cnn, size=(28, 28))
    heat_of("scorecam", small_cnn, layer, pictures(1, side=28))

    with pytorch_grad_cam.ScoreCAM(model=small_cnn, target_layers=[layer]) as cam:
        heat = cam(pictures(1, side=28), targets=None)

    assert np.isfinite(heat).all()
    assert "it/s" in capsys.readouterr().err


def test_every_explainer_of_the_settings_is_there_and_no_other():
    assert tuple(METHODS) == get_args(Method)
