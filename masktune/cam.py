"""Heat: where a model looks, by XGradCAM, for a whole batch at little more than a forward pass."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from masktune.errors import ModelError
from masktune.modes import evaluating

TINY = 1e-7
"""Keeps divisions defined; the value pytorch-grad-cam uses."""


def xgradcam(
    model: nn.Module, layer: nn.Module, images: Tensor, *, classes: Tensor | None = None
) -> Tensor:
    """Say how much each place of a layer's feature map speaks for the class.

    A channel's weight is its gradient averaged with its activation as weights,
    ``sum(g * A) / (sum(A) + 1e-7)``; the heat is the ReLU of the weighted sum of channels,
    stretched to [0, 1] for each image. Where no channel speaks for the class the heat is all zero.

    Only what comes after the layer is differentiated, so parameters may be frozen, the caller may
    be under ``no_grad``, and nothing of the model (modes, gradients, hooks) is changed afterwards.

    Args:
        model: gives logits (N, K), or (N, 1) for a sigmoid head.
        layer: a module of ``model`` whose output is (N, C, h, w); see ``cam_layer``.
        images: (N, C, H, W) float, normalised as the model wants them.
        classes: (N,) int64, the class to explain; by default the arg-max logit, not the label. For
            a one-logit model 1 is the positive side, and the default is the predicted side.

    Returns:
        (N, h, w) float32 in [0, 1].
    """
    maps, gradient = maps_and_gradient(model, layer, images, classes)
    weights = (gradient * maps).sum(dim=(2, 3)) / (maps.sum(dim=(2, 3)) + TINY)  # (N, C)
    return stretch(torch.einsum("nc,nchw->nhw", weights, maps).relu())


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
    return _stretch_in_place(fine[:, 0])


def stretch(heat: Tensor) -> Tensor:
    """Subtract each map's minimum and divide by ``1e-7 +`` its maximum, as grad-cam does."""
    return _stretch_in_place(heat.clone())


def _stretch_in_place(heat: Tensor) -> Tensor:
    # Fine maps are megabytes: fresh memory for each step took longer than the arithmetic.
    heat -= heat.amin(dim=(1, 2), keepdim=True)
    heat /= TINY + heat.amax(dim=(1, 2), keepdim=True)
    return heat


def class_scores(logits: Tensor, classes: Tensor | None = None) -> Tensor:
    """Pick the logit to explain for each image, (N,).

    A one-logit model speaks for class 1 by its logit and for class 0 by the negative of it.
    """
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        kind = type(logits).__name__
        kind = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else f"type {kind}"
        raise ModelError(
            f"The model gave an output of {kind} instead of (N, classes).",
            "Use a classifier that returns one row of logits for each picture.",
        )
    if logits.shape[1] == 1:
        side = logits[:, 0] > 0 if classes is None else classes == 1
        return torch.where(side, logits[:, 0], -logits[:, 0])
    chosen = logits.argmax(dim=1) if classes is None else classes
    return logits.gather(1, chosen[:, None])[:, 0]


@dataclass(slots=True)
class _Tap:
    """Cuts the graph at a layer: what comes before is not differentiated, what follows is."""

    maps: Tensor | None = None

    def __call__(self, layer: nn.Module, _: object, output: object) -> Tensor:
        if not isinstance(output, Tensor) or output.ndim != 4:
            raise ModelError(
                f"Layer {type(layer).__name__} gives no feature map of shape (N, C, h, w).",
                "Choose another layer, or leave the choice to cam_layer.",
            )
        torch.set_grad_enabled(True)  # undone when the enclosing no_grad ends
        self.maps = output.detach().requires_grad_()
        # A copy goes on: an in-place ReLU after the layer may not overwrite a leaf, and would
        # spoil the activations that the weights need.
        return self.maps.clone()


def maps_and_gradient(
    model: nn.Module, layer: nn.Module, images: Tensor, classes: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Give the layer's activations and the gradient of the scores there, both (N, C, h, w)."""
    tap = _Tap()
    hook = layer.register_forward_hook(tap)
    try:
        with torch.inference_mode(mode=False), torch.no_grad(), evaluating(model):
            scores = class_scores(model(images), classes)
            # A layer may also run beside the way to the logits, or before a detach or no_grad.
            gradient = None
            if tap.maps is not None and scores.requires_grad:
                (gradient,) = torch.autograd.grad(scores.sum(), tap.maps, allow_unused=True)
            if tap.maps is None or gradient is None:
                raise ModelError(
                    f"No gradient leads from the logits to layer {type(layer).__name__}.",
                    "Choose a layer that runs on the way to the logits.",
                )
            return tap.maps.detach().float(), gradient.float()
    finally:
        hook.remove()
