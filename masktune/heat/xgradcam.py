"""Heat: where a model looks, by XGradCAM, for a whole batch at little more than a forward pass."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from masktune.errors import ModelError
from masktune.heat.feature_map import Layout, layout_of
from masktune.heat.layers import cam_layer, name_of, refuse_scripted, wrong_size
from masktune.models.eval_mode import borrowed, hooked, step_by_step
from masktune.models.logits import logits_of

TINY = 1e-7
"""Keeps divisions defined; the value pytorch-grad-cam uses."""

CANCELLED = 1e-5
"""A channel's sum is rounding error when it is less than this share of its absolute values."""


def xgradcam(
    model: nn.Module, layer: nn.Module, images: Tensor, *, classes: Tensor | None = None
) -> Tensor:
    """Say how much each place of a layer's feature map speaks for the class.

    The output of the layer may be maps (N, C, h, w), channels last (N, h, w, C) as in Swin, or
    tokens (N, T, C) as in ViT, which form a grid when the class token is left out.

    A channel's weight is its gradient averaged with its activation as weights,
    ``sum(g * A) / (sum(A) + 1e-7)``; the heat is the ReLU of the weighted sum of channels,
    stretched to [0, 1] for each image. Where no channel speaks for the class the heat is all zero.

    Only what comes after the layer is differentiated, so parameters may be frozen, the caller may
    be under ``no_grad``, and nothing of the model (modes, gradients, hooks) is changed afterwards.

    Args:
        model: gives logits (N, K), or (N, 1) for a sigmoid head; see ``logits_of``.
        layer: a module of ``model`` whose output has places; see ``cam_layer``.
        images: (N, C, H, W) float, normalised as the model wants them.
        classes: (N,) int64, the class to explain; by default the arg-max logit, not the label. For
            a one-logit model 1 is the positive side, and the default is the predicted side.

    Returns:
        (N, h, w) float32 in [0, 1].
    """
    refuse_scripted(model)
    own, part = borrowed(model, layer)
    return heat_by_xgradcam(own, part, images, classes)


def heat_by_xgradcam(
    model: nn.Module, layer: nn.Module, images: Tensor, classes: Tensor | None = None
) -> Tensor:
    """Give the heat of ``xgradcam`` for a model that is ``borrowed``."""
    look = look_at(model, layer, images, classes)
    maps, sums = look.maps, look.maps.sum(dim=(2, 3))
    _refuse_cancelled(maps, sums, layer)
    weights = (look.gradient * maps).sum(dim=(2, 3)) / (sums + TINY)  # (N, C)
    return stretch_(torch.einsum("nc,nchw->nhw", weights, maps).relu()).float()


def _refuse_cancelled(maps: Tensor, sums: Tensor, layer: nn.Module) -> None:
    """Refuse maps whose channels add up to nothing, such as a fresh instance norm's.

    It lies in the layer, so the first picture tells; looking at all cost nearly a tenth of it.
    """
    sizes = maps[:1].abs().sum(dim=(2, 3))
    alive = sizes > 0
    cancelled = sums[:1].abs() < CANCELLED * sizes  # never where all is zero
    if cancelled.sum() > 0.9 * alive.sum():
        raise ModelError(
            f"The channels of layer {type(layer).__name__} add up to zero, "
            "and XGradCAM divides by their sums.",
            "Use the method hirescam, or another layer.",
        )


def upsample(heat: Tensor, size: tuple[int, int]) -> Tensor:
    """Bring coarse heat to the size of the picture and stretch it to [0, 1] again.

    In double precision, because the browser computes the same values in doubles and must hide
    exactly the same pixels.

    Args:
        heat: (N, h, w) float.
        size: (H, W) of the picture.

    Returns:
        (N, H, W) float64 in [0, 1].
    """
    fine = F.interpolate(heat.double()[:, None], size, mode="bilinear", align_corners=False)
    return stretch_(fine[:, 0])


