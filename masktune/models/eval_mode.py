"""Borrow a model for evaluation without touching it: others may be using it."""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

from torch import Tensor, nn
from torch.overrides import BaseTorchFunctionMode
from torch.utils.hooks import RemovableHandle

_numbering = Lock()


def borrowed(model: nn.Module, *layers: nn.Module) -> tuple[nn.Module, ...]:
    """Return a model in evaluation mode, and layers of it, as objects of the caller's own.

    They share every weight with the model given and nothing else, so hooks and modes are the
    caller's own: a model is shared by the threads of a server, and what one of them hangs on it
    another would hear, copy or lose.
    """
    weights = {
        id(value): value
        for module in model.modules()
        for value in (
            *module.parameters(recurse=False),
            *module.buffers(recurse=False),
            *vars(module).values(),
        )
        if isinstance(value, Tensor)
    }
    own, *parts = copy.deepcopy((model, *layers), weights)
    return own.eval(), *parts


def hooked(module: nn.Module, hook: Callable[..., Any], *, before: bool = False) -> RemovableHandle:
    """Register a forward hook, ``before`` for one that is called when the module begins.

    PyTorch numbers hooks by a counter that threads race for, and a number given twice would
    replace a hook that the model came with.
    """
    with _numbering:
        if before:
            return module.register_forward_pre_hook(hook)
        return module.register_forward_hook(hook)


def step_by_step(model: nn.Module) -> AbstractContextManager[object]:
    """Let PyTorch's attention layers compute as they do when gradients are wanted.

    Without gradients they use a fused kernel that rounds otherwise. XGradCAM divides by sums that
    nearly cancel after a layer norm: a ViT's heat moved by up to 0.005, against 1e-5 promised.
    PyTorch's own switch for it is one for all threads; that a mode looks on, which changes
    nothing, keeps it away from the caller's.
    """
    fused = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
    attends = any(isinstance(module, fused) for module in model.modules())
    return BaseTorchFunctionMode() if attends else nullcontext()
