"""From a list of picture files with labels to a dataset, whatever layout the list came from."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from masktune.data.card import UNKNOWN, DatasetCard
from masktune.data.check import Checked, usable
from masktune.data.frame import Frame
from masktune.data.images import FileImages
from masktune.data.types import DatasetBundle, Skipped, Split, first_skipped
from masktune.errors import DataError
from masktune.progress import Watcher, unwatched
from masktune.seeds import stream

TRAIN = "train"
VALIDATION = "validation"
TEST = "test"
HELD = 0.2
"""Share of each class's training pictures that a part made here takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Picture files and what is known about each.

    Attributes:
        paths: N files.
        labels: (N,) int64, 0 .. K-1.
        attributes: (N,) int64, ``UNKNOWN`` everywhere when none is recorded.
        splits: N names: "train", "validation" or the name of a test set.
    """

    paths: tuple[Path, ...]
    labels: Tensor
    attributes: Tensor
    splits: tuple[str, ...]

    def __post_init__(self) -> None:
        sizes = (len(self.paths), len(self.labels), len(self.attributes), len(self.splits))
        if len(set(sizes)) != 1:
            raise DataError(
                f"The list has {sizes[0]} pictures, {sizes[1]} labels, {sizes[2]} attributes and "
                f"{sizes[3]} splits.",
                "Give one of each for every picture.",
            )
        unknown = int((self.attributes == UNKNOWN).sum())
        if 0 < unknown < sizes[0]:
            raise DataError(
                f"{unknown:,} of {sizes[0]:,} pictures have no attribute, the others have one.",
                "Give every picture an attribute, or none.",
            )

    def at(self, positions: Sequence[int]) -> "Table":
        """Give some of the rows."""
        index = torch.as_tensor(positions, dtype=torch.int64)
        return Table(
            paths=tuple(self.paths[position] for position in positions),
            labels=self.labels[index],
            attributes=self.attributes[index],
            splits=tuple(self.splits[position] for position in positions),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table with names for its numbers, as read from some layout.

    Attributes:
        table: the files.
        classes: class names by label.
        attributes: attribute names by number; empty when none is recorded.
        root: the folder the files lie in.
        findings: what was recognised, one sentence each.
    """

    table: Table
    classes: tuple[str, ...]
    attributes: tuple[str, ...]
    root: Path
    findings: tuple[str, ...]


_SPLITS = {
    **dict.fromkeys(("train", "training", "tr"), TRAIN),
    **dict.fromkeys(("validation", "valid", "val", "va", "dev"), VALIDATION),
    **dict.fromkeys(("test", "testing", "te"), TEST),
}


