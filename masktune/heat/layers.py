"""Which layer to look at, by itself or by name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from masktune.errors import ModelError
from masktune.heat.feature_map import Layout, attends, is_attention, layout_of
from masktune.models.eval_mode import borrowed, hooked

Note = Callable[[nn.Module, tuple[object, ...], object], None]


@dataclass(frozen=True, slots=True)
class _Call:
    """A layer that ran, and where the places are in what it gave."""

    module: nn.Module
    layout: Layout


def cam_layer(
    model: nn.Module, *, size: tuple[int, int] = (224, 224), channels: int = 3
) -> nn.Module:
    """Find the layer whose heat says most: the model's last spatial feature map.

    A probe picture shows which modules run in which order. In a convolutional network the answer
    is the last module that gives a map as large as the last convolution's, so that it comes after
    batch norm, activation and shortcut, and before any pooling.

    In a network that attends it is the last layer whose places still influence what reaches the
    head. After the last attention only the class token does, so of a ViT it is the norm before the
    last attention; of a Swin it is the last map. Such a network needs weights: its gradients are
    looked at.

    Args:
        model: any network with feature maps, channels first or last, or tokens.
        size: (H, W) of the pictures it will see; small pictures leave no map in late layers.
        channels: colour channels of the pictures.

    Returns:
        A module of ``model``; its output has more places than one.
    """
    return _last_map(model, _spatial_calls(model, size, channels), size)


def _last_map(model: nn.Module, calls: list[_Call], size: tuple[int, int]) -> nn.Module:
    convolutions = [i for i, call in enumerate(calls) if isinstance(call.module, nn.Conv2d)]
    if convolutions and not attends(model):
        last = convolutions[-1]
        calls = [call for call in calls[last:] if call.layout.grid == calls[last].layout.grid]
    candidates = [call.module for call in calls if "Pool" not in type(call.module).__name__]
    if not candidates:
        raise ModelError(
            f"{type(model).__name__} has no spatial feature map to look at in pictures of "
            f"{size[0]}x{size[1]}.",
            "Use larger pictures, a convolutional network or a vision transformer, or "
            "--strategy random, which needs no heat.",
        )
    return candidates[-1]


def usual_and_all(model: nn.Module, *, size: tuple[int, int]) -> tuple[str, list[str]]:
    """Name the layer of ``cam_layer``, and all whose output has more places than one, latest first.

    Of layers that give the same map (a block and its last activation) the outermost comes first.
    In a network that attends only layers whose places influence the answer are named.
    """
    calls = _spatial_calls(model, size, channels=3)
    names = {module: name for name, module in model.named_modules()}
    every = dict.fromkeys(names[call.module] for call in reversed(calls))
    return names[_last_map(model, calls, size)], list(every)


def layer_named(model: nn.Module, name: str) -> nn.Module:
    """Give the submodule called ``name``, such as "layer4.1"."""
    modules: dict[str, nn.Module] = dict(model.named_modules())
    if name not in modules or not name:
        ends = [n for n in modules if n][-5:]
        raise ModelError(
            f"The model has no layer '{name}'.", f"Its last layers are {', '.join(ends)}."
        )
    return modules[name]


def name_of(model: nn.Module, layer: nn.Module) -> str:
    """Give the name of a submodule, the inverse of ``layer_named``."""
    names: dict[nn.Module, str] = {module: name for name, module in model.named_modules()}
    return names[layer]


def heat_layer(model: nn.Module, name: str | None, *, size: tuple[int, int]) -> str:
    """Return the name of the layer that heat of pictures of (H, W) is read at.

    ``name`` is as the user wants it, refused where there is none; None takes that of ``cam_layer``.
    """
    return name_of(model, cam_layer(model, size=size) if name is None else layer_named(model, name))


def refuse_scripted(model: nn.Module) -> None:
    """Refuse a TorchScript model: nothing can be hooked to its layers."""
    if isinstance(model, torch.jit.ScriptModule):
        raise ModelError(
            "This is a TorchScript model, and no one can look into its layers.",
            "Save the state dict of the model it was made from, and load that.",
        )


def wrong_size(model: nn.Module, size: tuple[int, int], error: Exception) -> ModelError:
    """Say that a model does not take pictures of a size, and which it takes if it says so."""
    kind, side = type(model).__name__, f"{size[0]}x{size[1]}"
    made_for = _made_for(model)
    if made_for is not None and made_for != size:
        own = f"{made_for[0]}x{made_for[1]}"
        return ModelError(
            f"{kind} takes {own} pictures, not {side}.",
            f"Use {own} pictures, or another architecture.",
        )
    return ModelError(
        f"{kind} does not take {side} pictures: {error}",
        "Use another architecture or larger pictures.",
    )


def _made_for(model: nn.Module) -> tuple[int, int] | None:
    """Give the picture size a transformer was made for, as torchvision and timm keep it."""
    for module in model.modules():
        found = getattr(module, "image_size", getattr(module, "img_size", None))
        if isinstance(found, int):
            return found, found
        if isinstance(found, tuple | list) and len(found) == 2:
            return int(found[0]), int(found[1])
    return None


def _spatial_calls(model: nn.Module, size: tuple[int, int], channels: int) -> list[_Call]:
    """List the layers with more places than one in the order they finish."""
    refuse_scripted(model)
    (own,) = borrowed(model)
    theirs = dict(zip(own.modules(), model.modules(), strict=True))
    return [replace(c, module=theirs[c.module]) for c in _calls(own, size, channels)]


def _calls(model: nn.Module, size: tuple[int, int], channels: int) -> list[_Call]:
    """List them in a model of one's own."""
    if attends(model):
        return _influential(model, size, channels)
    calls: list[_Call] = []

    def note(module: nn.Module, _: tuple[object, ...], output: object) -> None:
        layout = layout_of(output, model=model, count=1, size=size)
        if layout is not None and layout.places > 1 and module is not model:
            calls.append(_Call(module, layout))

    with torch.no_grad(), _noting(model, note):
        _run(model, torch.zeros(1, channels, *size))
    maps = [call for call in calls if call.layout.order != "tokens"]
    # A network may mix tokens without attention, by linear layers alone. Channels before places,
    # as flattening leaves them, are no tokens: they do not form the grid of a map.
    last = calls[-1].layout if maps else None
    if last is not None and last.order == "tokens" and last.grid == maps[-1].layout.grid:
        return _influential(model, size, channels)
    return maps


