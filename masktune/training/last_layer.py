"""What the rivals share that retrain the last layer of the model before, and nothing else.

The rest of the network stays in evaluation mode, batch norm and dropout with it: what goes into
the last layer is computed once, and every process gathers all of it.
"""

import copy
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import on_device
from masktune.data.preprocess import Keeper
from masktune.data.types import Split
from masktune.errors import ModelError
from masktune.models.head import head_name, head_of, logits_and_features, with_head
from masktune.models.predict import over_split
from masktune.progress import Watcher
from masktune.training.context import Context

Numbers = tuple[Tensor, Tensor | None]
"""Those of a linear layer: its weight (K, D) and its bias (K,), None where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLayer:
    """The last layer of the model before, by name."""

    context: Context
    before: Checkpoint
    name: str

    @property
    def numbers(self) -> Numbers:
        """Return its weight and bias, float64 copies."""
        layer = head_of(self.before.model, self.name)
        bias = None if layer.bias is None else layer.bias.detach().double()
        return layer.weight.detach().double(), bias

    def features(self, split: Split, *, watcher: Watcher, keep: Keeper | None = None) -> Tensor:
        """Return what goes into it for every picture of a split, (N, D) float32."""
        compute = self.context.compute
        model = on_device(copy.deepcopy(self.before.model), compute).eval()

        def ask(images: Tensor) -> Tensor:
            with torch.no_grad():
                return logits_and_features(model, images, head=self.name)[1].float()

        found = over_split(
            ask,
            split,
            preprocess=self.context.preprocess,
            keep=keep,
            compute=compute,
            watcher=watcher,
        )
        if not torch.isfinite(found).all():
            raise ModelError(
                f"The features of the model are not numbers on '{split.name}'.",
                "Check its weights for NaN, or train it with a smaller learning rate.",
            )
        return found

    def after(self, numbers: Numbers) -> Checkpoint:
        """Return the model before with another last layer."""
        weight, bias = numbers
        return replace(
            self.before, model=with_head(self.before.model, self.name, weight=weight, bias=bias)
        )


def last_layer(context: Context, before: Checkpoint) -> LastLayer:
    """Return the last layer of a model; refuse a model whose logits come from no linear one."""
    probe = context.preprocess(context.bundle.validation.images.batch([0]))
    return LastLayer(context=context, before=before, name=head_name(before.model, probe))


def logits_by(numbers: Numbers, features: Tensor) -> Tensor:
    """Return the logits (N, K) that a last layer gives, in the precision of its numbers."""
    weight, bias = numbers
    return F.linear(features.to(weight), weight, bias)
