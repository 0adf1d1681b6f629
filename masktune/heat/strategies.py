"""A strategy is a producer of keep; nothing else differs between MaskTune and its baselines."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from masktune.config import HEATED, MaskingConfig, Statistics
from masktune.data.preprocess import Keeper
from masktune.heat.keep import (
    keep_all_but_top,
    keep_below,
    keep_masks,
    keep_outside,
    random_windows,
    soft_keep,
)
from masktune.heat.store import BATCH, HeatStore
from masktune.seeds import stream

Rule = Callable[[Tensor], Tensor]
"""From fine heat (B, H, W) to keep."""


def keeper(
    masking: MaskingConfig, store: HeatStore, *, count: int, round_number: int, seed: int
) -> Keeper | None:
    """Give the producer of keep for one round.

    Accumulating, a pixel hidden in any round so far stays hidden; otherwise only the newest round
    counts.

    Args:
        masking: the strategy and its threshold.
        store: heat of the rounds so far; not read by the strategies without heat.
        count: pictures in the training set.
        round_number: 1 is the first.
        seed: the run's seed, for random windows.

    Returns:
        None where nothing is hidden.
    """
    if masking.strategy == "none":
        return None
    first = 1 if masking.accumulate else round_number
    makers = [
        _of_round(masking, store, count=count, round_number=r, seed=seed)
        for r in range(first, round_number + 1)
    ]

    def keep(index: Tensor) -> Tensor:
        kept = makers[0](index)
        for maker in makers[1:]:
            # Two soft masks darken one after the other, two hard ones both hide.
            kept = kept * maker(index)
        return kept

    return keep


def _of_round(
    masking: MaskingConfig, store: HeatStore, *, count: int, round_number: int, seed: int
) -> Keeper:
    if masking.strategy in HEATED:
        rule = _rule(masking, store, round_number)
        return lambda index: rule(
            store.fine(index, round_number=round_number, device=_double_device(index))
        ).to(index.device)
    # Drawn once for the whole set: like MaskTune's, these masks do not change while training.
    generator = stream(seed, f"windows/{round_number}")
    windows = random_windows(count, store.size, generator=generator)
    return lambda index: keep_outside(windows[index.cpu()].to(index.device), store.size)


def _double_device(index: Tensor) -> str:
    """Apple's GPUs have no double precision, and thresholds are decided in it."""
    return "cpu" if index.device.type == "mps" else str(index.device)


def _rule(masking: MaskingConfig, store: HeatStore, round_number: int) -> Rule:
    match masking.strategy:
        case "soft":
            return soft_keep
        case "topk":
            return lambda heat: keep_all_but_top(heat, masking.top_fraction)
        case "global":
            tau = mean_heat(store, round_number=round_number, statistics=masking.statistics)
            return lambda heat: keep_below(heat, tau)
        case _:
            return lambda heat: keep_masks(heat, masking.k, statistics=masking.statistics)


def mean_heat(store: HeatStore, *, round_number: int, statistics: Statistics) -> float:
    """Average the heat over every pixel of the training set (or every positive one)."""
    total, taken = 0.0, 0
    for index in store.chunks():
        heat = store.fine(index, round_number=round_number)
        total += float(heat.sum())
        taken += int((heat > 0).sum()) if statistics == "positive" else heat.numel()
    return total / max(taken, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """How much of a training set is hidden.

    Attributes:
        hidden_fraction: mean share of a picture's pixels that is hidden, in [0, 1].
        empty_fraction: share of the pictures in which nothing is hidden.
    """

    hidden_fraction: float
    empty_fraction: float


def hidden_area(keep: Keeper | None, count: int) -> Hidden:
    """Measure a keeper over the whole training set."""
    if keep is None:
        return Hidden(hidden_fraction=0.0, empty_fraction=1.0)
    hidden = torch.cat(
        [_hidden_share(keep(index)) for index in torch.split(torch.arange(count), BATCH)]
    )
    return Hidden(
        hidden_fraction=float(hidden.mean()), empty_fraction=float((hidden == 0).double().mean())
    )


def _hidden_share(keep: Tensor) -> Tensor:
    return 1.0 - keep.double().mean(dim=(1, 2))
