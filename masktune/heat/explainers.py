"""Other explainers behind one name: the formulas of pytorch-grad-cam, without its side effects.

Its own way through a dataset registers hooks, keeps the activations and gradients of the last
batch, accumulates into ``.grad`` and leaves the model in evaluation mode. Here activations and
gradients come from ``masktune.heat.xgradcam``, and a method of the package only turns them into
heat: its CAM object is given no layer to watch, so it holds nothing from one batch to the next.
"""

from collections.abc import Callable
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from masktune.config import Method
from masktune.errors import ConfigError, ModelError
from masktune.heat.layers import refuse_scripted
from masktune.heat.xgradcam import Look, class_scores, heat_by_xgradcam, look_at, stretch_
from masktune.models.eval_mode import borrowed
from masktune.models.logits import logits_of


def _by_formula(name: str, model: nn.Module, layer: nn.Module, images: Tensor) -> Tensor:
    """Give the heat of a method that needs activations and gradients only."""
    look = _finite_look(model, layer, images)
    return _heat(_cam(name, model), layer, images, maps=look.maps, gradient=look.gradient)


def _by_trials(name: str, model: nn.Module, layer: nn.Module, images: Tensor) -> Tensor:
    """Give the heat of a method that runs the model once for every channel of the layer."""
    look = _finite_look(model, layer, images)
    if name == "AblationCAM" and look.layout.order != "first":
        raise ModelError(
            f"AblationCAM cannot switch off the channels of layer {type(layer).__name__}: "
            "its output is not (N, C, h, w).",
            "Use the method scorecam, or hirescam, which is quick.",
        )
    with torch.no_grad():
        # AblationCAM swaps the layer out while it works; interrupted, it does not put it back.
        model, layer = borrowed(model, layer)
        # It reads the layer itself, and would find what an activation in place has left there.
        for module in model.modules():
            if "inplace" in vars(module):
                vars(module)["inplace"] = False
        logits = logits_of(model(images))
        cam = _cam(name, _Answering(model).eval())
        # One picture at a time: ScoreCAM holds a masked picture for every channel in memory.
        heat = [
            _heat(cam, layer, image[None], maps=look.maps[i : i + 1], targets=[_target(logits[i])])
            for i, image in enumerate(images)
        ]
    return torch.cat(heat)


METHODS: dict[Method, Callable[[nn.Module, nn.Module, Tensor], Tensor]] = {
    "xgradcam": heat_by_xgradcam,
    "gradcam": partial(_by_formula, "GradCAM"),
    "gradcam++": partial(_by_formula, "GradCAMPlusPlus"),
    "layercam": partial(_by_formula, "LayerCAM"),
    "hirescam": partial(_by_formula, "HiResCAM"),
    "eigencam": partial(_by_formula, "EigenCAM"),
    "scorecam": partial(_by_trials, "ScoreCAM"),
    "ablationcam": partial(_by_trials, "AblationCAM"),
}
"""Every explainer by name; the first is the paper's.

Each takes a ``borrowed`` model, a layer of it and images, and gives coarse heat.
"""

SLOW = frozenset({"scorecam", "ablationcam"})
"""These run the model once for every channel of the layer, for every picture."""


def explainer(method: str, model: nn.Module, layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return what explains batch after batch of a dataset by one of ``METHODS``.

    From images (N, C, H, W), normalised as the model wants them, to heat (N, h, w), float32 in
    [0, 1], at the layer's resolution; ``upsample`` brings it to the picture's. The class explained
    is the arg-max logit, for a one-logit model the predicted side; EigenCAM asks for no class. The
    model stays as it is: modes, parameters, gradients, hooks and layers. The caller may be under
    ``no_grad`` or ``inference_mode``, and the parameters may be frozen.
    """
    if method not in METHODS:
        raise ConfigError(f"There is no explainer '{method}'.", f"Choose {', '.join(METHODS)}.")
    refuse_scripted(model)
    own, part = borrowed(model, layer)
    return partial(METHODS[method], own, part)


class _Answering(nn.Module):
    """A model whose output is plain logits: the package takes no dict and no tuple."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return logits_of(self.model(images))


def _finite_look(model: nn.Module, layer: nn.Module, images: Tensor) -> Look:
    """Refuse a diverged model here; some formulas would call its pictures cold, others crash."""
    look = look_at(model, layer, images)
    if not (torch.isfinite(look.maps).all() and torch.isfinite(look.gradient).all()):
        raise ModelError(
            f"The model gives values that are not numbers at layer {type(layer).__name__}.",
            "Its weights or activations overflow: train with a smaller learning rate.",
        )
    return look


def _cam(name: str, model: nn.Module) -> Any:  # noqa: ANN401
    """Make a CAM object of pytorch-grad-cam that watches no layer."""
    # Loading the package takes seconds, and the paper's own method does without it.
    import pytorch_grad_cam
    from pytorch_grad_cam.ablation_layer import AblationLayer

    method = getattr(pytorch_grad_cam, name)
    quiet = {"get_cam_weights": _without_bars(method.get_cam_weights)}
    # The package's default ablation layer is one object for all, and keeps the last activations.
    own = {"ablation_layer": AblationLayer()} if name == "AblationCAM" else {}
    return type(name, (method,), quiet)(model, [], **own)


def _without_bars(function: FunctionType) -> FunctionType:
    """Give a function of pytorch-grad-cam that draws no progress bars; it has no switch for them.

    The module itself stays as it is, for others in this process and for other threads.
    """
    silent = SimpleNamespace(tqdm=iter)
    return FunctionType(function.__code__, {**function.__globals__, "tqdm": silent})


def _heat(
    cam: Any,  # noqa: ANN401
    layer: nn.Module,
    images: Tensor,
    *,
    maps: Tensor,
    gradient: Tensor | None = None,
    targets: list[Callable[[Tensor], Tensor]] | None = None,
) -> Tensor:
    """Apply a method's formula and stretch what it gives, (N, h, w) float32."""
    activations = maps.cpu().numpy()
    slopes = None if gradient is None else gradient.cpu().numpy()
    # GradCAM++ and AblationCAM divide by what can be zero; such a picture has no heat.
    with np.errstate(all="ignore"):
        raw = cam.get_cam_image(images, layer, targets, activations, slopes, False)
        raw = np.nan_to_num(raw, nan=0.0, posinf=0.0, neginf=0.0)
    return stretch_(torch.from_numpy(raw).float().to(maps.device).relu())


def _target(logits: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what scores one picture's logits (K,) for the answer that it has now, a scalar."""
    answer = (logits > 0).long() if len(logits) == 1 else logits.argmax(dim=0, keepdim=True)
    return lambda found: class_scores(found[None], answer)[0]
