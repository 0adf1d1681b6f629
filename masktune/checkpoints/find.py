"""Where in a file the weights are, and what else it says about them."""

import argparse
import json
import math
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from masktune.checkpoints.read import AGAIN, SAFETENSORS, Content, RefusedError, too_much

CONTAINERS = (
    "state_dict", "model_state_dict", "model_state", "model", "net", "network", "algorithm",
    "model_dict", "weights", "params", "state_dict_ema", "model_ema", "ema",
)  # fmt: skip
"""Keys under which programs keep their weights; trained ones before their running averages."""

TRAINING = (
    "optimizer", "optimizer_state_dict", "optimizer_states", "optimizer_state", "optim", "opt",
    "scheduler", "scheduler_state_dict", "lr_scheduler", "lr_schedulers", "sched",
)  # fmt: skip
"""Keys of training state that belongs to the weights as they were."""

EPOCHS = ("epoch", "epochs", "current_epoch", "last_epoch")

MAX_DEPTH = 4
"""Dicts round the weights; deeper files do not exist, and a crafted one could go on for ever."""

SHARED = 4
"""How often numbers may be seen from several tensors; more is a small file grown large."""

MAX_PLAIN = 10_000
"""Plain values that are kept; lists that hold each other twice would unfold without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of a file and what it says about them.

    Attributes:
        kind: of the file, one of ``read.KINDS``.
        notes: the text metadata of a safetensors file.
        tensors: by the names they have in the file.
        path: keys of the dicts round them; () for a file that holds nothing else.
        extras: plain values beside them, one dict for each dict of ``path`` and one for their own.
        arch: the name of the architecture, None where the file does not say.
        lr: learning rate of the last epoch, None where the file does not say.
        epoch: as stored, None where the file does not say.
        mean: of the normalisation, one number a channel, None where the file does not say.
        std: likewise.
    """

    kind: str
    notes: dict[str, str]
    tensors: dict[str, Tensor]
    path: tuple[str, ...]
    extras: tuple[dict[str, Any], ...]
    arch: str | None
    lr: float | None
    epoch: int | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def find_weights(content: Content, *, name: str) -> Weights:
    """Find the weights in what a file of some name holds.

    Raises:
        RefusedError: it holds no weights, or not in a form that can be computed with.
    """
    levels, path = _descend(content.tree)
    found = {str(k): v for k, v in levels[-1].items() if isinstance(v, Tensor)} if levels else {}
    if not found:
        raise _without(content, levels, name=name)
    held = sum(value.numel() * value.element_size() for value in found.values())
    if held > SHARED * content.size:
        raise too_much(name, held, kind=content.kind)
    _refuse_odd(found, name=name)
    extras = tuple(_plain_values(level) for level in levels)
    says = [content.notes, *map(_flat, levels)]
    said = dict(ChainMap(*says))  # what stands outside comes first
    mean, std = _normalisation(says, found)
    return Weights(
        kind=content.kind,
        notes=content.notes,
        tensors=found,
        path=path,
        extras=(content.notes,) if content.kind == SAFETENSORS else extras,
        arch=_first(said, ("arch", "architecture", "model_name"), str),
        lr=_rate(said),
        epoch=_whole(_first(said, EPOCHS, (int, str))),
        mean=mean,
        std=std,
    )


def _descend(tree: object) -> tuple[list[Mapping[Any, Any]], tuple[str, ...]]:
    """Go down to the dict of tensors; give all dicts on the way and their keys."""
    levels: list[Mapping[Any, Any]] = []
    path: list[str] = []
    while isinstance(tree, Mapping) and len(levels) < MAX_DEPTH:
        levels.append(tree)
        # A container without tensors, such as the settings of a model, is passed over.
        key = next((key for key in CONTAINERS if _leads_to_tensors(tree.get(key))), None)
        if key is None:
            break
        path.append(key)
        tree = tree[key]
    return levels, tuple(path)


def _leads_to_tensors(tree: object, depth: int = MAX_DEPTH) -> bool:
    if not isinstance(tree, Mapping) or depth == 0:
        return False
    if any(isinstance(value, Tensor) for value in tree.values()):
        return True
    return any(_leads_to_tensors(tree.get(key), depth - 1) for key in CONTAINERS)


def _without(content: Content, levels: list[Mapping[Any, Any]], *, name: str) -> RefusedError:
    top = levels[0] if levels else {}
    if {"state", "param_groups"} <= set(top) or any(key in top for key in TRAINING):
        return RefusedError(
            f"{name} holds the state of an optimizer but no weights.",
            "Give the file that holds the model's state dict.",
        )
    if isinstance(content.tree, Tensor):
        return RefusedError(f"{name} holds one bare tensor, not a model.", AGAIN)
    keys = ", ".join(repr(str(key))[:40] for key in list(top)[:8])
    found = f"no weights that we recognise, only {keys}" if keys else "nothing"
    return RefusedError(f"{name} holds {found}.", AGAIN)


