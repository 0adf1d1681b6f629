"""Where a model looks in its training set: mean heat by group, and clues, in pictures and words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import cv2
import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from torch import Tensor

from masktune.data.types import DatasetBundle, Split
from masktune.heat.clues import Clue, find_clues, mean_heat_of
from masktune.heat.store import HeatStore
from masktune.scores.marks import ClueMark, Mark
from masktune.show.marks import mark_link
from masktune.show.markup import piece, sheet_html
from masktune.show.painting import CIVIDIS, Picture
from masktune.show.wording import count, percent, pictures

TILE = 192
"""Pixels of a tile's side, about twice what is shown."""

FIRM = 0.3
"""From here on a clue's ninth of the picture is where the model looks, not only the hottest."""


VAGUE = 2 / 9
"""Up to here a ninth of the picture holds less than twice its share of the heat. Where all pictures
are looked at alike and this vaguely, no clue stands out: nothing tells them apart from each other,
nor a place in them from the rest."""


def stands_out(clue: Clue, total: int) -> bool:
    """Tell whether a clue has a place of its own, or pictures of its own among ``total``."""
    return clue.focus >= VAGUE or len(clue.members) < total


def group_numbers(split: Split, attributes: int) -> Tensor:
    """Return the group of every example, (N,) int64: label * |A| + attribute."""
    return split.labels * max(attributes, 1) + split.attributes.clamp(min=0)


def names_of_groups(data: DatasetBundle, numbers: Sequence[int]) -> dict[int, str]:
    """Name groups by number."""
    classes, attributes = data.card.classes, data.card.attributes
    both = {number: divmod(number, max(len(attributes), 1)) for number in numbers}
    return {
        number: f"{classes[label]}, {attributes[attribute]}" if attributes else classes[label]
        for number, (label, attribute) in both.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaning:
    """What a model leans on over its whole training set."""

    groups: Mapping[str, npt.NDArray[np.bool_]]  # by name, which pictures are of it, (N,)
    means: Mapping[str, npt.NDArray[np.float64]]  # by group, mean heat (H, W) in [0, 1]
    sizes: Mapping[str, int]  # by group, pictures
    clues: list[Clue]  # where it looks, the commonest place first
    sentences: list[str]  # of each clue, with whose pictures they are


def leaning(data: DatasetBundle, store: HeatStore, *, seed: int = 0) -> Leaning:
    """Find out what a model leans on by the heat of its training set."""
    numbers = group_numbers(data.train, len(data.card.attributes)).numpy()
    names = names_of_groups(data, np.unique(numbers).tolist())
    groups = {name: numbers == number for number, name in names.items()}

    def sentence(clue: Clue) -> str:
        whose = {name: int(inside[clue.members].sum()) for name, inside in groups.items()}
        return clue_sentence(clue, whose, len(numbers))

    clues = find_clues(store, seed=seed)
    return Leaning(
        groups=groups,
        means={name: mean_heat_of(store, np.flatnonzero(at)) for name, at in groups.items()},
        sizes={name: int(inside.sum()) for name, inside in groups.items()},
        clues=clues,
        sentences=[sentence(clue) for clue in clues],
    )


def heat_tile(heat: npt.NDArray[np.float64]) -> Picture:
    """Draw a heat map without a picture under it."""
    colours = CIVIDIS[np.rint(np.clip(heat, 0, 1) * 255).astype(np.uint8)]
    return cv2.resize(colours, (TILE, TILE), interpolation=cv2.INTER_LINEAR).astype(np.uint8)


def means_html(
    means: Mapping[str, npt.NDArray[np.float64]],
    sizes: Mapping[str, int],
    *,
    across: int = 4,
    marks: Mapping[str, Mark] = MappingProxyType({}),
) -> Markup:
    """Show the mean heat of every group, (H, W) in [0, 1], on one scale, and its size.

    Sizes lead to the pictures of those that have ``marks``.
    """
    most = max(float(mean.max()) for mean in means.values()) or 1.0

    def size(name: str) -> str:
        words = pictures(sizes[name])
        return mark_link(marks[name], words) if name in marks else words

    return sheet_html(
        [heat_tile(mean / most) for mean in means.values()],
        [piece("caption", strong=name, small=size(name)) for name in means],
        labels=[f"mean heat, {name}" for name in means],
        across=across,
    )


def clue_sentence(clue: Clue, groups: Mapping[str, int], total: int) -> str:
    """Say where the model looks in some pictures, and whose pictures they are."""
    size = len(clue.members)
    name, most = max(groups.items(), key=lambda item: item[1])
    if not stands_out(clue, total):
        return (
            f"No clue stands out: the heat of all {count(total)} pictures has no common place. The "
            f"{clue.place} has most, {percent(clue.focus)} of it; spread evenly it would have "
            f"{percent(1 / 9)}."
        )
    firmly = "" if clue.focus >= FIRM else ", but not only there"
    return (
        f"In {percent(size / total)} of the pictures it looks at the {clue.place}{firmly} "
        f"({percent(clue.focus)} of the heat). {percent(most / size)} of them are {name}."
    )


def clue_captions(found: Leaning) -> list[Markup]:
    """Return the sentence of each clue with a link to its pictures."""
    both = zip(found.sentences, found.clues, strict=True)
    return [
        piece(
            "sentence",
            text=sentence,
            link=mark_link(ClueMark("train", number), pictures(len(clue.members))),
        )
        for number, (sentence, clue) in enumerate(both, start=1)
    ]


def clues_html(clues: Sequence[Clue], sentences: Sequence[str], captions: Sequence[str]) -> Markup:
    """Show the mean heat of at least one clue, with sentences for those who cannot see it."""
    tiles = [heat_tile(clue.heat / max(float(clue.heat.max()), 1e-9)) for clue in clues]
    return sheet_html(tiles, captions, labels=sentences, across=max(len(tiles), 4))
