"""Borrow a model for evaluation and give it back as it was."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode; afterwards each submodule gets its own mode back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


class _StepByStep(TorchFunctionMode):
    """Runs every function as it is; that someone looks on is what keeps fused kernels away."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        return func(*args, **(kwargs or {}))


def step_by_step(model: nn.Module) -> AbstractContextManager[object]:
    """Let PyTorch's attention layers compute as they do when gradients are wanted.

    Without gradients they use a fused kernel that rounds otherwise. XGradCAM divides by sums that
    nearly cancel after a layer norm: a ViT's heat moved by up to 0.005, against 1e-5 promised.
    PyTorch's own switch for it is one for all threads; this one is for the caller's.
    """
    fused = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
    return _StepByStep() if any(isinstance(m, fused) for m in model.modules()) else nullcontext()
