"""DivDis (Lee, Yao and Finn, ICLR 2023): heads that must disagree on pictures without labels.

One backbone has several heads, the first of which is the model's own last layer. The loss is

    mean over heads of the cross entropy on training pictures
    + penalty * mean over pairs of heads of the mutual information of their answers

on as many unlabelled pictures, which should be of the distribution that the model is used on. The
mutual information is that of the answers' joint distribution, the mean over the batch (the whole
of it, however many processes share it) of the product of both heads' probabilities. Then the head
is chosen by validation: by its worst group where validation has groups, else by its accuracy, and
by that too where the epoch is (``--best average``).
*after* is the backbone with that head as its last layer. Two heads, a penalty of 10 and means over
pairs are those of the authors' code; its optional term on the shares of labels is left out.

It needs unlabelled pictures. ``unlabelled`` says whose are looked at: those of validation, whose
labels choose the head afterwards, or those of the first test set, which is then no longer unseen.
Either is taken without labels and attributes. Training and unlabelled pictures go through the
network in one batch, so batch norm sees both. Where validation was set aside from training its
pictures are like those trained on and heads find little to disagree about: the facts say so.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.card import UNKNOWN
from masktune.data.types import Batch, DatasetBundle, Split
from masktune.models.head import head_of, logits_and_features
from masktune.models.logits import class_loss, class_probabilities
from masktune.scores.result import scorer
from masktune.training.by_recipe import beginning, best_of, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM, Best
from masktune.training.last_layer import last_layer
from masktune.training.rivals.further import fresh
from masktune.training.whole_batch import whole

PENALTY = 10.0


def together(one: Tensor, other: Tensor) -> Tensor:
    """Return the sum over pictures of the product of two heads' probabilities, (K, K).

    From (M, K) each, in their precision: what little heads share is lost in half of it.
    """
    with torch.autocast(one.device.type, enabled=False):
        return one.T @ other


def mutual_information(joint: Tensor) -> Tensor:
    """Return the mutual information in nats of two answers with a joint distribution, (K, K)."""
    apart = joint.sum(dim=1, keepdim=True) * joint.sum(dim=0, keepdim=True)
    least = torch.finfo(joint.dtype).tiny  # an answer that never occurs adds nothing
    return (joint * (joint.clamp(min=least).log() - apart.clamp(min=least).log())).sum()


class DivDis(ERM):
    """Cross entropy of several heads, and the mutual information of their answers."""

    def __init__(
        self,
        head: str,
        further: nn.ModuleList,
        *,
        unlabelled: Split,
        penalty: float = PENALTY,
        smoothing: float = 0.0,
        compute: Accelerator,
    ) -> None:
        """Take the name of the model's last layer and the linear heads beside it."""
        super().__init__(smoothing=smoothing)
        self.head, self.further, self.compute = head, further, compute
        self.unlabelled, self.penalty = unlabelled, penalty

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of all heads and the training pictures' logits of the first."""
        assert unlabelled is not None  # as the objective has some
        count = len(images)
        # At once: a second call would change batch norm's buffers under the gradients of the first.
        logits, features = logits_and_features(
            model, torch.cat([images, unlabelled]), head=self.head
        )
        heads = [logits.float(), *(head(features).float() for head in self.further)]
        losses = [class_loss(h[:count], batch.labels, smoothing=self.smoothing) for h in heads]
        answers = [class_probabilities(each[count:]) for each in heads]  # (M, K) each
        total = whole(answers[0].new_tensor(len(unlabelled)), self.compute)
        shared = [
            mutual_information(whole(together(one, other), self.compute) / total)
            for one, other in combinations(answers, 2)
        ]
        repulsion = torch.stack(shared).mean()
        return torch.stack(losses).mean() + self.penalty * repulsion, heads[0][:count]

    def each(self, model: nn.Module) -> Iterator[nn.Module]:
        """Return the model as it is, then with every other head as its last layer."""
        yield model
        for head in self.further:
            own = copy.deepcopy(model)
            head_of(own, self.head).load_state_dict(head.state_dict())
            yield own

    def modules(self) -> nn.ModuleDict:
        """Return the heads beside the model's own."""
        return nn.ModuleDict({"further": self.further})

    def best(self, best: Best | None) -> Best | None:
        """Let an epoch be as good as its best head."""
        if best is None:
            return None
        score = best.score
        return replace(best, score=lambda model: max(map(score, self.each(model))))


def without_labels(split: Split) -> Split:
    """Return the pictures of a split, and nothing that is known of them."""
    nothing = torch.full_like(split.labels, UNKNOWN)
    return Split(name=split.name, images=split.images, labels=nothing, attributes=nothing)


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train by the recipe with several heads; take the one that validation prefers."""
    config, bundle = context.config, context.bundle
    chosen = config.rival_settings
    start = beginning(context, before)
    head = last_layer(context, start).name
    layer = head_of(start.model, head)
    looked_at = (
        bundle.validation
        if chosen.unlabelled == "validation"
        else next(iter(bundle.tests.values()))
    )

    def further() -> nn.ModuleList:
        has_bias = layer.bias is not None
        shape = (layer.in_features, layer.out_features)
        return nn.ModuleList(nn.Linear(*shape, bias=has_bias) for _ in range(chosen.heads - 1))

    objective = DivDis(
        head,
        fresh(context, further),
        unlabelled=without_labels(looked_at),
        penalty=PENALTY if chosen.penalty is None else chosen.penalty,
        smoothing=config.training.label_smoothing,
        compute=context.compute,
    )
    model = learn_by(context, start.model, objective, best=objective.best(best_of(context)))
    models = list(objective.each(model))
    rule, scores = _validated(context, models)
    number = scores.index(max(scores))
    facts: dict[str, Any] = {
        "unlabelled pictures": looked_at.name,
        "chosen head": number + 1,
        f"heads by {rule} on validation": [round(score, 4) for score in scores],
    }
    if finding := _finding(chosen.unlabelled == "validation", bundle):
        facts["finding"] = finding
    return finished(context, replace(start, model=models[number]), facts=facts)


def _validated(context: Context, models: list[nn.Module]) -> tuple[str, list[float]]:
    """Return by what heads are chosen, and how good each is by it on validation."""
    bundle = context.bundle
    sum_up = scorer(bundle)
    with context.timed("evaluate"):
        found = [sum_up(context.ask(model, bundle.validation)) for model in models]
    if bundle.knows_groups(bundle.validation) and context.config.training.best != "average":
        return "worst group", [float(one.worst.accuracy or 0.0) for one in found]
    return "accuracy", [one.average for one in found]


def _finding(by_validation: bool, bundle: DatasetBundle) -> str:
    if not by_validation:
        return "The first test set was looked at in training, without its labels."
    if bundle.set_aside:
        return (
            "The unlabelled pictures were set aside from training, so they are like those trained "
            "on: heads find little to disagree about."
        )
    return ""
