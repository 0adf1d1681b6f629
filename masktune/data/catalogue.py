"""Every dataset by name: one line each."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from masktune.data import cows, mnist
from masktune.data.base import DatasetBundle, DatasetCard
from masktune.errors import DataError

Loader = Callable[[Path | None, int], DatasetBundle]
"""From (root, seed) to the dataset."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A dataset that can be asked for by its key."""

    card: DatasetCard
    load: Loader


def home() -> Path:
    """Give the folder that runs and downloads live in: $MASKTUNE_HOME, or ~/.masktune."""
    return Path(os.environ.get("MASKTUNE_HOME") or Path.home() / ".masktune")


def _bundled_mnist(card: DatasetCard, paint: mnist.Painter) -> Entry:
    return Entry(
        card,
        lambda _, seed: mnist.squares(card, mnist.bundled_digits(seed), paint=paint, seed=seed),
    )


def _full_mnist(card: DatasetCard, paint: mnist.Painter) -> Entry:
    def load_full(root: Path | None, seed: int) -> DatasetBundle:
        digits = mnist.all_digits(root or home() / "data", seed, download=root is None)
        return mnist.squares(card, digits, paint=paint, seed=seed)

    return Entry(card, load_full)


_ENTRIES = (
    _bundled_mnist(mnist.BIASED_5K, mnist.paint_one_square),
    _bundled_mnist(mnist.TWO_SQUARES_5K, mnist.paint_two_squares),
    Entry(cows.BACKGROUND_CARD, lambda _, seed: cows.cows(clue="background", seed=seed)),
    Entry(cows.STAMP_CARD, lambda _, seed: cows.cows(clue="stamp", seed=seed)),
    _full_mnist(mnist.BIASED_70K, mnist.paint_one_square),
    _full_mnist(mnist.TWO_SQUARES_70K, mnist.paint_two_squares),
)

CATALOGUE: dict[str, Entry] = {entry.card.key: entry for entry in _ENTRIES}
"""Entries by key, bundled ones first."""


def card(key: str) -> DatasetCard:
    """Give what is known about a dataset without reading it."""
    return _entry(key).card


def load(key: str, *, root: str | Path | None = None, seed: int = 0) -> DatasetBundle:
    """Read a dataset.

    Args:
        key: a key of ``CATALOGUE``.
        root: the folder a dataset that is not bundled lies in; None downloads it where it can be.
        seed: decides the split and where clues are planted.
    """
    entry = _entry(key)
    folder = None if root is None else Path(root)
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"The dataset folder {folder} does not exist.",
            f"Give the folder that holds: {entry.card.layout}."
            if entry.card.layout
            else f"Leave --root out: '{key}' is bundled.",
        )
    return entry.load(folder, seed)


def _entry(key: str) -> Entry:
    if key not in CATALOGUE:
        raise DataError(f"There is no dataset '{key}'.", f"Choose {', '.join(CATALOGUE)}.")
    return CATALOGUE[key]
