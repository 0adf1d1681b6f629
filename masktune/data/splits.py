"""Validate on test pictures, for a model that has seen all the others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from masktune.data.images import FileImages, Images, TensorImages
from masktune.data.types import DatasetBundle, Split
from masktune.errors import ConfigError, DataError
from masktune.seeds import stream

Validation = Literal["own", "test"]
"""What validates: the dataset's own part (drawn from training where it has none), or test half."""


def check_validation(validation: str) -> None:
    """Refuse a word that is no ``Validation``."""
    if validation not in get_args(Validation):
        raise ConfigError(
            f"There is no validation '{validation}'.", f"Choose {', '.join(get_args(Validation))}."
        )


def validated_by_test(bundle: DatasetBundle, *, seed: int) -> DatasetBundle:
    """Validate on half of the test pictures; all others train.

    A public checkpoint was usually trained on every training picture. A validation part drawn from
    them is too easy for it: the gamma found there accepts too few test pictures (measured on CIFAR
    with a public ResNet-32: 77 % where 80 % were wanted).

    Args:
        bundle: with one test set.
        seed: decides which half validates.
    """
    if len(bundle.tests) != 1:
        raise DataError(
            f"'{bundle.card.key}' has {len(bundle.tests)} test sets, and either could validate.",
            "Let the dataset's own part validate (--validation own).",
        )
    ((name, test),) = bundle.tests.items()
    held = len(test) // 2
    if held == 0:
        raise DataError(
            f"The test set '{name}' has one picture, which cannot both test and validate.",
            "Add test pictures, or let the dataset's own part validate (--validation own).",
        )
    order = torch.randperm(len(test), generator=stream(seed, "validation"))
    told = (
        f"The model has seen every training picture: {held:,} of the {len(test):,} test pictures, "
        "chosen by the seed, validate."
    )
    return replace(
        bundle,
        train=joined(bundle.train, bundle.validation),
        validation=replace(part(test, order[:held].sort().values), name="validation"),
        tests={name: part(test, order[held:].sort().values)},
        findings=(*(f for f in bundle.findings if f != bundle.set_aside), told),
        set_aside=told,
    )


@dataclass(frozen=True, slots=True)
class ChosenImages:
    """Some pictures of a split, read only when they are asked for."""

    images: Images
    positions: Tensor

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.positions)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Give the pictures at ``positions`` as (N, 3, H, W) uint8."""
        return self.images.batch(self.positions[torch.as_tensor(positions)].tolist())


def part(split: Split, positions: Tensor) -> Split:
    """Give the examples at ``positions``, (n,) int64, not read before they are asked for."""
    return Split(
        name=split.name,
        images=_chosen(split.images, positions),
        labels=split.labels[positions],
        attributes=split.attributes[positions],
    )


def joined(first: Split, second: Split) -> Split:
    """Give the examples of two splits of one dataset as one, named as the first."""
    return Split(
        name=first.name,
        images=_both(first.images, second.images),
        labels=torch.cat([first.labels, second.labels]),
        attributes=torch.cat([first.attributes, second.attributes]),
    )


def _chosen(images: Images, positions: Tensor) -> Images:
    if isinstance(images, FileImages):
        return replace(images, paths=[images.paths[position] for position in positions.tolist()])
    if isinstance(images, TensorImages):
        return TensorImages(images.pixels[positions])
    return ChosenImages(images, positions)


def _both(first: Images, second: Images) -> Images:
    if isinstance(first, FileImages) and isinstance(second, FileImages):
        return replace(first, paths=[*first.paths, *second.paths])
    return TensorImages(torch.cat([images.batch(range(len(images))) for images in (first, second)]))
