"""Spectral decoupling (Pezeshki et al., NeurIPS 2021): a penalty on logits in place of decay.

The loss is the cross entropy plus ``penalty / 2`` times the mean squared logit, so that a feature
learnt early does not keep the others from being learnt (gradient starvation). No weight decay: the
penalty stands in its place. It needs nothing but labels.

The authors' code for CelebA has one logit, a penalty of 0.1 and an offset for each class, chosen
by hand for that dataset; with as many logits as classes their formula has no offsets, and neither
has this. One-logit models take lambda / 2 without offsets here too, half the weight of that code.
"""

from dataclasses import replace

from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.types import Batch
from masktune.training.by_recipe import beginning, best_of, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM

PENALTY = 0.1


class SpectralDecoupling(ERM):
    """Cross entropy and the penalty on logits."""

    def __init__(self, *, penalty: float, smoothing: float = 0.0) -> None:
        """Take the weight of the penalty."""
        super().__init__(smoothing=smoothing)
        self.penalty = penalty

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the penalised cross entropy of a batch and its logits."""
        loss, logits = super().loss(model, images, batch, unlabelled)
        return loss + self.penalty / 2 * logits.square().mean(), logits


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train by the recipe with the penalty, without weight decay."""
    config = context.config
    start = beginning(context, before)
    chosen = config.rival_settings.penalty
    objective = SpectralDecoupling(
        penalty=PENALTY if chosen is None else chosen, smoothing=config.training.label_smoothing
    )
    training = replace(config.training, weight_decay=0.0)
    best = best_of(context)
    model = learn_by(context, start.model, objective, training=training, best=best)
    return finished(context, replace(start, model=model))