def split_named(text: str) -> str | None:
    """Give the split that a word means, None when it means none.

    Words that begin with "test" and go on after a dash, dot or underscore are test sets of their
    own.

    >>> split_named("Valid"), split_named("tr"), split_named("test_water"), split_named("cat")
    ('validation', 'train', 'test_water', None)
    """
    word = text.strip().casefold()
    return _SPLITS.get(word) or (word if re.fullmatch(r"test[-_.].+", word) else None)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sort different names as text, which is torchvision's order, but numbers as numbers.

    >>> in_order(["10", "2"]), in_order(["b10", "b2", "B"])
    (('2', '10'), ('B', 'b10', 'b2'))
    """
    different = set(names)
    if all(re.fullmatch(r"-?[0-9]{1,18}", name) for name in different):
        return tuple(sorted(different, key=lambda name: (int(name), name)))
    return tuple(sorted(different))


def assemble(
    card: DatasetCard,
    table: Table,
    *,
    root: Path,
    frame: Frame | Callable[[Checked], Frame],
    seed: int,
    watcher: Watcher = unwatched,
    findings: Sequence[str] = (),
) -> DatasetBundle:
    """Check the files of a table and make a dataset of those that can be used.

    Nothing is moved or written: a missing validation or test part is made in memory, a fifth of
    each class's training pictures, chosen by ``seed``, and ``findings`` say so.

    Args:
        card: with the classes, and the attributes if there are any, by number; size and tests are
            set here, and attributes emptied when the table has none.
        table: the files.
        root: the dataset's folder, for the names of files left out.
        frame: what the model sees of each picture; a function chooses it knowing the sizes.
        seed: decides which pictures a part made here holds.
        watcher: told while the files are checked.
        findings: what was found out before, put first.

    Raises:
        DataError: no picture, more than half of them unusable, or none left of a class.
    """
    if not table.paths:
        raise DataError(f"{root} holds no pictures.", _layout(card))
    checked = usable(table.paths, root=root, watcher=watcher)
    kept = table.at(checked.kept)
    _refuse_ruins(card, table, kept=kept, skipped=checked.skipped, root=root)
    if TRAIN not in kept.splits:
        raise DataError(
            f"{root} has no training pictures, only {', '.join(sorted(set(kept.splits)))}.",
            "Put some of the pictures into the part 'train'.",
        )
    whole, made = _with_every_part(kept, seed=seed)
    chosen = frame if isinstance(frame, Frame) else frame(checked)
    tests = tuple(dict.fromkeys(s for s in whole.splits if s not in (TRAIN, VALIDATION)))
    parts = {name: _part(whole, name, frame=chosen) for name in (TRAIN, VALIDATION, *tests)}
    labelled = bool((whole.attributes != UNKNOWN).all())
    return DatasetBundle(
        card=replace(
            card,
            attributes=card.attributes if labelled else (),
            size=chosen.size,
            tests=tests,
        ),
        train=parts[TRAIN],
        validation=parts[VALIDATION],
        tests={name: parts[name] for name in tests},
        findings=(*findings, *made.values()),
        set_aside=made.get(VALIDATION, ""),
        skipped=checked.skipped,
    )


def _layout(card: DatasetCard) -> str:
    return f"Give the folder that holds: {card.layout}."


def _refuse_ruins(
    card: DatasetCard, table: Table, *, kept: Table, skipped: Sequence[Skipped], root: Path
) -> None:
    for name, names, values in (
        ("label", card.classes, table.labels),
        ("attribute", card.attributes, table.attributes[table.attributes != UNKNOWN]),
    ):
        if len(values) and not (int(values.min()) >= 0 and int(values.max()) < len(names)):
            raise DataError(
                f"A picture of {root} has {name} {int(values.max())} or {int(values.min())}, "
                f"but there are {len(names)} names for them.",
                f"Number every {name} from 0 to {len(names) - 1}.",
            )
    if 2 * len(skipped) > len(table.paths):
        raise DataError(
            f"{len(skipped):,} of {len(table.paths):,} pictures of {root} cannot be used: "
            f"{first_skipped(skipped)}.",
            "Unpack or download the dataset again, then load it again.",
        )
    for label, name in enumerate(card.classes):
        listed = int((table.labels == label).sum())
        if listed and not int((kept.labels == label).sum()):
            raise DataError(
                f"None of the {listed:,} pictures of '{name}' in {root} can be used: "
                f"{first_skipped(skipped)}.",
                "Replace the pictures of this class by ones that open in a picture viewer.",
            )


def _with_every_part(table: Table, *, seed: int) -> tuple[Table, dict[str, str]]:
    """Take what is missing of validation and test from training; say what, by part."""
    present = set(table.splits)
    missing = [] if present - {TRAIN, VALIDATION} else [TEST]
    missing += [] if VALIDATION in present else [VALIDATION]
    if not missing:
        return table, {}
    splits = list(table.splits)
    train = torch.tensor([split == TRAIN for split in splits])
    counts = dict.fromkeys(missing, 0)
    for label in range(int(table.labels.max()) + 1):
        positions = (train & (table.labels == label)).nonzero()[:, 0]
        order = torch.randperm(len(positions), generator=stream(seed, f"split/{label}"))
        left = positions[order].tolist()
        share = max(1, round(HELD * len(left)))
        for name in missing:
            taken = min(share, len(left) - 1)  # a class's last picture stays in training
            for position in left[: max(taken, 0)]:
                splits[position] = name
                counts[name] += 1
            left = left[max(taken, 0) :]
    if not all(counts.values()):
        name = next(name for name, count in counts.items() if not count)
        labels = table.labels[train].tolist()
        raise DataError(
            f"{len(labels):,} training pictures in {len(set(labels))} classes are too few to set a "
            f"{name} part aside.",
            f"Add pictures to every class, or give a {name} part of your own.",
        )
    return replace(table, splits=tuple(splits)), {
        name: f"There is no {name} part, so a fifth of each class, {count:,} training pictures, "
        "chosen by the seed, validate."
        if name == VALIDATION
        else f"There is no {name} part, so {count:,} training pictures, a fifth of each class "
        f"chosen by seed {seed}, serve as one; no file was moved."
        for name, count in counts.items()
    }


def _part(table: Table, name: str, *, frame: Frame) -> Split:
    rows = table.at([position for position, split in enumerate(table.splits) if split == name])
    return Split(
        name=name,
        images=FileImages(rows.paths, frame),
        labels=rows.labels,
        attributes=rows.attributes,
    )
