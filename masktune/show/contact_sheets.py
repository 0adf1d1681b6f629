"""Contact sheets of a run: which pictures to show, where both models look, what was hidden.

Pictures are chosen by a rule and come in the order of their split, never by how well they look.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt
import torch
from markupsafe import Markup
from torch import Tensor

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.fills import Filled
from masktune.data.preprocess import Preprocess
from masktune.data.types import DatasetBundle, Split
from masktune.errors import ModelError
from masktune.heat.explainers import explainer
from masktune.heat.layers import layer_named
from masktune.heat.xgradcam import upsample
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.flips import AnswerChange, answer_changes
from masktune.scores.groups import group_examples
from masktune.scores.result import Pair
from masktune.show.answers import answers_at
from masktune.show.markup import rows_html
from masktune.show.painting import (
    SMALL,
    Picture,
    difference_over,
    enlarged,
    heat_over,
    hidden_over,
    model_sees,
    picture_of,
)

STATES: tuple[AnswerChange, ...] = get_args(AnswerChange)
"""What became of an answer."""

TILE = 224
"""Pixels of a tile's side, about twice what is shown."""

Rows = dict[str, list[Picture]]
"""Tiles of one size by row name, one for each picture."""


def telling(pair: Pair, *, count: int = 8, most: int = 24) -> list[int]:
    """Choose pictures that tell what tuning did.

    First one picture of every group, then more until there are ``count``. Each time the state
    (fixed, broken, still wrong, still right) shown least so far is preferred, and the first
    picture of that state is taken. Of more than ``most`` groups those served worst before are
    shown. Positions come by group and then ascending.
    """
    ids = group_examples(pair.before).ids
    right = pair.before.correct()
    groups = sorted(np.unique(ids).tolist())
    if len(groups) > most:
        groups = sorted(groups, key=lambda group: float(right[ids == group].mean()))[:most]
    became = answer_changes(pair.before, pair.after)
    chosen: list[int] = []
    shown: Counter[AnswerChange] = Counter()

    def take(candidates: Sequence[int]) -> None:
        here = {became[position] for position in candidates}
        state = min((s for s in STATES if s in here), key=lambda s: shown[s])
        shown[state] += 1
        chosen.append(next(p for p in candidates if became[p] == state))

    for group in groups:
        take(np.flatnonzero(ids == group).tolist())
    while len(chosen) < min(count, len(ids)):
        take([position for position in range(len(ids)) if position not in chosen])
    return sorted(chosen, key=lambda position: (ids[position], position))


def most_changed(pair: Pair) -> list[int]:
    """Return all positions, those first whose right class gained or lost most; groups in turn."""
    rows, labels = np.arange(len(pair.before.labels)), pair.before.labels
    before, after = (one.probabilities[rows, labels] for one in (pair.before, pair.after))
    order = np.argsort(-np.abs(after - before), kind="stable")
    ids = group_examples(pair.before).ids
    turn = np.empty_like(rows)
    for group in np.unique(ids):
        of_group = order[ids[order] == group]
        turn[of_group] = np.arange(len(of_group))
    found: list[int] = np.lexsort((ids, turn)).tolist()
    return found


def first_of_groups(split: Split, *, count: int = 8) -> list[int]:
    """Choose the first pictures of every group in turn, until there are ``count``; by group."""
    groups: dict[tuple[int, int], list[int]] = {}
    both = zip(split.labels.tolist(), split.attributes.tolist(), strict=True)
    for position, group in enumerate(both):
        groups.setdefault(group, []).append(position)
    places = [
        (turn, group) for group, found in groups.items() for turn in range(len(found[:count]))
    ]
    taken = sorted(places)[:count]
    return [groups[group][turn] for turn, group in sorted(taken, key=lambda place: place[::-1])]


def picture_tiles(split: Split, positions: Sequence[int]) -> list[Picture]:
    """Return some pictures of a split, enlarged."""
    return [enlarged(picture_of(image), TILE) for image in split.images.batch(positions)]


