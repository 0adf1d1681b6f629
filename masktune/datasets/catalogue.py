"""Every dataset by name, as ``cards.toml`` lists them. Listing them imports no PyTorch."""

from __future__ import annotations

import pkgutil
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from masktune.data.card import (
    CORRELATED,
    DatasetCard,
    DataSettings,
    Exceptions,
    Stamp,
    Validation,
    check_correlation,
)
from masktune.data.frame import frame as frame_named
from masktune.data.listing import Listing, refuse_missing
from masktune.data.normalisations import NORMALISATIONS, normalisation
from masktune.datasets import own
from masktune.errors import DataError, check_choice, shortened
from masktune.files import written_path
from masktune.progress import Watcher, unwatched

if TYPE_CHECKING:
    from masktune.data.types import Arrays, DatasetBundle


def _cards() -> Iterator[tuple[DatasetCard, str]]:
    """Give each card and which function of this package reads its pictures."""
    written: dict[str, dict[str, Any]] = {}
    cards = Path(__file__).with_name("cards.toml").read_text("utf-8")
    for key, fields in tomllib.loads(cards).items():
        written[key] = {**written.get(fields.pop("like", ""), {}), **fields}
        said: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in written[key].items()
        }
        mean, std = NORMALISATIONS[said.pop("normalise", "none")]
        reader = said.pop("read")
        yield DatasetCard(key=key, mean=mean, std=std, **said), reader


OWN = "folder"
"""Key of the dataset that reads anybody's pictures."""

_READERS = dict(_cards())
CATALOGUE = {card.key: card for card in _READERS}
"""Cards by key, bundled ones first."""


def card(key: str) -> DatasetCard:
    """Give what is known about a dataset without reading it."""
    if key not in CATALOGUE:
        raise DataError(f"There is no dataset '{key}'.", f"Choose {', '.join(CATALOGUE)}.")
    return CATALOGUE[key]


def title(key: str, root: str | Path | None = None) -> str:
    """Return what pictures are called: one's own by their folder, others by their dataset."""
    return own.title(Path(root)) if key == OWN and root else card(key).title


def load(
    key: str,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    frame: str | None = None,
    normalise: str | None = None,
    attributes: str | Path | None = None,
    class_names: Sequence[str] | None = None,
    validation: Validation = "own",
    exceptions: Exceptions = "random",
    stamp: Stamp = "two-sided",
    correlation: float = CORRELATED,
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
        attributes: a CSV file of the columns file and attribute, in place of what the dataset
            records; see ``masktune.data.attributes``.
        class_names: what the classes are called, in their order; None calls them as the dataset
            does.
        validation: "test" validates on half of the test pictures, for a model that has seen all the
            others.
        exceptions: which pictures go without the clue of their class, where it is planted here:
            "authors" chooses them as the authors' code does.
        stamp: what is planted on photographs, where it is planted here.
        correlation: share of a class that carries its stamp in training, 0.5 to 1.
        watcher: told while files are checked or downloaded.
    """
    from masktune.data.assemble import assemble, gather
    from masktune.data.attributes import with_attributes
    from masktune.data.splits import reframed, validated_by_test

    known = card(key)
    check_choice("validation", validation, get_args(Validation))
    check_choice("exceptions", exceptions, get_args(Exceptions))
    check_choice("stamp", stamp, get_args(Stamp))
    check_correlation(correlation)
    settings = DataSettings(seed=seed, exceptions=exceptions, stamp=stamp, correlation=correlation)
    _check_heeded(known, settings)
    chosen = None if frame is None else frame_named(frame)
    place = None if root is None else written_path(root)
    _check_root(known, place)
    # Only now is the reader, and with it PyTorch, imported. Its root is a path that exists, or None
    # where the card says that the dataset is bundled or can be downloaded.
    read = pkgutil.resolve_name(f"masktune.datasets.{_READERS[known]}")
    found: Listing | Arrays = read(place, settings, watcher)
    if isinstance(found, Listing):
        bundle = assemble(known, found, root=place or Path(), seed=seed, watcher=watcher)
    else:
        bundle = gather(known, found, seed=seed)
    if key == OWN and place is not None and (told := _also_known(place)):
        bundle = replace(bundle, findings=(*bundle.findings, told))
    if attributes is not None:
        bundle = with_attributes(bundle, written_path(attributes))
    if class_names is not None:
        bundle = _called(bundle, tuple(class_names))
    if validation == "test":
        bundle = validated_by_test(bundle, seed=seed)
    if chosen is not None:
        bundle = reframed(bundle, chosen)
    if normalise is not None:
        mean, std = normalisation(normalise)
        bundle = replace(bundle, card=replace(bundle.card, mean=mean, std=std))
    return bundle


def _also_known(place: Path) -> str:
    """Say that somebody's own folder is a dataset of the catalogue, where it looks like one."""
    from masktune.datasets.recognise import recognised

    keys = recognised(place)
    if not keys:
        return ""
    titles = " or ".join(card(key).title for key in keys)
    return (
        f"This looks like {titles}: choose the dataset {' or '.join(keys)} for its own parts and "
        "groups."
    )


def _called(bundle: DatasetBundle, names: tuple[str, ...]) -> DatasetBundle:
    """Return a dataset whose classes are called otherwise."""
    known = bundle.card.classes
    if len(names) != len(known):
        given = "1 class name is" if len(names) == 1 else f"{len(names)} class names are"
        raise DataError(
            f"{given} given, and the pictures have {len(known)} classes: {shortened(known)}.",
            "Give one name for each, in this order and with commas between.",
        )
    told = f"Called {shortened(names)} here: {shortened(known)}."
    return replace(
        bundle,
        card=replace(bundle.card, classes=names),
        findings=(*bundle.findings, *(() if names == known else [told])),
    )


def _check_heeded(card: DatasetCard, settings: DataSettings) -> None:
    usual = asdict(DataSettings(seed=settings.seed))
    for name, value in asdict(settings).items():
        if value != usual[name] and name not in card.heeds:
            able = [other.key for other in CATALOGUE.values() if name in other.heeds]
            raise DataError(
                f"'{card.key}' does not heed --{name} {value}.",
                f"Leave it out, or choose {', '.join(able)}.",
            )


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
