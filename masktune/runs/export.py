"""Weights out: for MaskTune, or in the layout of the file that came in."""

import io
from collections import OrderedDict
from typing import Any, Literal

import torch
from torch import Tensor

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes, safetensors_bytes
from masktune.checkpoints.origin import Origin
from masktune.checkpoints.read import LEGACY, SAFETENSORS

Layout = Literal["original", "safetensors"]


def weights_bytes(checkpoint: Checkpoint, *, layout: Layout = "original") -> tuple[str, bytes]:
    """Give a model's weights as the content of a file.

    Args:
        checkpoint: the model, before or after tuning.
        layout: "original" for the layout of the file it came from: the same dicts round it, the
            same names and prefixes, the same plain values beside it, so that code which read that
            file reads this one. The state of optimizer and scheduler and running averages of the
            weights are left out, because they belong to the weights as they were; numbers are
            float32, whatever they were. "safetensors" for a file that MaskTune reads, and the
            only layout of a model that was trained here.

    Returns:
        The suffix for the file's name, such as ".pth", and the content.
    """
    origin = checkpoint.origin
    if layout == "safetensors" or origin is None:
        return ".safetensors", checkpoint_bytes(checkpoint)
    weights = _renamed(checkpoint, origin)
    if origin.kind == SAFETENSORS:
        notes = {key: str(value) for key, value in origin.extras[-1].items()}
        return ".safetensors", safetensors_bytes(weights, notes)
    file = io.BytesIO()
    torch.save(_nested(weights, origin), file, _use_new_zipfile_serialization=origin.kind != LEGACY)
    return origin.suffix or ".pt", file.getvalue()


def _renamed(checkpoint: Checkpoint, origin: Origin) -> dict[str, Tensor]:
    state = checkpoint.model.state_dict()
    tuned = {theirs: state[ours] for theirs, ours in origin.names.items()}
    both = {**tuned, **origin.tensors}
    return {name: value.detach().cpu().clone().contiguous() for name, value in both.items()}


def _nested(weights: dict[str, Tensor], origin: Origin) -> dict[str, Any]:
    tree: dict[str, Any] = OrderedDict(weights)
    tree.update(origin.extras[-1])
    for key, extras in reversed(list(zip(origin.path, origin.extras[:-1], strict=True))):
        tree = {key: tree, **extras}
    return tree
