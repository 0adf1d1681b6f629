"""Where in a file the weights are, and what else it says about them."""

import argparse
import math
import re
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from masktune.checkpoints.hugging_face import refuse_parts, said_beside, weights_file
from masktune.checkpoints.origin import Origin
from masktune.checkpoints.read import AGAIN, SAFETENSORS, RefusedError, read, too_much

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

ARCHS = ("arch", "architecture", "model_name")
EPOCHS = ("epoch", "epochs", "current_epoch", "last_epoch")

NORMALISERS = ("normalizer", "normalize", "normalise", "norm_layer", "0")
"""What layers that normalise the input are called."""

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
        tensors: by the names they have in the file.
        origin: the format of the file; what it calls the tensors of a model is not known yet.
        notes: the text metadata of a safetensors file.
        arch: the name of the architecture; this and what follows is None where it is not said.
        lr: learning rate of the last epoch.
        epoch: as stored.
        mean: of the normalisation, one number a channel or one for all; ``std`` likewise.
        class_names: by number; none where they are not said.
        network: the class of transformers, "" where it is none.
        folder: that the file lies in.
    """

    tensors: dict[str, Tensor]
    origin: Origin
    notes: dict[str, str]
    arch: str | None
    lr: float | None
    epoch: int | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    class_names: tuple[str, ...] = ()
    network: str = ""
    folder: str = ""


def find_weights(path: Path) -> Weights:
    """Read a file and find the weights in it.

    Raises:
        RefusedError: it cannot be read safely, or holds no weights that can be computed with.
        ModelError: it lies in a folder of the hub that says that it cannot be used.
    """
    path = weights_file(path)
    refuse_parts(path)
    kind, tree, notes = read(path)
    levels, keys = _descend(tree)
    if not levels:
        raise _without(tree, name=path.name)
    found = {str(key): value for key, value in levels[-1].items() if isinstance(value, Tensor)}
    held = sum(value.numel() * value.element_size() for value in found.values())
    if held > SHARED * path.stat().st_size:
        raise too_much(path.name, held, kind=kind)
    _refuse_odd(found, name=path.name)
    beside = said_beside(path)
    says = [notes, *map(_flat, levels), dict(beside.says)]
    said = dict(ChainMap(*says))  # what stands outside comes first
    mean, std = _normalisation(says, found)
    rates = (numbers for numbers in map(_numbers, _rates(said)) if len(numbers) == 1)
    return Weights(
        tensors=found,
        origin=Origin(
            kind=kind,
            suffix=".pth.tar" if path.name.endswith(".pth.tar") else path.suffix,
            path=keys,
            extras=(notes,) if kind == SAFETENSORS else tuple(map(_plain_values, levels)),
        ),
        notes=notes,
        arch=next((said[key] for key in ARCHS if isinstance(said.get(key), str)), None),
        lr=next((rate for (rate,) in rates if rate > 0), None),
        epoch=next((int(said[key]) for key in EPOCHS if _is_whole(said.get(key))), None),
        mean=mean,
        std=std,
        class_names=beside.class_names,
        network=beside.network,
        folder=str(path.parent),
    )


def _descend(
    tree: object, depth: int = MAX_DEPTH
) -> tuple[list[Mapping[Any, Any]], tuple[str, ...]]:
    """Go down to the dict of tensors; give all dicts on the way and their keys."""
    if not isinstance(tree, Mapping) or depth == 0:
        return [], ()
    for key in CONTAINERS:
        # A container without tensors, such as the settings of a model, is passed over.
        levels, path = _descend(tree.get(key), depth - 1)
        if levels:
            return [tree, *levels], (key, *path)
    return ([tree] if any(isinstance(value, Tensor) for value in tree.values()) else []), ()


def _without(tree: object, *, name: str) -> RefusedError:
    top = tree if isinstance(tree, Mapping) else {}
    if {"state", "param_groups"} <= set(top) or any(key in top for key in TRAINING):
        return RefusedError(
            f"{name} holds the state of an optimizer but no weights.",
            "Give the file that holds the model's state dict.",
        )
    if isinstance(tree, Tensor):
        return RefusedError(f"{name} holds one bare tensor, not a model.", AGAIN)
    keys = ", ".join(repr(str(key))[:40] for key in list(top)[:8])
    found = f"no weights that we recognise, only {keys}" if keys else "nothing"
    return RefusedError(f"{name} holds {found}.", AGAIN)


def _refuse_odd(tensors: dict[str, Tensor], *, name: str) -> None:
    for key, value in tensors.items():
        if value.is_complex() or not _dense(value):
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


def _dense(value: Tensor) -> bool:
    return value.layout is torch.strided and not (value.is_meta or value.is_nested)


def _is_whole(value: object) -> bool:
    return type(value) is int or bool(isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value))


def _rates(said: dict[str, Any]) -> Iterator[object]:
    """Yield learning rates: an optimizer's knows best, the settings' is where it began."""
    for key in TRAINING:
        state = said.get(key)
        state = state[0] if isinstance(state, list) and state else state
        if isinstance(state, Mapping):
            for held in (state.get("param_groups"), state.get("_last_lr")):
                first = held[0] if isinstance(held, list) and held else None
                yield first.get("lr") if isinstance(first, Mapping) else first
    yield from (said.get("lr"), said.get("learning_rate"))


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
        if len(mean) == len(std) in (1, 3) and min(std) > 0:
            return mean, std
    return None, None


def _numbers(value: object) -> tuple[float, ...]:
    """Return the numbers that a value is, lists or spells; none where one of them is no float."""
    if isinstance(value, Tensor):
        short = value.numel() <= 3 and _dense(value) and not value.is_quantized
        value = value.flatten().tolist() if short else None
    if isinstance(value, str) and len(value) < 200:
        try:
            value = [float(number) for number in value.strip("[]").split(",")]
        except ValueError:
            return ()
    several = value if isinstance(value, list | tuple) else [value]
    # Comparing tells whole numbers that are too large for a float, and what is not a number.
    if all(isinstance(v, int | float) and abs(v) <= sys.float_info.max for v in several):
        return tuple(map(float, several))
    return ()


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
