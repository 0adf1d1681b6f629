"""Pictures sorted into folders: by class, by split and class, by class and attribute.

Read are torchvision's ImageFolder, with or without splits, SpuCo's ``split/class/attribute`` and
MetaShift's ``split/cat/cat(sofa)``.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from masktune.data.listing import (
    NO_GROUPS,
    SUFFIXES,
    TRAIN,
    Listing,
    Named,
    in_order,
    numbered,
    split_named,
)
from masktune.errors import DataError, shortened

DEEPEST = 8
"""Folders inside folders that are looked into."""

LAYOUT = (
    "one folder a class (ROOT/CLASS/picture.jpg), if you like inside train, val and test folders "
    "(ROOT/train/CLASS/...), and with one folder an attribute inside each class "
    "(ROOT/train/CLASS/ATTRIBUTE/...)"
)
_REMEDY = f"Give {LAYOUT}, or a CSV file with the columns filename and label beside the pictures."


@dataclass(slots=True)
class Folder:
    """A folder with what is directly in it; folders without a picture anywhere are left out."""

    path: Path
    pictures: list[Path] = field(default_factory=list)  # in order of their names
    inner: dict[str, "Folder"] = field(default_factory=dict)  # by name
    others: Counter[str] = field(default_factory=Counter)  # files of other kinds, by suffix

    def every(self) -> list[Path]:
        """Give all pictures inside, however deep."""
        return [*self.pictures, *(path for inner in self.inner.values() for path in inner.every())]


def is_junk(name: str) -> bool:
    """Tell files and folders that systems leave behind, and hidden ones.

    >>> [is_junk(name) for name in ("__MACOSX", "._a.jpg", "Thumbs.db", "cat")]
    [True, True, True, False]
    """
    return name.startswith(".") or name.casefold() in ("__macosx", "thumbs.db", "desktop.ini")


def innermost(root: Path) -> Path:
    """Go down through folders that hold one folder and nothing else, as unpacked zips often do.

    It stops where splits or pictures begin.
    """
    for _ in range(DEEPEST):
        entries = _entries(root)
        if len(entries) != 1 or not _is_folder(entries[0]) or split_named(entries[0].name):
            return root
        inside = _entries(Path(entries[0].path))
        if any(Path(entry.name).suffix.lower() in SUFFIXES for entry in inside):
            return root
        root = Path(entries[0].path)
    return root


def scanned(path: Path, *, above: frozenset[str] = frozenset(), depth: int = 0) -> Folder:
    """Look through a folder for pictures; nothing is opened."""
    found = Folder(path)
    here = above | {os.path.realpath(path)}
    for entry in _entries(path):
        suffix = Path(entry.name).suffix.lower()
        if not _is_folder(entry):
            if suffix in SUFFIXES:
                found.pictures.append(Path(entry.path))
            else:
                found.others[suffix or "no suffix"] += 1
            continue
        # A link to a folder above it would be walked round and round.
        if depth < DEEPEST and os.path.realpath(entry.path) not in here:
            inner = scanned(Path(entry.path), above=here, depth=depth + 1)
            if inner.pictures or inner.inner:
                found.inner[entry.name] = inner
    return found


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            visible = [entry for entry in entries if not is_junk(entry.name)]
    except OSError as error:
        raise DataError(
            f"The folder {path} cannot be read: {error.strerror}.",
            "Give this account the right to read it, or choose another folder.",
        ) from error
    return sorted(visible, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself: no folder, and the check of the files says what it is
        return False


def read_folders(root: Path) -> Listing:
    """Read pictures sorted into folders, whichever of the known layouts it is.

    Raises:
        DataError: the folders fit none of the layouts, or their classes do not fit together.
    """
    top = scanned(root)
    parts = _parts(top)
    if not top.inner:
        loose = "1 picture" if len(top.pictures) == 1 else f"{len(top.pictures):,} pictures"
        what = f"{loose} but no folders" if top.pictures else "no pictures"
        raise DataError(f"{root} holds {what}.", _REMEDY)
    homes = parts or {TRAIN: top}
    classes = _classes(homes, root=root)
    listing = numbered(
        _rows(homes, classes=classes),
        root=root,
        where=f"{root}, by the folders inside its classes,",
        remedy="Put the pictures straight into the class folders, or into few folders there.",
    )
    return replace(listing, findings=tuple(_findings(top, listing=listing, parts=parts)))


def _parts(top: Folder) -> dict[str, Folder]:
    """Give the folders of the splits by split, none when the folders are classes."""
    named = _named_splits(top)
    if TRAIN not in named.values():
        if named and len(named) == len(top.inner):
            raise DataError(
                f"Folder {top.path} has no 'train' folder; it holds {_quoted(named)}.",
                "Rename the folder with the training pictures to 'train', or give the folder above "
                "it.",
            )
        return {}
    parts: dict[str, Folder] = {}
    for name, split in named.items():
        if split in parts:
            raise DataError(
                f"Folders '{parts[split].path.name}' and '{name}' of {top.path} both mean the "
                f"{split} part.",
                "Keep one of them there and move the other elsewhere.",
            )
        parts[split] = _within(top.inner[name])
    return parts


def _named_splits(top: Folder) -> dict[str, str]:
    """Return what the folders mean; tr or dev only where all are splits or one is spelled out."""
    sure, all_words = (
        {name: s for name in top.inner if (s := split_named(name, short=short)) is not None}
        for short in (False, True)
    )
    return all_words if TRAIN in sure.values() or len(all_words) == len(top.inner) else sure


def _within(part: Folder) -> Folder:
    """Enter train/train, which unpacking train.zip often makes."""
    only = list(part.inner.values())
    same = len(only) == 1 and not part.pictures and only[0].path.name == part.path.name
    return only[0] if same else part


def _classes(parts: dict[str, Folder], *, root: Path) -> tuple[str, ...]:
    train = set(parts[TRAIN].inner)
    for split, folder in parts.items():
        if unseen := set(folder.inner) - train:
            raise DataError(
                f"Class {_quoted(in_order(unseen))} has pictures in the {split} part of {root} but "
                f"none in 'train', which holds {_quoted(in_order(train)) or 'no class'}.",
                "Name the class folders alike in every part, and give each class pictures in "
                "'train'.",
            )
    if len(train) < 2:
        raise DataError(
            f"{parts[TRAIN].path} holds pictures of one class only, {_quoted(train)}."
            if train
            else f"{parts[TRAIN].path} holds no class folders.",
            _REMEDY,
        )
    return in_order(train)


def _rows(parts: dict[str, Folder], *, classes: tuple[str, ...]) -> list[Named]:
    folders = [part.inner[name] for part in parts.values() for name in part.inner]
    grouped = all(folder.inner and not folder.pictures for folder in folders)
    rows: list[Named] = []
    for split, part in parts.items():
        for label in (name for name in classes if name in part.inner):
            folder = part.inner[label]
            if not grouped:
                rows += [(path, label, split, None) for path in folder.every()]
                continue
            for name in in_order(folder.inner):
                attribute = _attribute(name, label=label)
                rows += [(p, label, split, attribute) for p in folder.inner[name].every()]
    return rows


def _attribute(name: str, *, label: str) -> str:
    """Give the attribute a folder inside a class stands for: MetaShift writes cat/cat(sofa)."""
    both = re.fullmatch(r"(.+?) ?\((.+)\)", name)
    return both[2] if both and both[1].casefold() == label.casefold() else name


def _findings(top: Folder, *, listing: Listing, parts: dict[str, Folder]) -> Iterator[str]:
    classes, grouped = listing.classes or (), bool(listing.attributes)
    inside = " and, inside it, one an attribute" if grouped else ""
    where = ", in folders for the parts" if parts else ""
    yield f"Read as: one folder a class{inside}{where}{'' if grouped else NO_GROUPS}."
    yield f"Classes in order: {shortened(classes)}."
    if grouped:
        yield f"Attributes: {shortened(listing.attributes or ())}."
    if classes != tuple(sorted(classes)):
        yield (
            "Class folders named by numbers are in the order of the numbers; torchvision's "
            "ImageFolder puts '10' before '2', so a model trained with it counts them otherwise."
        )
    homes = list((parts or {TRAIN: top}).values())
    for split, part in parts.items():
        if absent := [name for name in classes if name not in part.inner]:
            yield f"The {split} part has no pictures of {shortened(absent)}."
    if parts and (extra := [name for name in top.inner if name not in _named_splits(top)]):
        yield f"Folders beside the parts are left out: {shortened(extra)}."
    if loose := [*top.pictures, *(p for f in homes if f is not top for p in f.pictures)]:
        lie = "1 picture lies" if len(loose) == 1 else f"{len(loose):,} pictures lie"
        left = "is" if len(loose) == 1 else "are"
        yield f"{lie} in no class folder and {left} left out ({loose[0].name})."
    if not grouped and any(part.inner[name].inner for part in homes for name in part.inner):
        yield "Folders inside some class folders are read as part of the class."
    if others := sum((_others(folder) for folder in homes), Counter[str]()):
        kinds = ", ".join(kind for kind, _ in others.most_common(3))
        yield f"{others.total():,} files that are no pictures are passed over ({kinds})."


def _others(folder: Folder) -> Counter[str]:
    return sum((_others(inner) for inner in folder.inner.values()), Counter(folder.others))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in list(names)[:10])
