"""Parts of a dataset: taken, joined, seen in another frame, set aside to validate."""

from dataclasses import replace

import torch
from torch import Tensor

from masktune.data.frame import Frame
from masktune.data.regions import Regions
from masktune.data.types import DatasetBundle, Split
from masktune.errors import DataError
from masktune.seeds import stream


def fifth(train: Split, seed: int) -> tuple[Split, Split]:
    """Return what trains and the fifth of it that validates, whatever their class."""
    order = torch.randperm(len(train), generator=stream(seed, "split"))
    held = len(train) // 5
    return part(train, order[held:]), part(replace(train, name="validation"), order[:held])


def validated_by_test(bundle: DatasetBundle, *, seed: int) -> DatasetBundle:
    """Validate on half of the test pictures; all others train.

    A public checkpoint was usually trained on every training picture. A validation part drawn from
    them is too easy for it: the gamma found there accepts too few test pictures (measured on CIFAR
    with a public ResNet-32: 77 % where 80 % were wanted).
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


def part(split: Split, positions: Tensor) -> Split:
    """Return the examples at ``positions``, (n,) int64, not read before they are asked for."""
    return Split(
        name=split.name,
        images=split.images.take(positions),
        labels=split.labels[positions],
        attributes=split.attributes[positions],
        clue=None if split.clue is None else split.clue.take(positions),
        thing=None if split.thing is None else split.thing.take(positions),
    )


def joined(first: Split, second: Split) -> Split:
    """Return the examples of two splits of one dataset as one, named as the first."""
    return Split(
        name=first.name,
        # Both are of one dataset, so of one kind.
        images=first.images.join(second.images),  # type: ignore[arg-type]
        labels=torch.cat([first.labels, second.labels]),
        attributes=torch.cat([first.attributes, second.attributes]),
        clue=_both(first.clue, second.clue),
        thing=_both(first.thing, second.thing),
    )


def _both(first: Regions | None, second: Regions | None) -> Regions | None:
    """Return where something lies in the pictures of two splits; unknown where it is of one."""
    if first is None or second is None:
        return None
    return first.join(second)  # type: ignore[arg-type]


def reframed(bundle: DatasetBundle, frame: Frame) -> DatasetBundle:
    """Return a dataset whose pictures are seen in another frame."""

    def seen(split: Split) -> Split:
        return replace(
            split,
            images=split.images.in_frame(frame),
            clue=None if split.clue is None else split.clue.in_frame(frame),
            thing=None if split.thing is None else split.thing.in_frame(frame),
        )

    return replace(
        bundle,
        card=replace(bundle.card, size=frame.size),
        train=seen(bundle.train),
        validation=seen(bundle.validation),
        tests={name: seen(split) for name, split in bundle.tests.items()},
    )
