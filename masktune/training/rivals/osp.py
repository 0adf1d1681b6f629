"""One-sided prediction (Gangrade, Kag and Saligrama, AISTATS 2021): a detector for each class.

An interpretation, from memory of the paper. With f_k the sigmoid of logit k, own_k the mean of
-log f_k over a batch's pictures of class k and other_k that of -log(1 - f_k) over all others (0
where there are none), each class makes own_k small while other_k stays below phi_k. It is solved
as the minimum over the network and phi >= 0, the maximum over multipliers lambda >= 0, of

    sum over k of own_k + lambda_k * (other_k - phi_k) + trade_off * phi_k.

Every batch, the whole of it where several processes share it, moves multipliers and phi by one
gradient step of their own, so that neither momentum nor weight decay acts on them. The multipliers
begin at the trade-off, where they rest, and phi at 0.5. It needs nothing but labels, and a logit
for every class. *after* answers by the softmax of its logits, so with the class of the largest f_k;
its own score is that f_k.

A PyTorch version by one of the authors is public and calls itself incomplete: it has a softmax in
place of the sigmoids and an auxiliary head, and chooses the trade-off by a search.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.types import Batch
from masktune.errors import ModelError
from masktune.models.logits import logits_of
from masktune.training.by_recipe import beginning, best_of, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM
from masktune.training.rivals.further import own_scores
from masktune.training.whole_batch import whole

STEP = 0.01
"""Of multipliers and phi; a choice of this interpretation."""

ALLOWED = 0.5
"""What phi begins with, as in the authors' version."""


class Constraints(nn.Module):
    """Multipliers and allowed errors of every class, (K,) float: resumed with the model."""

    multipliers: Tensor
    allowed: Tensor

    def __init__(self, classes: int, *, trade_off: float) -> None:
        """Begin where the multipliers rest."""
        super().__init__()
        self.register_buffer("multipliers", torch.full((classes,), trade_off))
        self.register_buffer("allowed", torch.full((classes,), ALLOWED))


class OneSided(ERM):
    """The Lagrangian of one-sided prediction."""

    def __init__(self, constraints: Constraints, *, trade_off: float, compute: Accelerator) -> None:
        """Take what a larger allowed error costs."""
        super().__init__()
        self.constraints, self.trade_off, self.compute = constraints, trade_off, compute

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the Lagrangian of a batch and its logits; then move the constraints by it."""
        del unlabelled
        logits = logits_of(model(images)).float()
        is_own = F.one_hot(batch.labels, logits.shape[1]).to(logits)  # (N, K)
        terms = (
            is_own,
            1 - is_own,
            -is_own * F.logsigmoid(logits),
            -(1 - is_own) * F.logsigmoid(-logits),
        )
        sums = torch.stack([term.sum(dim=0) for term in terms])  # (4, K)
        owns, others, own_sum, other_sum = whole(sums, self.compute)
        own, other = own_sum / owns.clamp(min=1), other_sum / others.clamp(min=1)  # (K,)
        held = self.constraints
        multipliers, allowed = held.multipliers.clone(), held.allowed.clone()
        lagrangian = own + multipliers * (other - allowed) + self.trade_off * allowed
        held.multipliers += STEP * (other.detach() - allowed)
        held.allowed -= STEP * (self.trade_off - multipliers)
        for moved in (held.multipliers, held.allowed):
            moved.clamp_(min=0)
        return lagrangian.sum(), logits

    def score(self, model: nn.Module, images: Tensor) -> Tensor:
        """Return what the surest detector says, (N,) double."""
        return logits_of(model(images)).double().sigmoid().amax(dim=1)

    def modules(self) -> nn.ModuleDict:
        """Return multipliers and allowed errors."""
        return nn.ModuleDict({"constraints": self.constraints})


def check_start(start: Checkpoint) -> None:
    """Refuse a network with one logit for two classes."""
    if start.classes == 1:
        raise ModelError(
            "One-sided prediction trains a detector for each class, and the model has one logit "
            "for both.",
            "Give a model with a logit for every class, or leave --start erm out.",
        )


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train by the recipe with a detector for each class."""
    start = beginning(context, before)
    check_start(start)
    trade_off = context.config.rival_settings.trade_off
    objective = OneSided(
        Constraints(len(context.bundle.card.classes), trade_off=trade_off),
        trade_off=trade_off,
        compute=context.compute,
    )
    model = learn_by(context, start.model, objective, best=best_of(context))
    own = own_scores(context, model, objective.score)
    facts = {
        "multipliers": [round(float(each), 4) for each in objective.constraints.multipliers],
        "allowed errors": [round(float(each), 4) for each in objective.constraints.allowed],
    }
    return finished(context, replace(start, model=model), own=own, facts=facts)
