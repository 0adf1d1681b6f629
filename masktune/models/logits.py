"""Logits out of whatever a classifier returns."""

from collections.abc import Mapping
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from masktune.errors import ModelError

LOGIT_NAMES = ("logits", "out", "output", "outputs", "pred", "preds", "prediction", "scores")
"""What dicts, dataclasses and named tuples call the logits, likeliest first."""


def logits_of(output: object) -> Tensor:
    """Give the logits (N, K) of a model's output.

    Taken as they are, or from a dict, a dataclass or a named tuple by one of ``LOGIT_NAMES``, or
    as the first of a plain tuple or list (Inception's side exits come after the answer). A
    one-logit model may give (N,), which becomes (N, 1).
    """
    if isinstance(output, Tensor):
        if output.ndim == 1:
            return output[:, None]
        if output.ndim == 2:
            return output
        raise _no_logits(f"shape {tuple(output.shape)}")
    for name in LOGIT_NAMES:
        if isinstance(output, Mapping) and name in output:
            return logits_of(output[name])
        if not isinstance(output, Mapping) and hasattr(output, name):
            return logits_of(getattr(output, name))
    if isinstance(output, tuple | list) and output:
        return logits_of(output[0])
    keys = f" with {', '.join(map(str, output))}" if isinstance(output, Mapping) else ""
    raise _no_logits(f"type {type(output).__name__}{keys}")


def _no_logits(kind: str) -> ModelError:
    return ModelError(
        f"The model gave an output of {kind} instead of (N, classes).",
        "Use a classifier that returns one row of logits for each picture.",
    )


def class_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    smoothing: float = 0.0,
    reduction: Literal["mean", "none"] = "mean",
) -> Tensor:
    """Give the cross entropy of (N, K) logits; of (N, 1) logits the binary one.

    ``smoothing`` is the share of every label that is given to all classes alike; without a
    ``reduction`` the loss of every picture is given, (N,).
    """
    if logits.shape[1] == 1:
        share = labels.float() * (1 - smoothing) + smoothing / 2
        return F.binary_cross_entropy_with_logits(logits[:, 0], share, reduction=reduction)
    return F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction=reduction)


def class_probabilities(logits: Tensor) -> Tensor:
    """Give (N, K) probabilities; one-logit models answer for two classes."""
    return class_logits(logits).softmax(dim=1)


def class_logits(logits: Tensor) -> Tensor:
    """Give a logit for every class, (N, K), whose softmax are the probabilities.

    That of the first of two classes is 0 where a model has one logit for both.
    """
    if logits.shape[1] == 1:
        return torch.cat([torch.zeros_like(logits), logits], dim=1)
    return logits
