"""What rivals share that have further heads, or a score of their own, beside a network."""

import copy
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from masktune.compute import on_device
from masktune.seeds import isolated
from masktune.training.context import Context, OwnScores

Made = TypeVar("Made", bound=nn.Module)


def fresh(context: Context, make: Callable[[], Made]) -> Made:
    """Return a module whose first weights are the run's seed's, the same in every process."""
    with isolated(context.config.seed, f"weights/{context.config.rival}"):
        return make()


def own_scores(
    context: Context, model: nn.Module, score: Callable[[nn.Module, Tensor], Tensor]
) -> OwnScores:
    """Score every picture that models are asked about by what a rival has learnt.

    ``score`` takes the network, on the device and in evaluation mode, and pictures (B, C, H, W);
    it returns (B,) double, higher is surer: in single precision sure scores would tie.
    """
    asked = on_device(copy.deepcopy(model), context.compute).eval()

    def ask(images: Tensor) -> Tensor:
        with torch.no_grad(), context.compute.autocast():
            return score(asked, images)

    with context.timed("evaluate"):
        return context.own_scores(ask)
