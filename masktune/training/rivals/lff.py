"""LfF, learning from failure (Nam et al., NeurIPS 2020): one network learns what another fails at.

Two networks see the same batches. The first learns by generalised cross entropy, the cross entropy
times ``bias_power * p_y ** bias_power`` (no gradient through the weight), so it prefers what it
finds easy. Of both, the cross entropy of every picture is kept as a moving average (0.7 of the old
one; the first value as it is) and divided by the largest of its class: b and d. The second network
learns by the cross entropy times b / (b + d + 1e-8), and is the result. It needs nothing but
labels. The power of 0.7 and the averages are those of the authors' code.

Decided here: both networks begin as copies of one model, where the authors' have different fresh
weights; what is frozen in one is frozen in both; smoothed labels are for the second network only.
"""

import copy
from dataclasses import replace

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import unwrapped
from masktune.data.types import Batch, Split
from masktune.models.logits import class_loss, logits_of
from masktune.training.by_recipe import beginning, best_of, by_group, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM

OLD = 0.7
"""Share of the old moving average in the new one."""


class Difficulty(nn.Module):
    """How hard both networks find every training picture: resumed with them.

    ``averages`` is (2, N) float, the moving averages of the first network's cross entropies and of
    the second's; -1 before a picture was seen.
    """

    averages: Tensor
    labels: Tensor

    def __init__(self, labels: Tensor, *, classes: int) -> None:
        """Begin without having seen a picture; labels are (N,) int64."""
        super().__init__()
        self.classes = classes
        self.register_buffer("averages", torch.full((2, len(labels)), -1.0))
        self.register_buffer("labels", labels, persistent=False)

    def add(self, positions: Tensor, losses: Tensor) -> None:
        """Take in the cross entropies (2, M) of the pictures at some positions (M,)."""
        old = self.averages[:, positions]
        self.averages[:, positions] = torch.where(old < 0, losses, OLD * old + (1 - OLD) * losses)

    def weights(self) -> Tensor:
        """Return the weight of every picture for the second network, (N,) in [0, 1].

        Those of pictures that were not seen mean nothing.
        """
        labels = self.labels.expand(2, -1)
        largest = self.averages.new_zeros(2, self.classes).scatter_reduce(
            1, labels, self.averages, "amax"
        )
        # A class that is answered with certainty has the largest value 0, and no weight.
        tiny = torch.finfo(largest.dtype).tiny
        first, second = self.averages / largest.clamp(min=tiny).gather(1, labels)
        weights: Tensor = first / (first + second + 1e-8)
        return weights


class LfF(ERM):
    """The loss of both networks; the model that is trained is the second."""

    def __init__(
        self,
        first: nn.Module,
        split: Split,
        *,
        classes: int,
        power: float,
        smoothing: float = 0.0,
        compute: Accelerator,
    ) -> None:
        """Take the first network, which is trained in place, and the training pictures."""
        super().__init__(smoothing=smoothing)
        self.first, self.power, self.compute = first, power, compute
        self.difficulty = Difficulty(split.labels, classes=classes)

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Note how hard the batch is; return both networks' loss and the second's logits."""
        del unlabelled
        learn_alike(self.first, unwrapped(model))
        logits = logits_of(model(images)).float()
        ours = class_loss(logits, batch.labels, reduction="none")  # (N,)
        theirs = class_loss(logits_of(self.first(images)).float(), batch.labels, reduction="none")
        # Each process has its share of the batch; all of them note the whole.
        positions, hard, harder = (
            self.compute.gather(each) for each in (batch.positions, theirs.detach(), ours.detach())
        )
        self.difficulty.add(positions, torch.stack([hard, harder]))
        weights = self.difficulty.weights()[batch.positions]
        if self.smoothing:
            ours = class_loss(logits, batch.labels, smoothing=self.smoothing, reduction="none")
        return (easy_first(theirs, self.power) + weights * ours).mean(), logits

    def modules(self) -> nn.ModuleDict:
        """Return the first network and how hard both find the pictures."""
        return nn.ModuleDict({"first": self.first, "difficulty": self.difficulty})


def easy_first(losses: Tensor, power: float) -> Tensor:
    """Return the generalised cross entropy of each picture from its cross entropy, (N,).

    The probability of the true class, p_y, is exp(-cross entropy).
    """
    return power * (-power * losses.detach()).exp() * losses


def learn_alike(first: nn.Module, second: nn.Module) -> None:
    """Let a network learn where another of its kind does: parameters and batch norm."""
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        one.requires_grad_(other.requires_grad)
    for own, its in zip(first.modules(), second.modules(), strict=True):
        own.training = its.training


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train two networks by the recipe; the second is the model after."""
    config, bundle = context.config, context.bundle
    start = beginning(context, before)
    objective = LfF(
        copy.deepcopy(start.model),
        bundle.train,
        classes=len(bundle.card.classes),
        power=config.rival_settings.bias_power,
        smoothing=config.training.label_smoothing,
        compute=context.compute,
    )
    model = learn_by(context, start.model, objective, best=best_of(context))
    weights = by_group(bundle, objective.difficulty.weights().cpu())
    return finished(context, replace(start, model=model), facts={"mean weight": weights})