def stretch_(heat: Tensor) -> Tensor:
    """Subtract each map's minimum and divide by ``1e-7 +`` its maximum, as grad-cam does.

    In place: fine maps are megabytes, and fresh memory took longer than the arithmetic.
    """
    heat -= heat.amin(dim=(1, 2), keepdim=True)
    heat /= TINY + heat.amax(dim=(1, 2), keepdim=True)
    return heat


def class_scores(logits: Tensor, classes: Tensor | None = None) -> Tensor:
    """Pick the logit to explain for each image, (N,), from logits (N, K).

    A one-logit model speaks for class 1 by its logit and for class 0 by the negative of it.
    """
    if logits.shape[1] == 1:
        side = logits[:, 0] > 0 if classes is None else classes == 1
        return torch.where(side, logits[:, 0], -logits[:, 0])
    chosen = logits.argmax(dim=1) if classes is None else classes
    return logits.gather(1, chosen[:, None])[:, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a layer gave and how the scores depend on it.

    Attributes:
        maps: (N, C, h, w) float, the layer's activations.
        gradient: (N, C, h, w) float, of the scores.
        layout: where these were in the layer's output.
    """

    maps: Tensor
    gradient: Tensor
    layout: Layout


@dataclass(slots=True)
class _Tap:
    """Cuts the graph at a layer: what comes before is not differentiated, what follows is."""

    model: nn.Module
    count: int
    size: tuple[int, int]
    output: Tensor | None = None
    layout: Layout | None = None

    def __call__(self, layer: nn.Module, _: object, output: object) -> Tensor:
        self.layout = layout_of(output, model=self.model, count=self.count, size=self.size)
        if self.layout is None or not isinstance(output, Tensor):
            raise ModelError(
                f"Layer {type(layer).__name__} gives no feature map of shape (N, C, h, w).",
                "Choose another layer, or leave --layer out; in Python, take that of cam_layer.",
            )
        torch.set_grad_enabled(True)  # undone when the enclosing no_grad ends
        self.output = output.detach().requires_grad_()
        # A copy goes on: an in-place ReLU after the layer may not overwrite a leaf, and would
        # spoil the activations that the weights need.
        return self.output.clone()


def look_at(
    model: nn.Module, layer: nn.Module, images: Tensor, classes: Tensor | None = None
) -> Look:
    """Give the layer's activations and the gradient of the scores there.

    The model is ``borrowed``: it evaluates, and no other thread hears the hook.
    """
    height, width = images.shape[2:]
    tap = _Tap(model, len(images), (height, width))
    hook = hooked(layer, tap)
    try:
        with torch.inference_mode(mode=False), torch.no_grad(), step_by_step(model):
            scores = class_scores(logits_of(_answer(model, images)), classes)
            # A layer may also run beside the way to the logits, or before a detach or no_grad.
            gradient = None
            if tap.output is not None and scores.requires_grad:
                (gradient,) = torch.autograd.grad(scores.sum(), tap.output, allow_unused=True)
    finally:
        hook.remove()
    if tap.output is None or tap.layout is None or gradient is None:
        raise ModelError(
            f"No gradient leads from the logits to layer {type(layer).__name__}.",
            "Choose a layer that runs on the way to the logits.",
        )
    slopes = _precise(gradient, tap.layout)
    if tap.layout.prefix and not slopes.any() and gradient.any():
        better = name_of(model, cam_layer(model, size=tap.size, channels=images.shape[1]))
        raise ModelError(
            f"After layer {name_of(model, layer)} the answer depends on the class token alone, "
            "not on any place of the picture.",
            f"Use layer {better}.",
        )
    maps = _precise(tap.output.detach(), tap.layout)
    return Look(maps=maps, gradient=slopes, layout=tap.layout)


def _precise(output: Tensor, layout: Layout) -> Tensor:
    """Give (N, C, h, w), never in half precision."""
    maps = layout.maps(output)
    return maps if maps.dtype == torch.float64 else maps.float()


def _answer(model: nn.Module, images: Tensor) -> object:
    """Run the model; a transformer made for another size says so by an assertion."""
    try:
        return model(images)
    except AssertionError as error:
        height, width = images.shape[2:]
        raise wrong_size(model, (height, width), error) from error
