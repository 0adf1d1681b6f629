"""SelectiveNet (Geifman and El-Yaniv, ICML 2019): a second head says which pictures to answer.

Three heads stand on one body: the prediction f, which is the model's own last layer, the selection
g (512 units, ReLU, batch norm, one unit, sigmoid) and an auxiliary prediction h. With c the
coverage that is wanted, one for a run, the loss is

    1/2 [ sum(g * CE_f) / sum(g) + penalty * max(0, c - mean g)^2 ] + 1/2 mean CE_h,

over the whole batch, however many processes share it. h is left out of *after*; its own score is g.
It needs nothing but labels. The penalty is that of the authors' code (32); their code leaves out
the division by the sum of g, which their paper has, and so has this. The heads read what goes into
the last layer; the recipe's rate, decay and epochs are taken as they are, where the authors train
for 300 epochs at a rate that is halved every 25.
"""

from dataclasses import replace

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.config import RunConfig
from masktune.data.types import Batch, DatasetBundle
from masktune.errors import ConfigError
from masktune.models.head import head_of, logits_and_features
from masktune.models.logits import class_loss
from masktune.scores.result import VALIDATION
from masktune.training.by_recipe import beginning, best_of, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM
from masktune.training.last_layer import last_layer
from masktune.training.rivals.further import fresh, own_scores
from masktune.training.whole_batch import whole

PENALTY = 32.0
UNITS = 512


class SelectionHeads(nn.ModuleDict):
    """Selection and auxiliary prediction, from features (N, D) to (N, 1) and (N, K) logits."""

    def __init__(self, features: int, classes: int) -> None:
        """Draw fresh weights."""
        hidden = nn.Linear(features, UNITS)
        super().__init__(
            {
                "selection": nn.Sequential(
                    hidden, nn.ReLU(), nn.BatchNorm1d(UNITS), nn.Linear(UNITS, 1)
                ),
                "auxiliary": nn.Linear(features, classes),
            }
        )


class SelectiveNet(ERM):
    """Selective risk with a coverage that it should not fall below."""

    def __init__(
        self,
        head: str,
        heads: SelectionHeads,
        *,
        coverage: float,
        penalty: float = PENALTY,
        smoothing: float = 0.0,
        compute: Accelerator,
    ) -> None:
        """Take the name of the model's last layer and the heads beside it."""
        super().__init__(smoothing=smoothing)
        self.head, self.heads, self.compute = head, heads, compute
        self.coverage, self.penalty = coverage, penalty

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of all heads and the logits of the model's own."""
        del unlabelled
        logits, features = logits_and_features(model, images, head=self.head)
        chosen = self.heads["selection"](features).float().sigmoid()[:, 0]  # (N,)
        risks, beside = (
            class_loss(each.float(), batch.labels, smoothing=self.smoothing, reduction="none")
            for each in (logits, self.heads["auxiliary"](features))
        )
        sums = torch.stack([torch.ones_like(chosen), chosen, chosen * risks, beside]).sum(dim=1)
        count, share, risk, plain = whole(sums, self.compute)
        short = (self.coverage - share / count).clamp(min=0)
        selective = risk / share.clamp(min=torch.finfo(share.dtype).tiny)
        loss = (selective + self.penalty * short.square()) / 2 + plain / count / 2
        return loss, logits.float()

    def score(self, model: nn.Module, images: Tensor) -> Tensor:
        """Return how surely each picture is to be answered, (N,) double."""
        _, features = logits_and_features(model, images, head=self.head)
        chosen: Tensor = self.heads["selection"](features).double().sigmoid()[:, 0]
        return chosen

    def modules(self) -> nn.ModuleDict:
        """Return the further heads."""
        return self.heads


def check(bundle: DatasetBundle, config: RunConfig) -> None:
    """Refuse steps of one picture."""
    del bundle
    _check_batch(config.training.batch_size)


def _check_batch(pictures: int) -> None:
    if pictures < 2:
        raise ConfigError(
            "SelectiveNet's selection head has a batch norm, which cannot learn from one picture.",
            "Give each process two pictures a step or more, by --batch-size.",
        )


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train by the recipe with a selection head for one coverage."""
    config, compute = context.config, context.compute
    start = beginning(context, before)
    _check_batch(config.training.batch_size // compute.num_processes)
    head = last_layer(context, start).name
    layer = head_of(start.model, head)
    chosen = config.rival_settings
    objective = SelectiveNet(
        head,
        fresh(context, lambda: SelectionHeads(layer.in_features, layer.out_features)),
        coverage=chosen.target_coverage,
        penalty=PENALTY if chosen.penalty is None else chosen.penalty,
        smoothing=config.training.label_smoothing,
        compute=compute,
    )
    model = learn_by(context, start.model, objective, best=best_of(context))
    objective.heads.eval()
    own = own_scores(context, model, objective.score)
    facts = {"mean selection on validation": round(float(own[VALIDATION].mean()), 4)}
    return finished(context, replace(start, model=model), own=own, facts=facts)