def _influential(model: nn.Module, size: tuple[int, int], channels: int) -> list[_Call]:
    """List the layers whose places influence what reaches the head, in the order they finish.

    The head is the linear or convolutional layer that runs last. Its input is differentiated, not
    the logits: torchvision's ViT starts with a head of zeros. Layers inside an attention layer
    (queries, keys, values) are left out.
    """
    inside = {
        part
        for module in model.modules()
        if module is not model and is_attention(module)
        for part in module.modules()
        if part is not module
    }
    calls: list[_Call] = []
    outputs: list[Tensor] = []
    features: list[Tensor] = []

    def note(module: nn.Module, inputs: tuple[object, ...], output: object) -> None:
        if isinstance(module, nn.Linear | nn.Conv2d) and isinstance(inputs[0], Tensor):
            features[:] = [inputs[0]]
        if module is model or module in inside or not isinstance(output, Tensor):
            return
        layout = layout_of(output, model=model, count=1, size=size)
        if layout is not None and layout.places > 1 and output.requires_grad:
            calls.append(_Call(module, layout))
            outputs.append(output)

    generator = torch.Generator().manual_seed(0)
    probe = torch.rand(1, channels, *size, generator=generator)
    with torch.inference_mode(mode=False), torch.enable_grad(), _noting(model, note):
        # The picture, too: parameters may be frozen.
        _run(model, probe.clone().requires_grad_())
        if not outputs or not features or not features[0].requires_grad:
            return []
        # Summed as they are, features that a layer norm has centred would have no gradient.
        mixture = torch.randn(features[0].shape, generator=generator).to(features[0])
        gradients = torch.autograd.grad((features[0] * mixture).sum(), outputs, allow_unused=True)
    return [
        call
        for call, gradient in zip(calls, gradients, strict=True)
        if gradient is not None and bool(call.layout.maps(gradient).any())
    ]


@contextmanager
def _noting(model: nn.Module, note: Note) -> Iterator[None]:
    """Tell ``note`` about every module that runs, with what it was given and what it gave."""
    hooks = [hooked(module, note) for module in model.modules()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _run(model: nn.Module, probe: Tensor) -> None:
    """Show the model one picture (1, C, H, W)."""
    probe = probe.clone()  # a model may change what it is given, which is no leaf's fate
    parameter = next(model.parameters(), None)
    if parameter is not None:
        probe = probe.to(parameter.device, parameter.dtype)
    try:
        model(probe)
    except (RuntimeError, ValueError, AssertionError) as error:
        height, width = probe.shape[2:]
        raise wrong_size(model, (height, width), error) from error
