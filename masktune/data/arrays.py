"""Datasets whose pictures lie together in a few files and fit in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from masktune.data.card import UNKNOWN, DatasetCard
from masktune.data.images import TensorImages
from masktune.data.types import DatasetBundle, Split
from masktune.errors import DataError
from masktune.seeds import stream

NO_ATTRIBUTE = "No attribute is recorded: the worst class stands in for the worst group."


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures with labels: pixels (N, 3, H, W) uint8 and labels (N,) int64."""

    pixels: Tensor
    labels: Tensor

    def at(self, positions: Tensor) -> "Pictures":
        """Give a part."""
        return Pictures(self.pixels[positions], self.labels[positions])


def label_free(
    card: DatasetCard,
    train: Pictures,
    *,
    tests: Mapping[str, Pictures],
    seed: int,
    findings: tuple[str, ...] = (),
) -> DatasetBundle:
    """Make a dataset without an attribute; a fifth of the training pictures validates.

    Args:
        card: what is known about it.
        train: the official training pictures.
        tests: test sets by name.
        seed: decides which pictures validate; the authors' code carves out as many with its own.
        findings: what reading the files found out.
    """
    order = torch.randperm(len(train.labels), generator=stream(seed, "split"))
    held = len(order) // 5
    told = f"{held:,} of the {len(order):,} training pictures, chosen by the seed, validate."
    return DatasetBundle(
        card=card,
        train=unattributed("train", train.at(order[held:])),
        validation=unattributed("validation", train.at(order[:held])),
        tests={name: unattributed(name, part) for name, part in tests.items()},
        findings=(*findings, told, NO_ATTRIBUTE),
        set_aside=told,
    )


def checked(pictures: Pictures, *, classes: int, path: Path) -> Pictures:
    """Refuse labels that are no classes, naming the file they come from."""
    labels = pictures.labels
    if len(labels) != len(pictures.pixels):
        raise DataError(
            f"{path} holds {len(pictures.pixels):,} pictures but {len(labels):,} labels.",
            "Give one label for each picture.",
        )
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise DataError(
            f"{path} has labels from {int(labels.min())} to {int(labels.max())}.",
            f"Number the classes from 0 to {classes - 1}.",
        )
    return pictures


def unattributed(name: str, part: Pictures) -> Split:
    """Make a split of pictures without an attribute."""
    return Split(
        name=name,
        images=TensorImages(part.pixels),
        labels=part.labels,
        attributes=torch.full_like(part.labels, UNKNOWN),
    )
