"""Group DRO (Sagawa et al., ICLR 2020): more weight on the group that is answered worst.

Every batch is drawn with the same chance for each group. With L_g the mean cross entropy of the
group's pictures in the batch, 0 where there are none, the weights move by

    q_g <- q_g * exp(group_step * (L_g + group_adjustment / sqrt(n_g))), normalised to sum 1,

and the loss is the sum of q_g * L_g, without a gradient through q. Weights begin equal, and 0 for a
group without training pictures: it would never lose anything, and the adjustment would give it all
the weight. It needs the group of every training picture. Step and adjustment are those of the
authors' code (0.01 and 0); the recipe's rate, decay and epochs are taken as they are, where the
authors train long with strong decay.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.types import Batch, Split
from masktune.models.logits import class_loss, logits_of
from masktune.training.by_recipe import beginning, best_of, finished, learn_by
from masktune.training.context import Context, Tuned


class GroupWeights(nn.Module):
    """The weight of every group, (G,) float summing to 1: resumed with the model."""

    q: Tensor

    def __init__(self, counts: Tensor) -> None:
        """Begin with equal weights of the groups that have pictures, by their counts (G,)."""
        super().__init__()
        there = (counts > 0).float()
        self.register_buffer("q", there / there.sum())


class GroupDRO:
    """Group DRO over the groups of a split, label times attribute."""

    unlabelled: Split | None = None

    def __init__(
        self,
        split: Split,
        *,
        attributes: int,
        classes: int,
        step: float,
        adjustment: float = 0.0,
        smoothing: float = 0.0,
        compute: Accelerator,
    ) -> None:
        """Count the groups of the training pictures; all of its attributes are known."""
        self.attributes, self.step, self.compute = attributes, step, compute
        self.smoothing = smoothing
        self.groups = split.labels * attributes + split.attributes  # (N,) int64
        self.counts = torch.bincount(self.groups, minlength=classes * attributes)
        self.raised = adjustment / self.counts.clamp(min=1).sqrt()  # (G,)
        self.weights = GroupWeights(self.counts)

    def draw(self, split: Split, generator: torch.Generator) -> Sequence[int]:
        """Return as many positions as there are pictures, each group with the same chance."""
        chance = 1 / self.counts[self.groups].double()
        drawn = torch.multinomial(chance, len(split), replacement=True, generator=generator)
        positions: list[int] = drawn.tolist()
        return positions

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Move the weights by the batch; return the weighted loss of its groups, and logits."""
        del unlabelled
        logits = logits_of(model(images)).float()
        losses = class_loss(logits, batch.labels, smoothing=self.smoothing, reduction="none")
        groups = batch.labels * self.attributes + batch.attributes
        total = len(self.counts)
        sums = losses.new_zeros(total).index_add(0, groups, losses)
        counts = torch.bincount(groups, minlength=total).to(losses)
        # Each process has its share of the batch; a group's mean is over all of them.
        everywhere = self.compute.reduce(counts, "sum").clamp(min=1)
        means = self.compute.reduce(sums.detach(), "sum") / everywhere  # (G,)
        q = self.weights.q * torch.exp(self.step * (means + self.raised.to(means)))
        self.weights.q.copy_(q / q.sum())
        # The wrapper of the model averages gradients over processes, hence the factor.
        share = self.weights.q * sums / everywhere * self.compute.num_processes
        return share.sum(), logits

    def modules(self) -> nn.ModuleDict:
        """Return the weights of the groups."""
        return nn.ModuleDict({"weights": self.weights})


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train by the recipe with the weights of groups."""
    config, bundle = context.config, context.bundle
    start = beginning(context, before)
    objective = GroupDRO(
        bundle.train,
        attributes=len(bundle.card.attributes),
        classes=len(bundle.card.classes),
        step=config.rival_settings.group_step,
        adjustment=config.rival_settings.group_adjustment,
        smoothing=config.training.label_smoothing,
        compute=context.compute,
    )
    model = learn_by(context, start.model, objective, best=best_of(context))
    weights = [round(float(q), 4) for q in objective.weights.q]
    return finished(context, replace(start, model=model), facts={"weights of groups": weights})
