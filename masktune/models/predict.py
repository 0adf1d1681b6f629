"""Run a model over a split once; every number later is a function of the result."""

import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from masktune.compute import accelerator, in_order
from masktune.data.frame import Preprocess
from masktune.data.types import Split
from masktune.errors import ModelError
from masktune.heat.strategies import Keeper
from masktune.models.eval_mode import evaluating
from masktune.models.logits import logits_of
from masktune.progress import Progress, Watcher, unwatched
from masktune.training.fit import class_probabilities, laid_out, on_device


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says about every example of a split, in the split's order.

    Attributes:
        probabilities: (N, K) float64, rows sum to 1. In single precision a sure answer is exactly
            1, and answers that differ in sureness would tie.
        labels: (N,) int64, 0 .. K-1.
        attributes: (N,) int64, -1 everywhere when the dataset records none.
    """

    probabilities: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.int64]

    def answers(self) -> npt.NDArray[np.int64]:
        """Give the most probable class of each example, (N,) int64."""
        answers: npt.NDArray[np.int64] = np.argmax(self.probabilities, axis=1)
        return answers

    def correct(self) -> npt.NDArray[np.bool_]:
        """Tell which answers are right, (N,) bool."""
        return np.equal(self.answers(), self.labels)


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


def by_position(rows: list[Tensor], positions: list[Tensor], count: int) -> Tensor:
    """Put gathered rows back into the split's order.

    Several processes interleave their batches and repeat examples to fill the last one.

    Args:
        rows: batches of (B, ...).
        positions: for each batch, (B,) int64.
        count: how many examples the split has.

    Returns:
        (count, ...).
    """
    joined = torch.cat(rows)
    ordered = torch.empty((count, *joined.shape[1:]), dtype=joined.dtype)
    ordered[torch.cat(positions)] = joined
    return ordered
