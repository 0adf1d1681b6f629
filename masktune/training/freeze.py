"""Which part of a network does not learn: all before a layer, in the order in which layers run."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from masktune.config import BODY
from masktune.data.augment import NONE
from masktune.errors import ModelError
from masktune.heat.layers import layer_named, refuse_scripted
from masktune.models.eval_mode import hooked


def frozen_part(model: nn.Module, upto: str, *, probe: Tensor) -> list[nn.Module]:
    """Return the modules whose own parameters do not learn.

    A picture shows in which order layers run. Frozen is what has begun when the named layer is
    done: its own parts, all that ran before, and the blocks around them (a ViT's class token
    belongs to the whole network). What is never called, such as the projection inside PyTorch's
    attention, goes with the module that holds it.

    Args:
        model: in evaluation mode.
        upto: name of a layer, or "body" for all before the last layer that has a weight matrix.
        probe: a picture as the model takes it, (1, C, H, W).

    Raises:
        ModelError: there is no such layer, or nothing before the head.
    """
    refuse_scripted(model)
    last = None if upto == BODY else _last(model, upto)
    begun: dict[nn.Module, None] = {}
    done: list[int] = []  # how many had begun when the last one was done

    def end(*_: object) -> None:
        done.append(len(begun))

    hooks = [
        hooked(module, lambda module, _: begun.setdefault(module), before=True)
        for module in model.modules()
    ]
    if last is not None:
        hooks.append(hooked(last, end))
    try:
        with torch.no_grad():
            model(probe)
    finally:
        for hook in hooks:
            hook.remove()
    order = list(begun)
    if last is None:
        heads = [i for i, m in enumerate(order) if any(p.ndim > 1 for p in _own(m))]
        done = [heads[-1]] if heads else [0]
    if not done or done[-1] == 0:
        raise ModelError(
            f"Nothing runs up to '{upto}' in this model.",
            f"Name another layer by --freeze, or freeze {NONE}.",
        )
    early = {*order[: done[-1]]}
    frozen: dict[str, bool] = {}
    for name, module in model.named_modules():
        holder = frozen.get(name.rpartition(".")[0], False)
        frozen[name] = module in early if module in begun else holder
    return [module for name, module in model.named_modules() if frozen[name]]


def check_layer(model: nn.Module, upto: str) -> None:
    """Refuse a layer that a model has not, before anything is computed that freezing follows.

    Raises:
        ModelError: there is no such layer.
    """
    if upto not in (NONE, BODY):
        _last(model, upto)


def with_statistics(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """Return those that keep a running mean, such as batch norm."""
    return [m for m in modules if isinstance(getattr(m, "running_mean", None), Tensor)]


def _own(module: nn.Module) -> list[nn.Parameter]:
    return list(module.parameters(recurse=False))


def _last(model: nn.Module, name: str) -> nn.Module:
    try:
        return layer_named(model, name)
    except ModelError as error:
        tops = ", ".join(name for name, _ in model.named_children())
        raise ModelError(
            error.problem, f"Freeze {NONE}, {BODY}, or up to one of {tops} or a layer inside."
        ) from error
