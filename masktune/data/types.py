"""The types every dataset is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from masktune.data.card import UNKNOWN, DatasetCard, Skipped
from masktune.data.images import Images, TensorImages
from masktune.data.regions import Regions
from masktune.errors import DataError


@dataclass(frozen=True, slots=True)
class Example:
    """One picture with what is known about it.

    Attributes:
        index: position in its split; heat[index] is this picture's heat.
        image: (3, H, W) uint8 in the frame the model sees.
        label: class number, 0 .. K-1.
        attribute: number of the possibly spurious thing, or ``UNKNOWN``.
    """

    index: int
    image: Tensor
    label: int
    attribute: int


class Batch(NamedTuple):
    """Examples side by side: (N,) int64, (N, 3, H, W) uint8, (N,) int64, (N,) int64."""

    positions: Tensor
    images: Tensor
    labels: Tensor
    attributes: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A part of a dataset, a map-style dataset for ``torch.utils.data.DataLoader``.

    Attributes:
        name: "train", "validation" or the name of a test set.
        images: the pictures.
        labels: (N,) int64, 0 .. K-1.
        attributes: (N,) int64, ``UNKNOWN`` everywhere when the dataset has no attribute.
        clue: where the clue lies that the attribute tells of; None where nobody knows.
        thing: where that lies which the label tells of; None where nobody knows.
    """

    name: str
    images: Images
    labels: Tensor
    attributes: Tensor
    clue: Regions | None = None
    thing: Regions | None = None

    def __post_init__(self) -> None:
        sizes = (len(self.images), len(self.labels), len(self.attributes))
        if len(set(sizes)) != 1:
            raise DataError(
                f"Split '{self.name}' has {sizes[0]} pictures, {sizes[1]} labels and "
                f"{sizes[2]} attributes.",
                "Give one label and one attribute for each picture.",
            )
        for what, regions in (("clue", self.clue), ("thing", self.thing)):
            if regions is not None and len(regions) != sizes[0]:
                raise DataError(
                    f"Split '{self.name}' has {sizes[0]} pictures and {len(regions)} regions of "
                    f"the {what}.",
                    "Give one region for each picture, an empty one where there is nothing.",
                )
        if sizes[0] == 0:
            raise DataError(
                f"Split '{self.name}' is empty.", "Use a dataset with pictures in every split."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, position: int) -> Example:
        return Example(
            index=position,
            image=self.images.batch([position])[0],
            label=int(self.labels[position]),
            attribute=int(self.attributes[position]),
        )

    def __getitems__(self, positions: Sequence[int]) -> Batch:
        """Give a whole batch at once; the DataLoader calls this instead of N single reads."""
        index = torch.as_tensor(positions)
        return Batch(
            index, self.images.batch(positions), self.labels[index], self.attributes[index]
        )


def in_memory(name: str, pixels: Tensor, labels: Tensor, attributes: Tensor | None = None) -> Split:
    """Return a split of pictures in memory, (N, 3, H, W) uint8, ``UNKNOWN`` without attributes."""
    known = torch.full_like(labels, UNKNOWN) if attributes is None else attributes
    return Split(name=name, images=TensorImages(pixels), labels=labels, attributes=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """What a dataset whose pictures lie together in a few files reads."""

    train: Split
    validation: Split | None = None  # None lets a fifth of the training pictures validate
    tests: Mapping[str, Split]
    findings: tuple[str, ...] = ()
    attributes: tuple[str, ...] | None = None  # names by number; None for those on the card
    skipped: tuple[Skipped, ...] = ()  # files that cannot be used and were left out


NAMED = 3
"""Files left out that are named; the rest are counted."""


def first_skipped(skipped: Sequence[Skipped]) -> str:
    """Name the first files that were left out, with the reasons, and count the others."""
    named = "; ".join(f"{file.path} ({file.reason})" for file in skipped[:NAMED])
    more = len(skipped) - NAMED
    return f"{named}; and {more:,} more" if more > 0 else named


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetBundle:
    """A loaded dataset: its card and its splits.

    Attributes:
        card: what is known about it; classes, attributes and size are those found in the files.
        train: the training examples.
        validation: what gamma and k may be chosen on.
        tests: test sets by name.
        findings: what the check of the files found out, one sentence each.
        set_aside: the one of ``findings`` that says which pictures validate, where the dataset does
            not say so itself.
        skipped: files that cannot be used and were left out; the rest works.
    """

    card: DatasetCard
    train: Split
    validation: Split
    tests: Mapping[str, Split]
    findings: tuple[str, ...] = ()
    set_aside: str = ""
    skipped: tuple[Skipped, ...] = ()

    def knows_groups(self, split: Split) -> bool:
        """Tell whether the attribute of every picture of a split is known."""
        return len(self.card.attributes) > 1 and not bool((split.attributes == UNKNOWN).any())

    @property
    def left_out(self) -> str:
        """Say which files were left out; empty when none was."""
        if not self.skipped:
            return ""
        files = "1 file" if len(self.skipped) == 1 else f"{len(self.skipped):,} files"
        return f"{files} left out, unusable: {first_skipped(self.skipped)}."

    def __post_init__(self) -> None:
        counts = torch.bincount(self.train.labels, minlength=len(self.card.classes))
        wanted = self.card.classes[:-1] if self.card.pool else self.card.classes
        if absent := [name for name, n in zip(wanted, counts, strict=False) if n == 0]:
            raise DataError(
                f"The training split of '{self.card.key}' has no picture of "
                f"{' or '.join(repr(name) for name in absent)}.",
                "A classifier needs at least one training picture of every class: add some.",
            )