def photos(data: DatasetBundle) -> bool:
    """Tell whether pictures are photographs, which may be encoded with a little loss."""
    return max(data.card.size) > SMALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Where both models look in some pictures.

    Attributes:
        pictures: N pictures.
        before: (N, H, W) float64 in [0, 1], the heat of the model before.
        after: likewise.
    """

    pictures: tuple[Picture, ...]
    before: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]

    def rows(self) -> Rows:
        """Give the tiles: the picture, both heats and their difference."""
        every = list(zip(self.pictures, self.before, self.after, strict=True))
        return {
            "Picture": [enlarged(p, TILE) for p, _, _ in every],
            "Before": [enlarged(heat_over(p, before), TILE) for p, before, _ in every],
            "After": [enlarged(heat_over(p, after), TILE) for p, _, after in every],
            "Difference": [enlarged(difference_over(p, b, a), TILE) for p, b, a in every],
        }


NO_MAPS = "This network has no feature map, so nobody can say where it looks."


def looks(view: OpenRun, split: Split, positions: Sequence[int]) -> Looks:
    """Find where the models before and after look in some pictures of a split.

    Few pictures, and one process writes the report of a distributed run, so this asks the models
    where they are and takes no part in any collective work.
    """
    images = split.images.batch(positions)
    return Looks(
        pictures=tuple(picture_of(image) for image in images),
        before=heat_of(view, view.before, images),
        after=heat_of(view, view.after, images),
    )


def looks_html(
    test: OpenSplit,
    found: Looks,
    positions: Sequence[int],
    *,
    most: int,
    links: Sequence[str] = (),
) -> Markup:
    """Return the rows of some pictures of a test set, what both models say under each.

    More than ``most`` side by side begin a new band. ``links`` are what each picture leads to.
    """
    said = answers_at(test, positions)
    return rows_html(
        found.rows(),
        [answer.html() for answer in said],
        labels=[answer.words() for answer in said],
        photos=photos(test.run.bundle),
        most=most,
        links=links,
    )


def heat_of(view: OpenRun, checkpoint: Checkpoint, images: Tensor) -> npt.NDArray[np.float64]:
    """Return where a model of a run looks, (N, H, W) float64 in [0, 1], in (N, 3, H, W) uint8."""
    model, size = checkpoint.model, (images.shape[2], images.shape[3])
    if view.layer is None:
        raise ModelError(NO_MAPS, "Open a run of a convolutional network or vision transformer.")
    device = next(model.parameters()).device
    look = explainer(view.config.masking.method, model, layer_named(model, view.layer))
    heat = look(view.preprocess(images.to(device)))
    fine: npt.NDArray[np.float64] = upsample(heat.cpu(), size).numpy()
    return fine


def hidden_pictures(view: OpenRun, positions: Sequence[int]) -> tuple[Rows, list[float]]:
    """Show what every round hid in some training pictures, whatever the strategy.

    A soft mask only darkens, so there is nothing to hatch: what the model sees shows it, and also
    what fills the hidden pixels if that is not black.

    Returns:
        Tiles, and the hidden share of each picture in the round that was kept, in [0, 1].
    """
    index = torch.as_tensor(positions)
    batch = view.bundle.train.__getitems__(positions)
    pictures = [picture_of(image) for image in batch.images]
    large = [enlarged(picture, TILE) for picture in pictures]
    rows: Rows = {"Picture": large}
    shares = torch.zeros(len(positions), dtype=torch.float64)
    rounds, result = len(view.result.masking.rounds), view.result.masking.result
    for number in range(1, rounds + 1):
        keep = view.keeper(number)
        if keep is None:
            continue
        name = "" if rounds == 1 else f" {number}"
        if view.store is not None:
            heat = view.store.fine(index, round_number=number).numpy()
            tiles = [heat_over(picture, h) for picture, h in zip(pictures, heat, strict=True)]
            rows[f"Heat{name}"] = [enlarged(tile, TILE) for tile in tiles]
        kept = keep(index)
        if number == result:
            shares = 1 - kept.double().mean(dim=(1, 2))
        maps = [enlarged(one, TILE) for one in kept.numpy()]
        if kept.dtype == torch.bool:
            rows[f"Hidden{name}"] = [hidden_over(p, k) for p, k in zip(large, maps, strict=True)]
        if isinstance(keep, Filled):
            seen = (Preprocess().of(batch, keep) * 255).round().to(torch.uint8)
            rows[f"Model sees{name}"] = [enlarged(picture_of(one), TILE) for one in seen]
        elif kept.dtype != torch.bool:
            rows[f"Model sees{name}"] = [model_sees(p, k) for p, k in zip(large, maps, strict=True)]
    return rows, shares.tolist()
