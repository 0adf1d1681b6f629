"""Every dataset by name: one line each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from masktune.data.card import DatasetCard
from masktune.data.frame import frame as frame_named
from masktune.data.frame import reframed
from masktune.data.normalisations import normalisation
from masktune.data.splits import Validation, check_validation, validated_by_test
from masktune.data.types import DatasetBundle
from masktune.datasets import cats_dogs as catsdogs
from masktune.datasets import celeba, digits, imagenet9, mnist, own, svhn, waterbirds
from masktune.datasets import cifar10 as cifar
from masktune.datasets.cows import dataset as cows
from masktune.errors import DataError
from masktune.files import home as home
from masktune.files import written_path
from masktune.progress import Watcher, unwatched

Loader = Callable[[Path | None, int, Watcher], DatasetBundle]
"""From (root, seed, watcher) to the dataset; the watcher hears "check" and "download"."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A dataset that can be asked for by its key."""

    card: DatasetCard
    load: Loader


def _bundled_mnist(card: DatasetCard, paint: mnist.Painter) -> Entry:
    return Entry(
        card,
        lambda _, seed, __: mnist.squares(card, mnist.bundled_digits(seed), paint=paint, seed=seed),
    )


def _full_mnist(card: DatasetCard, paint: mnist.Painter) -> Entry:
    def load_full(root: Path | None, seed: int, watcher: Watcher) -> DatasetBundle:
        parts = mnist.all_digits(root, seed, watcher=watcher)
        return mnist.squares(card, parts, paint=paint, seed=seed)

    return Entry(card, load_full)


_ENTRIES = (
    _bundled_mnist(mnist.BIASED_5K, mnist.paint_one_square),
    _bundled_mnist(mnist.TWO_SQUARES_5K, mnist.paint_two_squares),
    Entry(cows.BACKGROUND_CARD, lambda _, seed, __: cows.cows(clue="background", seed=seed)),
    Entry(cows.STAMP_CARD, lambda _, seed, __: cows.cows(clue="stamp", seed=seed)),
    _full_mnist(mnist.BIASED_70K, mnist.paint_one_square),
    _full_mnist(mnist.TWO_SQUARES_70K, mnist.paint_two_squares),
    Entry(waterbirds.CARD, waterbirds.load_waterbirds),
    Entry(celeba.CARD, celeba.load_celeba),
    Entry(imagenet9.CARD, imagenet9.load_imagenet9),
    Entry(imagenet9.CARD_1000, imagenet9.load_imagenet9_1000),
    Entry(cifar.CARD, cifar.load_cifar10),
    Entry(svhn.CARD, svhn.load_svhn),
    Entry(catsdogs.CARD, catsdogs.load_cats_dogs),
    Entry(digits.CARD, digits.load_mnist),
    Entry(own.CARD, own.load_own),
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
    entry = _entry(key)
    check_validation(validation)
    chosen = None if frame is None else frame_named(frame)
    place = None if root is None else written_path(root)
    if place is not None and entry.card.bundled:
        raise DataError(
            f"'{key}' is bundled and reads no folder.",
            "Leave --root out, or choose --dataset folder for pictures of your own.",
        )
    if place is not None and not _exists(place):
        raise DataError(
            f"The dataset folder {place} does not exist.",
            f"Give the folder that holds: {entry.card.layout}.",
        )
    bundle = entry.load(place, seed, watcher)
    if validation == "test":
        bundle = validated_by_test(bundle, seed=seed)
    if chosen is not None:
        bundle = reframed(bundle, chosen)
    if normalise is not None:
        mean, std = normalisation(normalise)
        bundle = replace(bundle, card=replace(bundle.card, mean=mean, std=std))
    return bundle


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except (OSError, ValueError):  # too long, or with a NUL: no file has such a path
        return False


def _entry(key: str) -> Entry:
    if key not in CATALOGUE:
        raise DataError(f"There is no dataset '{key}'.", f"Choose {', '.join(CATALOGUE)}.")
    return CATALOGUE[key]
