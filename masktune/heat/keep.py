"""Keep maps: from heat to the pixels a picture keeps."""

import math
from typing import get_args

import torch
from torch import Tensor

from masktune.config import Statistics
from masktune.errors import ConfigError


def keep_masks(heat: Tensor, k: float = 2.0, *, statistics: Statistics = "positive") -> Tensor:
    """Hide the pixels each picture is most looked at.

    A pixel is hidden when its heat exceeds ``tau = mu + k * sigma``, strictly. All-zero and uniform
    heat hides nothing, and a larger k never hides more.

    Args:
        heat: (N, H, W) float, non-negative, at the size of the picture.
        k: how far above the mean the threshold lies, in standard deviations.
        statistics: "positive" takes mu and sigma over the positive heat of each picture, as the
            authors' code does; "all" over all of it, as the paper's text says.

    Returns:
        (N, H, W) bool, True where the pixel is kept.
    """
    if not math.isfinite(k):
        raise ConfigError(f"k is {k}.", "Give a number from 0 to 3; the paper's choice is 2.")
    mu, sigma = heat_statistics(heat, statistics=statistics)
    return heat.double() <= (mu + k * sigma)[:, None, None]


def keep_hot(heat: Tensor, k: float = 2.0, *, statistics: Statistics = "positive") -> Tensor:
    """Hide all that ``keep_masks`` would keep: the other way round.

    Where that hides nothing, nothing is hot, and the picture stays whole: all of it hidden, it
    would teach its label to blackness. The arguments are those of ``keep_masks``.
    """
    hot = ~keep_masks(heat, k, statistics=statistics)
    return hot | ~hot.any(dim=2).any(dim=1)[:, None, None]


def heat_statistics(heat: Tensor, *, statistics: Statistics = "positive") -> tuple[Tensor, Tensor]:
    """Give the mean and the population standard deviation of each picture's heat.

    Where all values taken are equal, mu is exactly that value and sigma exactly zero: a rounded
    mean could land just below them, and at k = 0 the whole picture would be hidden. Without
    positive heat both are 0. From heat (N, H, W), non-negative, to (N,) float64 each.
    """
    if statistics not in get_args(Statistics):
        raise ConfigError(
            f"There are no statistics '{statistics}'.", f"Choose {', '.join(get_args(Statistics))}."
        )
    flat = heat.double().flatten(1)  # (N, H * W)
    taken = flat > 0 if statistics == "positive" else torch.ones_like(flat, dtype=torch.bool)
    count = taken.sum(dim=1).clamp(min=1)
    mu = flat.sum(dim=1) / count  # what is not taken is 0
    # One buffer changed in place: fresh memory for every step costs more than the sums.
    squares = torch.where(taken, flat, mu[:, None]).sub_(mu[:, None]).square_()
    sigma = (squares.sum(dim=1) / count).sqrt()
    highest = flat.amax(dim=1)
    uniform = (flat == highest[:, None]).sum(dim=1) == count
    return torch.where(uniform, highest, mu), torch.where(uniform, 0.0, sigma)


def keep_all_but_top(heat: Tensor, fraction: float | Tensor) -> Tensor:
    """Hide the same number of hottest pixels in every picture (the paper's top K).

    From heat (N, H, W), non-negative, to bool, True where the pixel is kept. ``fraction`` is K as a
    share of the picture's pixels, in [0, 1], rounded; (N,) for one of each picture. Pixels without
    heat are never hidden.
    """
    flat = heat.flatten(1)
    shares = torch.as_tensor(fraction, dtype=torch.float64, device=heat.device).reshape(-1, 1)
    # A stable order makes ties fall the same way on every device.
    order = flat.argsort(dim=1, descending=True, stable=True)
    among = torch.arange(flat.shape[1], device=heat.device) < (shares * flat.shape[1]).round()
    hottest = torch.empty_like(flat, dtype=torch.bool).scatter(1, order, among.expand_as(flat))
    return (~hottest | (flat <= 0)).view_as(heat)


def random_keep_masks(count: int, size: tuple[int, int], *, generator: torch.Generator) -> Tensor:
    """Hide one random square window in each picture: the RandMask baseline.

    Args:
        count: how many pictures.
        size: (H, W) of a picture, at least 4 x 4.
        generator: a CPU generator; the same state gives the same windows.

    Returns:
        (count, H, W) bool, True where the pixel is kept.
    """
    return keep_outside(random_windows(count, size, generator=generator), size)


def random_windows(count: int, size: tuple[int, int], *, generator: torch.Generator) -> Tensor:
    """Draw one square window for each picture.

    The side is drawn from 2 .. n / 2, n the shorter side of the picture, and the place so that the
    whole window lies inside it (the paper's appendix).

    Returns:
        (count, 3) int64: top, left, side. Three numbers a picture, so a large set fits in memory.
    """
    height, width = size
    if min(size) < 4:
        raise ConfigError(
            f"A {height}x{width} picture is too small for random windows.",
            "Use pictures of at least 4x4.",
        )
    side = torch.randint(2, min(size) // 2 + 1, (count,), generator=generator)
    place = torch.rand(2, count, generator=generator, dtype=torch.float64)
    top = (place[0] * (height - side + 1)).long()
    left = (place[1] * (width - side + 1)).long()
    return torch.stack([top, left, side], dim=1)


def keep_outside(windows: Tensor, size: tuple[int, int]) -> Tensor:
    """Hide the windows (N, 3) of ``random_windows``; gives (N, H, W) bool."""
    top, left, side = windows[:, :, None].unbind(dim=1)  # (N, 1) each
    rows = torch.arange(size[0], device=windows.device)
    columns = torch.arange(size[1], device=windows.device)
    in_rows = (rows >= top) & (rows < top + side)  # (N, H)
    in_columns = (columns >= left) & (columns < left + side)  # (N, W)
    return ~(in_rows[:, :, None] & in_columns[:, None, :])
