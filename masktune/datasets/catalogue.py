"""Every dataset by name: one line each. Listing them imports no PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from masktune.data.arrays import Arrays
from masktune.data.card import DatasetCard
from masktune.data.frame import frame as frame_named
from masktune.data.listing import Listing, refuse_missing
from masktune.data.normalisations import normalisation
from masktune.data.settings import DataSettings, Validation, check_validation
from masktune.datasets import cats_dogs, celeba, cifar10, imagenet9, mnist, own, svhn, waterbirds
from masktune.datasets.cows import dataset as cows
from masktune.errors import DataError
from masktune.files import home as home
from masktune.files import written_path
from masktune.progress import Watcher, unwatched

if TYPE_CHECKING:
    from masktune.data.types import DatasetBundle

Read = Callable[[Any, DataSettings, Watcher], Listing | Arrays]
"""From (root, settings, watcher) to the pictures; root is a path that exists, or None where the
card says that the dataset is bundled or can be downloaded."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A dataset that can be asked for by its key."""

    card: DatasetCard
    read: Read


_ENTRIES = (
    Entry(mnist.BIASED_5K, mnist.biased(mnist.bundled_digits, mnist.ONE)),
    Entry(mnist.TWO_SQUARES_5K, mnist.biased(mnist.bundled_digits, mnist.TWO)),
    Entry(cows.BACKGROUND_CARD, cows.drawn("background")),
    Entry(cows.STAMP_CARD, cows.drawn("stamp")),
    Entry(mnist.BIASED_70K, mnist.biased(mnist.all_digits, mnist.ONE)),
    Entry(mnist.TWO_SQUARES_70K, mnist.biased(mnist.all_digits, mnist.TWO)),
    Entry(waterbirds.CARD, waterbirds.read),
    Entry(celeba.CARD, celeba.read),
    Entry(imagenet9.CARD, imagenet9.read),
    Entry(imagenet9.CARD_1000, imagenet9.read_1000),
    Entry(cifar10.CARD, cifar10.read),
    Entry(svhn.CARD, svhn.read),
    Entry(cats_dogs.CARD, cats_dogs.read),
    Entry(mnist.PLAIN, mnist.all_digits),
    Entry(own.CARD, own.read),
)

CATALOGUE: dict[str, Entry] = {entry.card.key: entry for entry in _ENTRIES}
"""Entries by key, bundled ones first."""


def card(key: str) -> DatasetCard:
    """Give what is known about a dataset without reading it."""
    return _entry(key).card


def load(
    key: str,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    frame: str | None = None,
    normalise: str | None = None,
    validation: Validation = "own",
    watcher: Watcher = unwatched,
) -> DatasetBundle:
    """Read a dataset.

    Args:
        key: a key of ``CATALOGUE``.
        root: where a dataset that is not bundled lies, a folder or for some a file; None downloads
            it where it can be.
        seed: decides the split and where clues are planted.
        frame: what the model sees of a picture, as ``masktune.data.frame.frame`` reads it; None
            takes the dataset's usual frame.
        normalise: as ``masktune.data.normalisations.normalisation`` reads it; None takes the
            dataset's usual one.
        validation: "test" validates on half of the test pictures, for a model that has seen all the
            others.
        watcher: told while files are checked or downloaded.
    """
    from masktune.data.assemble import assemble, gather
    from masktune.data.splits import reframed, validated_by_test

    entry = _entry(key)
    check_validation(validation)
    chosen = None if frame is None else frame_named(frame)
    place = None if root is None else written_path(root)
    _check_root(entry.card, place)
    found = entry.read(place, DataSettings(seed=seed), watcher)
    if isinstance(found, Listing):
        bundle = assemble(entry.card, found, root=place or Path(), seed=seed, watcher=watcher)
    else:
        bundle = gather(entry.card, found, seed=seed)
    if validation == "test":
        bundle = validated_by_test(bundle, seed=seed)
    if chosen is not None:
        bundle = reframed(bundle, chosen)
    if normalise is not None:
        mean, std = normalisation(normalise)
        bundle = replace(bundle, card=replace(bundle.card, mean=mean, std=std))
    return bundle


def _check_root(card: DatasetCard, place: Path | None) -> None:
    if place is None:
        if not card.bundled and not card.download:
            raise DataError(f"{card.title} cannot be downloaded from here.", card.get)
        return
    if card.bundled:
        raise DataError(
            f"'{card.key}' is bundled and reads no folder.",
            "Leave --root out, or choose --dataset folder for pictures of your own.",
        )
    refuse_missing(place)
    if place.is_file() and not card.reads_file:
        raise DataError(f"{place} is a file.", "Unpack it and give the folder as --root.")


def _entry(key: str) -> Entry:
    if key not in CATALOGUE:
        raise DataError(f"There is no dataset '{key}'.", f"Choose {', '.join(CATALOGUE)}.")
    return CATALOGUE[key]
