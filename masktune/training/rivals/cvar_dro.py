"""CVaR DRO (Levy et al., NeurIPS 2020): learn from the worst answered share of every batch.

Of a batch of m pictures, the floor(worst_share * m) largest cross entropies have the weight
1 / (worst_share * m) each, the next one has what is left of 1, and the others have none: the
batch's conditional value at risk. It needs nothing but labels. The share of 0.1 is a common choice;
the authors of JTT, who compare with it, searched between 0.01 and 1. A batch that several processes
share counts as one.

From fresh weights a small share may never leave the answer that is the same for every picture, as
0.1 did not on the 5,000 digits; a share of 0.5 and ``--start erm`` did.
"""

from dataclasses import replace

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.types import Batch
from masktune.models.logits import class_loss, logits_of
from masktune.training.by_recipe import beginning, best_of, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM


class CVaR(ERM):
    """The mean over the worst answered share of a batch."""

    def __init__(self, *, share: float, smoothing: float = 0.0, compute: Accelerator) -> None:
        """Take the share, above 0 to 1."""
        super().__init__(smoothing=smoothing)
        self.share, self.compute = share, compute

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the mean of the worst answered share of a batch, and its logits."""
        del unlabelled
        logits = logits_of(model(images)).float()
        losses = class_loss(logits, batch.labels, smoothing=self.smoothing, reduction="none")
        # Each process has its share of the batch; who is worst is told by all of them.
        everywhere = self.compute.gather(losses.detach())
        first = self.compute.process_index * len(losses)
        own = worst_weights(everywhere, self.share)[first : first + len(losses)]
        # The wrapper of the model averages gradients over processes, hence the factor.
        return (own * losses).sum() * self.compute.num_processes, logits


def worst_weights(losses: Tensor, share: float) -> Tensor:
    """Return the weight of every loss of a batch, (M,) float summing to 1.

    >>> worst_weights(torch.tensor([1.0, 4.0, 2.0, 3.0, 0.0]), 0.5).tolist()
    [0.0, 0.4000..., 0.2000..., 0.4000..., 0.0]
    """
    few = share * len(losses)
    worst_first = losses.argsort(descending=True, stable=True)
    rank = torch.arange(len(losses)).to(losses)
    return torch.zeros_like(losses).scatter(0, worst_first, (few - rank).clamp(0, 1) / few)


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train by the recipe on the worst answered share of every batch."""
    config = context.config
    start = beginning(context, before)
    objective = CVaR(
        share=config.rival_settings.worst_share,
        smoothing=config.training.label_smoothing,
        compute=context.compute,
    )
    model = learn_by(context, start.model, objective, best=best_of(context))
    return finished(context, replace(start, model=model))
