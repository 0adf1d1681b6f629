"""Cats vs Dogs, in the layouts of Kaggle, Microsoft and the paper's code."""

import re
from pathlib import Path

from masktune.data.card import DataSettings
from masktune.data.frame import Frame
from masktune.data.listing import (
    NO_ATTRIBUTE,
    TEST,
    TRAIN,
    Listing,
    Row,
    first_folder,
    first_names,
    pictures_in,
)
from masktune.errors import DataError
from masktune.progress import Watcher

FRAME = Frame(resize=(64, 64))  # what the paper's ResNet-32 sees, according to its code
ANIMALS = ("cat", "dog")

_NAME = re.compile(r"(cat|dog)\.(\d+)\.jpe?g", re.IGNORECASE)


def read(root: Path, _settings: DataSettings, _watcher: Watcher) -> Listing:
    """Read Cats vs Dogs; which pictures test is taken from the lists where there are any."""
    rows, layout = _find(root)
    return Listing(rows=tuple(rows), findings=(f"Read as: {layout}.", NO_ATTRIBUTE), frame=FRAME)


def _find(root: Path) -> tuple[list[Row], str]:
    if (pets := first_folder((root / "PetImages", root), holding=("Cat",))) is not None:
        if not (pets / "Dog").is_dir():
            raise DataError(f"The folder {pets / 'Dog'} is missing.", "Unpack the archive again.")
        rows = [
            Row(path, label)
            for label, name in enumerate(("Cat", "Dog"))
            for path in sorted(pictures_in(pets / name), key=_natural)
        ]
        return rows, f"{pets.name}/Cat and {pets.name}/Dog"
    for folder in (root / "raw", root / "train", root):
        numbered = _numbered(folder) if folder.is_dir() else {}
        if numbered:
            tested = _listed(folder, root, numbered)
            rows = [
                Row(path, ANIMALS.index(animal), TEST if (animal, n) in tested else TRAIN)
                for (animal, n), path in numbered.items()
            ]
            lists = "test pictures from cat_idx.txt and dog_idx.txt" if tested else "no test lists"
            return rows, f"{folder / 'cat.N.jpg'} and dog.N.jpg, {lists}"
    raise DataError(
        f"{root} holds no Cats vs Dogs: neither {root / 'raw' / 'cat.0.jpg'} nor "
        f"{root / 'train' / 'cat.0.jpg'} nor {root / 'PetImages' / 'Cat'} exists; it holds "
        f"{first_names(root)}.",
        "Give the folder that holds raw, train or PetImages.",
    )


def _natural(path: Path) -> tuple[int, str]:
    return (int(path.stem) if path.stem.isdecimal() else -1, path.name)


def _numbered(folder: Path) -> dict[tuple[str, int], Path]:
    """Give the pictures by animal and number, in that order."""
    named = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    found = {(name[1].lower(), int(name[2])): path for name, path in named if name is not None}
    return dict(sorted(found.items()))


def _listed(
    folder: Path, root: Path, numbered: dict[tuple[str, int], Path]
) -> set[tuple[str, int]]:
    """Read the lists of test pictures, lines such as "12.jpg" or "12"; none when there are none."""
    held = first_folder((folder, root, root / "raw"), holding=[f"{a}_idx.txt" for a in ANIMALS])
    if held is None:
        return set()
    tested: set[tuple[str, int]] = set()
    for animal in ANIMALS:
        path = held / f"{animal}_idx.txt"
        if not path.is_file():
            raise DataError(f"The list {path} is missing.", "Give both lists or neither.")
        for row, line in enumerate(path.read_text("utf-8-sig").split(), 1):
            number = line.split(".")[0]
            if not number.isdecimal() or (animal, int(number)) not in numbered:
                raise DataError(
                    f"Row {row} of {path} is '{line}', but there is no "
                    f"{folder / f'{animal}.{line}'}.",
                    "Put the picture back, or take the row out of the list.",
                )
            tested.add((animal, int(number)))
    return tested
