"""Measure what a keeper hides: how much of each picture, of its clue and of the thing itself."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from masktune.data.card import DatasetCard
from masktune.data.fills import Filled
from masktune.data.preprocess import Keeper
from masktune.data.regions import Regions
from masktune.data.types import Batch, Split
from masktune.heat.clues import find_clues
from masktune.heat.store import BATCH, HeatStore
from masktune.scores.hiding import Hiding, Measured, weigh_hiding
from masktune.scores.predictions import Predictions
from masktune.seeds import stream

SAMPLE = 5000
"""Training pictures that a verdict takes at most: two passes of the model over each."""


def look_at_hiding(
    before: Predictions,
    after: Predictions,
    *,
    keep: Keeper | None,
    split: Split,
    card: DatasetCard,
    of: int | None = None,
    clues: Mapping[str, npt.NDArray[np.int64]] | None = None,
) -> Hiding:
    """Judge what hiding takes away from a model that was asked about a split twice.

    Args:
        before: what it says about the pictures as they are.
        after: what it says about them hidden.
        keep: what hides them, by position in the split.
        split: the pictures.
        card: of their dataset.
        of: how many training pictures there are, where the split has some of them only.
        clues: what stands in for groups where no attribute is recorded, see ``clues_of``.
    """
    return weigh_hiding(
        before,
        after,
        measure_hiding(keep, split),
        of=len(split) if of is None else of,
        classes=card.classes,
        attributes=card.attributes,
        clues=clues,
    )


def sample_of(train: Split, *, seed: int) -> Tensor:
    """Return which training pictures a verdict takes: all, or ``SAMPLE`` by the seed, ascending."""
    if len(train) <= SAMPLE:
        return torch.arange(len(train))
    drawn = torch.randperm(len(train), generator=stream(seed, "hiding"))
    return drawn[:SAMPLE].sort().values


def keep_of(keep: Keeper, positions: Tensor) -> Keeper:
    """Return a keeper for some pictures of a split, by their position among themselves."""
    if isinstance(keep, Filled):
        return _Some(fill=keep.fill, chance=keep.chance, positions=positions)
    return lambda index: keep(positions.to(index.device)[index])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Some(Filled):
    """A filling keeper of some pictures: chance belongs to a picture's position in the whole."""

    positions: Tensor

    def __call__(self, index: Tensor) -> Tensor:
        return Filled.__call__(self, self.positions.to(index.device)[index])

    def paint(self, images: Tensor, keep: Tensor, batch: Batch) -> Tensor:
        known = self.positions.to(batch.positions.device)[batch.positions]
        return Filled.paint(self, images, keep, batch._replace(positions=known))


def measure_hiding(keep: Keeper | None, split: Split) -> Measured:
    """Return how much of each picture of a split is hidden, by a keeper for its positions.

    Soft masks count by how much they darken. None hides nothing.
    """
    columns: dict[str, list[Tensor]] = {"hidden": [], "clue": [], "thing": [], "rest": []}
    for index in torch.split(torch.arange(len(split)), BATCH):
        hidden = None if keep is None else 1.0 - keep(index).double()  # (B, H, W)
        columns["hidden"].append(
            torch.zeros(len(index)).double() if hidden is None else hidden.mean(dim=(1, 2))
        )
        clue, thing = _where(split.clue, index), _where(split.thing, index)
        rest = None if thing is None else ~thing & thing.any(dim=2).any(dim=1)[:, None, None]
        for name, where in (("clue", clue), ("thing", thing), ("rest", rest)):
            if where is not None:
                columns[name].append(_share(hidden, where))
    found = {name: torch.cat(parts).numpy() for name, parts in columns.items() if parts}
    return Measured(**found)


def _where(regions: Regions | None, index: Tensor) -> Tensor | None:
    return None if regions is None else regions.batch(index.tolist())


def _share(hidden: Tensor | None, where: Tensor) -> Tensor:
    """Return the share of some regions, (B, H, W) bool, that is hidden; NaN of empty ones."""
    area = where.sum(dim=(1, 2)).double()
    covered = torch.zeros_like(area) if hidden is None else (hidden * where).sum(dim=(1, 2))
    return torch.where(area > 0, covered / area, torch.nan)


def clues_of(
    store: HeatStore | None, card: DatasetCard, *, seed: int
) -> Mapping[str, npt.NDArray[np.int64]] | None:
    """Return what stands in for the groups of pictures whose attribute nobody recorded.

    The store has the heat of the very pictures that are judged, in their order; None where there is
    no heat, or where groups need no stand-in.
    """
    if store is None or card.attributes:
        return None
    return clue_members(store, seed=seed)


def clue_members(store: HeatStore, *, seed: int) -> Mapping[str, npt.NDArray[np.int64]]:
    """Return the positions of pictures in which the model looks at the same place, by its name.

    Places of the same name are numbered, the commonest first.
    """
    found: dict[str, npt.NDArray[np.int64]] = {}
    for clue in find_clues(store, seed=seed):
        again = sum(name.split(" (")[0] == clue.place for name in found)
        found[f"{clue.place} ({again + 1})" if again else clue.place] = clue.members
    return found
