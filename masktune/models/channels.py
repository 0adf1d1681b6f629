"""Networks for grey pictures that are fed RGB like every other."""

import copy

import torch
from torch import Tensor, nn

from masktune.errors import ModelError

LUMA = (0.299, 0.587, 0.114)
"""How much red, green and blue add to brightness, by ITU-R BT.601, as Pillow's "L" does."""


def takes_grey(model: nn.Module, *, channels: int) -> nn.Module:
    """Let a model of one channel take RGB pictures too; other models stay as they are.

    (N, 3, H, W) becomes its luma (N, 1, H, W) before the model sees it; (N, 1, H, W) passes. The
    luma is taken after normalisation, which is the normalised luma when all channels are
    normalised alike.
    """
    if channels == 1:
        model.register_forward_pre_hook(_luma)
    return model


def _luma(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    images, *others = inputs
    if images.ndim != 4 or images.shape[1] != 3:
        return inputs
    weights = torch.tensor(LUMA, dtype=images.dtype, device=images.device).view(1, 3, 1, 1)
    return ((images * weights).sum(dim=1, keepdim=True), *others)


def one_channel(model: nn.Module) -> nn.Module:
    """Replace the first convolution of an RGB network by one for a single channel.

    Its weights are the sums over the three colours, so that a grey picture gets the same answer
    as it did as RGB. Names in the state dict stay.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d) and module.in_channels == 3:
            parent, _, last = name.rpartition(".")
            new = copy.deepcopy(module)
            new.in_channels = 1
            new.weight = nn.Parameter(module.weight.detach().sum(dim=1, keepdim=True))
            new.bias = module.bias
            setattr(model.get_submodule(parent), last, new)
            return model
    raise ModelError(
        f"{type(model).__name__} has no convolution over three colour channels.",
        "Give it RGB pictures.",
    )
