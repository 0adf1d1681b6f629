"""Clues: what the pictures of a training set have in common in where the model looks.

The dataset-wide view is how shortcuts are found in practice: one heat map shows a habit, a cluster
of them shows a rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from masktune.config import Statistics
from masktune.heat.keep import keep_hot, keep_masks
from masktune.heat.store import BATCH, HeatStore
from masktune.heat.strategies import Hidden

MOST_CLUES = 5
SAMPLE = 2000
"""Pictures that clusters are found on; the others join the nearest one."""

STARTS, DRAWS, STEPS = 2, 8, 100
"""Of k-means: beginnings, candidates for each first centre, steps at most."""

Maps = npt.NDArray[np.float64]
ROWS, COLUMNS = ("top", "", "bottom"), ("left", "", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """A set of pictures in which the model looks at the same place."""

    members: npt.NDArray[np.int64]  # positions in the training set, ascending
    heat: npt.NDArray[np.float64]  # (h, w) in [0, 1], their mean heat
    place: str  # where in the picture most of that heat lies, such as "top left" or "centre"
    focus: float  # share of the mean heat in that ninth of the picture; 1/9 is no focus


def find_clues(store: HeatStore, *, seed: int = 0) -> list[Clue]:
    """Group the training pictures by where the model looks, the largest group first.

    K-means on the coarse heat of the first round, each map scaled to unit length; the number of
    groups from 2 to ``MOST_CLUES`` that has the best silhouette, or one when the maps hardly
    differ. The same seed gives the same groups.
    """
    heat = store.rounds[0].double().numpy()
    flat = heat.reshape(len(heat), -1)
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    maps = flat / np.maximum(length, 1e-12)
    numbers = _assign(maps, seed=seed)
    found = []
    for number in np.unique(numbers):
        members = np.flatnonzero(numbers == number)
        mean = heat[members].mean(axis=0)
        place, focus = _place(mean)
        found.append(Clue(members=members, heat=mean, place=place, focus=focus))
    return sorted(found, key=lambda clue: -len(clue.members))


def _assign(maps: Maps, *, seed: int) -> npt.NDArray[np.int64]:
    drawn = np.random.default_rng(seed).permutation(len(maps))[:SAMPLE]
    sample = maps[np.sort(drawn)]
    distinct = len(np.unique(sample.round(6), axis=0))
    apart = np.sqrt(_squares(sample, sample))
    best, best_score = None, 0.1  # silhouettes under 0.1 mean no groups worth naming
    for count in range(2, min(MOST_CLUES, distinct - 1) + 1):
        centres = _centres(sample, count, seed=seed)
        # Of all, not of a few: these could miss a small group, and one group has no silhouette.
        score = _silhouette(apart, _squares(sample, centres).argmin(axis=1))
        if score > best_score:
            best, best_score = centres, score
    if best is None:
        return np.zeros(len(maps), dtype=np.int64)
    numbers: npt.NDArray[np.int64] = _squares(maps, best).argmin(axis=1)
    return numbers


def _squares(maps: Maps, centres: Maps) -> Maps:
    """Return the squared distance of every map to every centre, (N, K)."""
    lengths = (maps**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)[None, :]
    squares: Maps = np.maximum(lengths - 2 * maps @ centres.T, 0.0)
    return squares


def _centres(maps: Maps, count: int, *, seed: int) -> Maps:
    """Return the centres of k-means: k-means++ with several candidates, then Lloyd's steps."""
    generator = np.random.default_rng(seed)
    best, least = maps[:count], np.inf
    for _ in range(STARTS):
        centres = maps[[generator.integers(len(maps))]]
        while len(centres) < count:
            far = _squares(maps, centres).min(axis=1)
            drawn = maps[generator.choice(len(maps), DRAWS, p=far / far.sum())]
            left = np.minimum(far[:, None], _squares(maps, drawn)).sum(axis=0)
            centres = np.vstack([centres, drawn[left.argmin()]])
        for _ in range(STEPS):
            nearest = _squares(maps, centres).argmin(axis=1)
            members = [nearest == number for number in range(count)]
            both = zip(members, centres, strict=True)
            moved = np.stack([maps[m].mean(axis=0) if m.any() else c for m, c in both])
            if np.array_equal(moved, centres):
                break
            centres = moved
        inertia = float(_squares(maps, centres).min(axis=1).sum())
        if inertia < least:
            best, least = centres, inertia
    return best