def _refuse_odd(tensors: dict[str, Tensor], *, name: str) -> None:
    for key, value in tensors.items():
        strange = value.layout is not torch.strided or value.is_meta or value.is_nested
        if strange or value.is_complex():
            raise RefusedError(
                f"{name} holds a tensor that is sparse, complex or without values ({key}).",
                "Save it as an ordinary dense tensor.",
            )
        # Floats of one byte have no gradient either.
        numbers = value.is_floating_point() and value.element_size() > 1
        if value.is_quantized or "packed_params" in key or (key.endswith("weight") and not numbers):
            raise RefusedError(
                f"{name} holds quantised weights ({key}), through which no gradient flows.",
                "Give the weights from before the quantisation.",
            )


def _flat(level: Mapping[Any, Any]) -> dict[str, Any]:
    """Give the entries of a dict and of the settings inside it, outer ones first."""
    flat: dict[str, Any] = {}
    for key in ("args", "config", "hparams", "hyper_parameters", "opt", "cfg", "pretrained_cfg"):
        inner = level.get(key)
        inner = vars(inner) if isinstance(inner, argparse.Namespace) else inner
        if isinstance(inner, Mapping):
            flat.update({str(k): v for k, v in inner.items()})
    return flat | {str(k): v for k, v in level.items()}


def _first(said: dict[str, Any], keys: tuple[str, ...], kind: type | tuple[type, ...]) -> Any:  # noqa: ANN401 (of ``kind``)
    values = (said.get(key) for key in keys)
    return next((v for v in values if isinstance(v, kind) and not isinstance(v, bool)), None)


def _whole(value: int | str | None) -> int | None:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else None
    return value


def _rate(said: dict[str, Any]) -> float | None:
    """Read the last learning rate: an optimizer's knows best, the settings' is where it began."""
    for candidate in _rates(said):
        single = isinstance(candidate, Tensor) and candidate.numel() == 1 and _dense(candidate)
        if not single and not isinstance(candidate, int | float | str):
            continue
        try:
            rate = float(candidate)
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(rate) and rate > 0:
            return rate
    return None


def _dense(value: Tensor) -> bool:
    return value.layout is torch.strided and not (value.is_meta or value.is_quantized)


def _rates(said: dict[str, Any]) -> Iterator[Any]:
    for key in TRAINING:
        state = said.get(key)
        state = state[0] if isinstance(state, list) and state else state
        if not isinstance(state, Mapping):
            continue
        groups = state.get("param_groups")
        if isinstance(groups, list) and groups and isinstance(groups[0], Mapping):
            yield groups[0].get("lr")
        last = state.get("_last_lr")
        if isinstance(last, list) and last:
            yield last[0]
    yield from (said[key] for key in ("lr", "learning_rate") if key in said)


def _normalisation(
    says: list[dict[str, Any]], tensors: dict[str, Tensor]
) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    pairs = [(said.get("mean"), said.get("std")) for said in says]
    # Layers that normalise inside the model: robustness calls them normalizer.new_mean, others
    # 0.mean or normalize.mean.
    for key, value in tensors.items():
        before, _, last = key.rpartition(".")
        if last in ("new_mean", "mean") and before.rpartition(".")[2] in NORMALISERS:
            pairs.append((value, tensors.get(f"{before}.{last.replace('mean', 'std')}")))
    for mean, std in ((_numbers(mean), _numbers(std)) for mean, std in pairs):
        if mean and std and min(std) > 0 and len(mean) == len(std):
            return mean, std
    return None, None


NORMALISERS = ("normalizer", "normalize", "normalise", "norm_layer", "0")
"""What layers that normalise the input are called."""


def _numbers(value: object) -> tuple[float, ...] | None:
    if isinstance(value, Tensor):
        value = value.flatten().tolist() if value.numel() in (1, 3) and _dense(value) else None
    if isinstance(value, str) and len(value) < 200:
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, list | tuple) or len(value) not in (1, 3):
        return None
    if not all(isinstance(v, int | float) and math.isfinite(v) for v in value):
        return None
    return tuple(float(v) for v in value)


def _plain_values(level: Mapping[Any, Any]) -> dict[str, Any]:
    """Keep what JSON can say, without training state and without the weights themselves."""
    left = [MAX_PLAIN]
    ours = {k: v for k, v in level.items() if isinstance(k, str) and k not in TRAINING + CONTAINERS}
    return {key: value for key, value in ours.items() if _is_plain(value, left)}


def _is_plain(value: object, left: list[int], depth: int = 8) -> bool:
    left[0] -= 1
    if left[0] < 0 or depth == 0:
        return False
    if isinstance(value, list):
        return all(_is_plain(item, left, depth - 1) for item in value)
    if type(value) is dict:
        return all(
            isinstance(key, str) and _is_plain(item, left, depth - 1) for key, item in value.items()
        )
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int | bool)
