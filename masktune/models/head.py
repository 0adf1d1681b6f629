"""The last layer of a network, what goes into it, and a network with another one."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from masktune.compute import unwrapped
from masktune.errors import ModelError
from masktune.models.eval_mode import borrowed, hooked
from masktune.models.logits import logits_of


def head_name(model: nn.Module, probe: Tensor) -> str:
    """Return the name of the last layer: the last that begins and has a weight matrix.

    Args:
        model: a classifier; it is not changed.
        probe: a picture as it takes it, (1, C, H, W).

    Raises:
        ModelError: that layer is not linear, or is not where the logits come from.
    """
    (own,) = borrowed(model)
    # What has a weight matrix of its own, in the order in which it began: a ViT, which holds its
    # class token, is done after its head.
    ran: dict[str, object] = {}

    def begin(name: str) -> RemovableHandle:
        def note(*_: object) -> None:
            ran.pop(name, None)
            ran[name] = None

        return hooked(own.get_submodule(name), note, before=True)

    def end(name: str) -> RemovableHandle:
        return hooked(own.get_submodule(name), lambda _, __, out: ran.update({name: out}))

    hooks = [
        hook(name)
        for name, module in own.named_modules()
        if any(p.ndim > 1 for p in module.parameters(recurse=False))
        for hook in (begin, end)
    ]
    try:
        with torch.no_grad():
            logits = logits_of(own(probe))
    finally:
        for hook in hooks:
            hook.remove()
    last, out = list(ran.items())[-1] if ran else ("", None)
    given = isinstance(out, Tensor) and out.shape == logits.shape and torch.equal(out, logits)
    layer = own.get_submodule(last)
    # Of a layer under spectral norm, weight is no parameter: it is computed from others.
    plain = isinstance(layer, nn.Linear) and "weight" in dict(layer.named_parameters(recurse=False))
    if not (given and plain):
        raise ModelError(
            "The logits of this model do not come from a linear last layer.",
            "Choose a method that trains the whole network, or a model that ends in a linear "
            "layer, as ResNets, ViTs and most others do.",
        )
    return last


def logits_and_features(model: nn.Module, images: Tensor, *, head: str) -> tuple[Tensor, Tensor]:
    """Return the logits (N, K) and what went into the last layer, (N, D).

    The model may be wrapped for several processes; gradients go through both. In training, what
    went in is what a dropout before the last layer has left.
    """
    with _entering(unwrapped(model).get_submodule(head)) as seen:
        logits = logits_of(model(images))
    return logits, seen[-1]


def head_of(model: nn.Module, name: str) -> nn.Linear:
    """Return the last layer by its name."""
    layer = model.get_submodule(name)
    assert isinstance(layer, nn.Linear)
    return layer


def with_head(model: nn.Module, name: str, *, weight: Tensor, bias: Tensor | None) -> nn.Module:
    """Return a copy of a model whose last layer has other numbers, (K, D) and (K,).

    ``bias`` is None where the layer has none, and only there.
    """
    own = copy.deepcopy(model)
    layer = head_of(own, name)
    if (bias is None) != (layer.bias is None):
        raise ValueError(f"the layer {name} has a bias, or none, unlike what it is given")
    with torch.no_grad():
        layer.weight.copy_(weight)
        if bias is not None:
            layer.bias.copy_(bias)
    return own


@contextmanager
def _entering(layer: nn.Module) -> Iterator[list[Tensor]]:
    seen: list[Tensor] = []
    hook = hooked(layer, lambda _, inputs: seen.append(inputs[0]), before=True)
    try:
        yield seen
    finally:
        hook.remove()
