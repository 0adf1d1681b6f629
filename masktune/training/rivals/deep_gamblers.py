"""Deep Gamblers (Liu et al., NeurIPS 2019): one more output, which stands for abstaining.

The model's K logits and one more, a linear unit on what goes into its last layer, are exactly a
network with K + 1 outputs. The loss is

    -log(p_y + p_abstain / payoff):

a right answer wins the payoff, and what is laid on abstaining comes back as it was. At a payoff of
1 abstaining would cost nothing, and above the number of classes guessing would pay more than it:
such payoffs are refused. It needs nothing but labels. *after* answers by the first K outputs alone,
as the authors' code does; its own score is -p_abstain.

The payoff is that of the authors' code for CIFAR-10, 2.2, or the number of classes where that is
less: with two classes it is 2, where a coin toss pays as much as abstaining does, so smaller ones
are worth a try. As in that code, where the payoff is below 6.1 the first third of the epochs (its
100 of 300) train plain cross entropy, else none; an epoch of that third is never taken as the best
one. Label smoothing counts in that third only.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import RunConfig
from masktune.data.types import Batch, DatasetBundle, Split
from masktune.errors import ConfigError
from masktune.models.head import head_of, logits_and_features
from masktune.models.logits import class_logits
from masktune.training.by_recipe import beginning, best_of, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM, Best
from masktune.training.last_layer import last_layer
from masktune.training.rivals.further import fresh, own_scores

PAYOFF = 2.2
PLAIN_BELOW = 6.1
"""Payoffs from here on need no epochs of plain cross entropy first."""


def gamblers_loss(logits: Tensor, labels: Tensor, *, payoff: float) -> Tensor:
    """Return the mean loss of (N, K + 1) logits, the last of which is to abstain."""
    logs = logits.log_softmax(dim=1)
    right = logs.gather(1, labels[:, None])[:, 0]
    return -torch.logaddexp(right, logs[:, -1] - math.log(payoff)).mean()


class Abstaining(nn.Module):
    """The further output, from features (N, D) to (N, 1), and the epochs begun so far."""

    begun: Tensor

    def __init__(self, features: int) -> None:
        """Draw fresh weights."""
        super().__init__()
        self.output = nn.Linear(features, 1)
        # A buffer, so that a resumed training knows in which epoch it is.
        self.register_buffer("begun", torch.tensor(0))


class DeepGamblers(ERM):
    """The gambler's loss after some epochs of plain cross entropy."""

    def __init__(
        self,
        head: str,
        abstaining: Abstaining,
        *,
        payoff: float,
        plain: int = 0,
        smoothing: float = 0.0,
    ) -> None:
        """Take the name of the model's last layer, the output beside it and the plain epochs."""
        super().__init__(smoothing=smoothing)
        self.head, self.abstaining = head, abstaining
        self.payoff, self.plain = payoff, plain

    def draw(self, split: Split, generator: torch.Generator) -> Sequence[int]:
        """Return all positions in random order; an epoch begins."""
        self.abstaining.begun += 1
        return super().draw(split, generator)

    @property
    def gambles(self) -> bool:
        """Whether this epoch has the gambler's loss."""
        return int(self.abstaining.begun) > self.plain

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of a batch and the logits of its classes."""
        if not self.gambles:
            return super().loss(model, images, batch, unlabelled)
        outputs = self.outputs(model, images)
        loss = gamblers_loss(outputs, batch.labels, payoff=self.payoff)
        return loss, outputs[:, :-1]

    def outputs(self, model: nn.Module, images: Tensor) -> Tensor:
        """Return the logits of all classes and of abstaining, (N, K + 1) float."""
        logits, features = logits_and_features(model, images, head=self.head)
        further = self.abstaining.output(features)
        return torch.cat([class_logits(logits), further.to(logits)], dim=1).float()

    def score(self, model: nn.Module, images: Tensor) -> Tensor:
        """Return how surely each picture is to be answered, (N,) double."""
        return -self.outputs(model, images).double().softmax(dim=1)[:, -1]

    def modules(self) -> nn.ModuleDict:
        """Return the output for abstaining."""
        return nn.ModuleDict({"abstaining": self.abstaining})

    def best(self, best: Best | None) -> Best | None:
        """Let an epoch of plain cross entropy be better than those before it, and no others."""
        if best is None:
            return None
        score = best.score

        def gambled(model: nn.Module) -> float:
            return score(model) if self.gambles else -1 / int(self.abstaining.begun)

        return replace(best, score=gambled)


def payoff_of(given: float | None, *, classes: int) -> float:
    """Return the payoff of a run; one above the number of classes is refused.

    >>> payoff_of(None, classes=10), payoff_of(None, classes=2)
    (2.2, 2.0)
    """
    if given is None:
        return min(PAYOFF, float(classes))
    if given > classes:
        raise ConfigError(
            f"The payoff is {given:g}, and there are {classes} classes: a guess would win more "
            "than abstaining keeps.",
            f"Give --payoff above 1 and up to {classes}, the number of classes.",
        )
    return given


def check(bundle: DatasetBundle, config: RunConfig) -> None:
    """Refuse a payoff above the number of classes."""
    payoff_of(config.rival_settings.payoff, classes=len(bundle.card.classes))


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train by the recipe with one more output."""
    config = context.config
    payoff = payoff_of(config.rival_settings.payoff, classes=len(context.bundle.card.classes))
    start = beginning(context, before)
    head = last_layer(context, start).name
    layer = head_of(start.model, head)
    objective = DeepGamblers(
        head,
        fresh(context, lambda: Abstaining(layer.in_features)),
        payoff=payoff,
        plain=config.training.epochs // 3 if payoff < PLAIN_BELOW else 0,
        smoothing=config.training.label_smoothing,
    )
    model = learn_by(context, start.model, objective, best=objective.best(best_of(context)))
    own = own_scores(context, model, objective.score)
    facts = {"payoff": payoff, "epochs of plain cross entropy": objective.plain}
    return finished(context, replace(start, model=model), own=own, facts=facts)
