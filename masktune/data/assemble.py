"""From what a dataset reads, a list of files or arrays, to its splits; written once for all."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from masktune.data.card import UNKNOWN, DatasetCard
from masktune.data.check import Checked, usable
from masktune.data.frame import Frame, small_as_they_are
from masktune.data.images import FileImages
from masktune.data.listing import NO_ATTRIBUTE, TEST, TRAIN, VALIDATION, Listing, Row
from masktune.data.regions import boxed
from masktune.data.splits import fifth
from masktune.data.types import Arrays, DatasetBundle, Split, first_skipped
from masktune.errors import DataError
from masktune.progress import Watcher, unwatched
from masktune.seeds import stream

HELD = 0.2
"""Share of each class's training pictures that a part made here takes."""


def gather(card: DatasetCard, arrays: Arrays, *, seed: int) -> DatasetBundle:
    """Return a dataset of pictures in memory.

    Without a validation part a fifth of the training pictures, whatever their class, chosen by
    ``seed``, validates, and ``findings`` say so; the authors' code carves out as many.
    """
    train, validation, told = arrays.train, arrays.validation, ""
    if arrays.attributes is not None:
        card = replace(card, attributes=arrays.attributes)
    if validation is None:
        told = (
            f"{len(train) // 5:,} of the {len(train):,} training pictures, chosen by the seed, "
            "validate."
        )
        train, validation = fifth(train, seed)
    return DatasetBundle(
        card=card,
        train=train,
        validation=validation,
        tests=arrays.tests,
        findings=(
            *arrays.findings,
            *filter(None, [told]),
            *(() if card.attributes else [NO_ATTRIBUTE]),
        ),
        set_aside=told,
        skipped=arrays.skipped,
    )


def assemble(
    card: DatasetCard, listing: Listing, *, root: Path, seed: int, watcher: Watcher = unwatched
) -> DatasetBundle:
    """Check the files of a list and make a dataset of those that can be used.

    Nothing is moved or written: a missing validation or test part is made in memory, a fifth of
    each class's training pictures, chosen by ``seed``, and ``findings`` say so. Of the card, size
    and tests are set here; classes, attributes, title and pool where the list has its own, and
    attributes emptied when the list has none.

    Raises:
        DataError: no picture, more than half of them unusable, or none left of a class.
    """
    rows, root = listing.rows, listing.root or root
    card = replace(
        card,
        title=listing.title or card.title,
        classes=card.classes if listing.classes is None else listing.classes,
        attributes=card.attributes if listing.attributes is None else listing.attributes,
        pool=listing.pool or card.pool,
    )
    if not rows:
        raise DataError(f"{root} holds no pictures.", f"Give the folder that holds: {card.layout}.")
    checked = usable([row.path for row in rows], root=root, watcher=watcher)
    _refuse_ruins(card, rows, checked, root=root)
    kept = [rows[position] for position in checked.kept]
    if TRAIN not in (present := {row.split for row in kept}):
        raise DataError(
            f"{root} has no training pictures, only {', '.join(sorted(present))}.",
            "Put some of the pictures into the part 'train'.",
        )
    whole, made = _with_every_part(kept, seed=seed)
    frame = listing.frame or small_as_they_are(checked.sizes)
    height, width = frame.size
    seen = f"Every picture is {width} x {height} pixels and is seen so, unless a frame is set."
    small = listing.frame is None and frame.size != card.size
    tests = dict.fromkeys(row.split for row in whole if row.split not in (TRAIN, VALIDATION))
    train, validation, *tested = (
        _part(whole, name, frame=frame, listing=listing) for name in (TRAIN, VALIDATION, *tests)
    )
    return DatasetBundle(
        card=replace(
            card,
            attributes=() if whole[0].attribute == UNKNOWN else card.attributes,
            size=frame.size,
            tests=tuple(tests),
        ),
        train=train,
        validation=validation,
        tests={split.name: split for split in tested},
        findings=(*listing.findings, *made.values(), *((seen,) if small else ())),
        set_aside=made.get(VALIDATION, ""),
        skipped=checked.skipped,
    )


def _refuse_ruins(card: DatasetCard, rows: Sequence[Row], checked: Checked, *, root: Path) -> None:
    if 2 * len(checked.skipped) > len(rows):
        raise DataError(
            f"{len(checked.skipped):,} of {len(rows):,} pictures of {root} cannot be used: "
            f"{first_skipped(checked.skipped)}.",
            "Unpack or download the dataset again, then load it again.",
        )
    labels = Counter(row.label for row in rows)
    if lost := labels.keys() - {rows[position].label for position in checked.kept}:
        raise DataError(
            f"None of the {labels[min(lost)]:,} pictures of '{card.classes[min(lost)]}' in {root} "
            f"can be used: {first_skipped(checked.skipped)}.",
            "Replace the pictures of this class by ones that open in a picture viewer.",
        )


def _with_every_part(rows: list[Row], *, seed: int) -> tuple[list[Row], dict[str, str]]:
    """Take what is missing of validation and test from training; say what, by part."""
    present = {row.split for row in rows}
    missing = [] if present - {TRAIN, VALIDATION} else [TEST]
    missing += [] if VALIDATION in present else [VALIDATION]
    if not missing:
        return rows, {}
    whole = list(rows)
    train = shuffled_classes(rows, TRAIN, seed=seed, name="split")
    counts = dict.fromkeys(missing, 0)
    for positions in train.values():
        left, share = positions, max(1, round(HELD * len(positions)))
        for name in missing:
            taken = min(share, len(left) - 1)  # a class's last picture stays in training
            for position in left[:taken]:
                whole[position] = rows[position]._replace(split=name)
            counts[name] += taken
            left = left[taken:]
    if not all(counts.values()):
        name = next(name for name, count in counts.items() if not count)
        raise DataError(
            f"{sum(map(len, train.values())):,} training pictures in {len(train)} classes are too "
            f"few to set a {name} part aside.",
            f"Add pictures to every class, or give a {name} part of your own.",
        )
    return whole, {
        name: f"There is no {name} part, so a fifth of each class, {count:,} training pictures, "
        "chosen by the seed, validate."
        if name == VALIDATION
        else f"There is no {name} part, so {count:,} training pictures, a fifth of each class "
        f"chosen by seed {seed}, serve as one; no file was moved."
        for name, count in counts.items()
    }


def shuffled_classes(
    rows: Sequence[Row], split: str, *, seed: int, name: str
) -> dict[int, list[int]]:
    """Return the positions of a split's rows by label, each class by a stream of its own."""
    found: dict[int, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        if row.split == split:
            found[row.label].append(position)
    for label, positions in found.items():
        order = torch.randperm(len(positions), generator=stream(seed, f"{name}/{label}"))
        found[label] = [positions[place] for place in order.tolist()]
    return found


def _part(rows: Sequence[Row], name: str, *, frame: Frame, listing: Listing) -> Split:
    mine = [row for row in rows if row.split == name]
    images = FileImages(tuple(row.path for row in mine), frame)
    thing = None if listing.things is None else boxed(images, listing.things)
    clue = None
    if thing is not None and listing.background_tells:
        clue = replace(thing, outside=True)
    return Split(
        name=name,
        images=images,
        labels=torch.tensor([row.label for row in mine], dtype=torch.int64),
        attributes=torch.tensor([row.attribute for row in mine], dtype=torch.int64),
        clue=clue,
        thing=thing,
    )
