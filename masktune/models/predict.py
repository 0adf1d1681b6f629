"""Run a model over a split once; every number later is a function of the result."""

import copy

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.compute import accelerator, laid_out, on_device
from masktune.data.batches import by_position, in_order
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import Split
from masktune.errors import ModelError
from masktune.models.eval_mode import evaluating
from masktune.models.logits import class_probabilities, logits_of
from masktune.progress import Progress, Watcher, unwatched
from masktune.scores.predictions import Predictions


def predict(
    model: nn.Module,
    split: Split,
    *,
    preprocess: Preprocess | None = None,
    keep: Keeper | None = None,
    compute: Accelerator | None = None,
    watcher: Watcher = unwatched,
) -> Predictions:
    """Ask a model about every example of a split.

    Args:
        model: gives logits (N, K), or (N, 1) for a sigmoid head; it is not changed.
        split: the examples.
        preprocess: from bytes to the network's input.
        keep: hides pixels first, by position in the split; None shows the pictures as they are.
        compute: device, precision and processes; by default what the machine offers.
        watcher: told after every batch.
    """
    preprocess = preprocess or Preprocess()
    compute = compute or accelerator()
    model = on_device(copy.deepcopy(model), compute)
    answered: list[Tensor] = []
    positions: list[Tensor] = []

    def done(number: int, total: int) -> None:
        watcher(Progress(stage="predict", done=number, total=total))

    with evaluating(model), torch.no_grad():
        for batch in in_order(split, compute=compute, done=done):
            images = preprocess(batch.images, None if keep is None else keep(batch.positions))
            with compute.autocast():
                logits = logits_of(model(laid_out(images, compute)))
            answered.append(class_probabilities(compute.gather(logits).cpu().double()))
            positions.append(compute.gather(batch.positions).cpu())
    probabilities = by_position(answered, positions, len(split))
    if not torch.isfinite(probabilities).all():
        raise ModelError(
            f"The model gives answers that are not numbers on '{split.name}'.",
            "Check its weights for NaN, or train it with a smaller learning rate.",
        )
    return Predictions(probabilities.numpy(), split.labels.numpy(), split.attributes.numpy())