def _silhouette(apart: Maps, numbers: npt.NDArray[np.int64]) -> float:
    """Return the mean silhouette, from -1 to 1; a picture alone in its group counts 0.

    >>> points = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> round(_silhouette(np.abs(points - points.T), np.array([0, 0, 1, 1])), 4)
    0.8997
    """
    is_in = numbers[:, None] == np.unique(numbers)  # (N, K)
    sizes, sums = is_in.sum(axis=0), apart @ is_in
    others_in_own = (sizes * is_in).sum(axis=1) - 1
    own = (sums * is_in).sum(axis=1) / np.maximum(others_in_own, 1)
    other = np.where(is_in, np.inf, sums / sizes).min(axis=1)
    each = (other - own) / np.maximum(np.maximum(own, other), 1e-12)
    return float(np.where(others_in_own > 0, each, 0.0).mean())


def _place(heat: npt.NDArray[np.float64]) -> tuple[str, float]:
    """Name the ninth of the picture that is hottest, and give its share of the heat.

    Hottest by squares, so that a small bright place outweighs a wide faint glow.

    >>> corner = np.zeros((6, 6)); corner[0, 5] = 1.0
    >>> _place(corner)
    ('top right', 1.0)
    """
    rows = np.arange(heat.shape[0]) * 3 // heat.shape[0]
    columns = np.arange(heat.shape[1]) * 3 // heat.shape[1]
    ninths, squares = np.zeros((3, 3)), np.zeros((3, 3))
    np.add.at(ninths, (rows[:, None], columns[None, :]), heat)
    np.add.at(squares, (rows[:, None], columns[None, :]), heat**2)
    row, column = divmod(int(squares.argmax()), 3)
    name = " ".join(word for word in (ROWS[row], COLUMNS[column]) if word) or "centre"
    return name, float(ninths[row, column] / max(float(ninths.sum()), 1e-12))


def hidden_shares(
    store: HeatStore, ks: Sequence[float], *, statistics: Statistics, keeps_hot: bool = False
) -> npt.NDArray[np.float64]:
    """Return the share of each training picture that every k hides, (len(ks), N) float64 in [0, 1].

    Read off the first round of the heat, with mu and sigma by ``statistics``. ``keeps_hot`` hides
    the other way round.
    """
    columns, rule = [], keep_hot if keeps_hot else keep_masks
    for index in store.chunks():
        fine = store.fine(index)
        shares = [1.0 - rule(fine, k, statistics=statistics).double().mean(dim=(1, 2)) for k in ks]
        columns.append(torch.stack(shares))
    every: npt.NDArray[np.float64] = torch.cat(columns, dim=1).numpy()
    return every


def hidden_areas(shares: npt.NDArray[np.float64]) -> list[Hidden]:
    """Sum up the ``hidden_shares`` of some pictures, (K, N), for every k."""
    return [Hidden(float(row.mean()), float((row == 0).mean())) for row in shares]


def mean_heat_of(store: HeatStore, members: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Average the fine heat of some training pictures, (H, W) float64 in [0, 1]."""
    total = torch.zeros(store.size, dtype=torch.float64)
    for index in torch.split(torch.from_numpy(members), BATCH):
        total += store.fine(index).sum(dim=0)
    mean: npt.NDArray[np.float64] = (total / max(len(members), 1)).numpy()
    return mean
