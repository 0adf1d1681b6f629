"""Run a model over a split once; every number later is a function of the result."""

import copy
from collections.abc import Callable

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.compute import accelerator, laid_out, on_device
from masktune.data.batches import by_position, in_order
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import Split
from masktune.errors import ModelError
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
        keep: hides pixels first, by position in the split.
        compute: by default what the machine offers.
        watcher: told after every batch.
    """
    compute = compute or accelerator()
    model = on_device(copy.deepcopy(model), compute).eval()

    def answer(images: Tensor) -> Tensor:
        with torch.no_grad(), compute.autocast():
            return logits_of(model(images))

    logits = over_split(
        answer, split, preprocess=preprocess, keep=keep, compute=compute, watcher=watcher
    )
    probabilities = class_probabilities(logits.double())
    if not torch.isfinite(probabilities).all():
        raise ModelError(
            f"The model gives answers that are not numbers on '{split.name}'.",
            "Check its weights for NaN, or train it with a smaller learning rate.",
        )
    return Predictions(probabilities.numpy(), split.labels.numpy(), split.attributes.numpy())


def over_split(
    ask: Callable[[Tensor], Tensor],
    split: Split,
    *,
    preprocess: Preprocess | None,
    keep: Keeper | None,
    compute: Accelerator,
    watcher: Watcher,
    stage: str = "predict",
) -> Tensor:
    """Return one row for each example of a split, (N, ...) on the CPU, in the split's order.

    ``ask`` is from the network's input (B, C, H, W) on the device to (B, ...), ``stage`` is what
    the watcher hears, and the others are as for ``predict``.
    """
    preprocess = preprocess or Preprocess()
    rows: list[Tensor] = []
    positions: list[Tensor] = []

    def done(number: int, total: int) -> None:
        watcher(Progress(stage=stage, done=number, total=total))

    for batch in in_order(split, compute=compute, done=done):
        images = laid_out(preprocess.of(batch, keep), compute)
        rows.append(compute.gather(ask(images)).cpu())
        positions.append(compute.gather(batch.positions).cpu())
    return by_position(rows, positions, len(split))
