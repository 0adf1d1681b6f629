"""Cats vs Dogs, in the layouts of Kaggle, Microsoft and the paper's code."""

import re
from pathlib import Path

import torch

from masktune.data.arrays import NO_ATTRIBUTE
from masktune.data.assemble import Table, assemble
from masktune.data.card import UNKNOWN, DatasetCard
from masktune.data.frame import Frame
from masktune.data.listing import first_folder, first_names, pictures_in
from masktune.data.types import DatasetBundle
from masktune.errors import DataError
from masktune.progress import Watcher

FRAME = Frame(resize=(64, 64))  # what the paper's ResNet-32 sees, according to its code
ANIMALS = ("cat", "dog")

CARD = DatasetCard(
    key="cats-vs-dogs",
    title="Cats vs Dogs",
    summary=(
        "Photographs of pets, for selective classification. Seen at 64 x 64 with pixels in [0, 1] "
        "and no normalisation, as in the paper's code."
    ),
    classes=ANIMALS,
    attributes=(),
    size=FRAME.size,
    tests=("test",),
    recipe="cats-vs-dogs-selective",
    bundled=False,
    layout=(
        "ROOT/raw or ROOT/train with cat.0.jpg, dog.0.jpg and so on, with lists of the test "
        "pictures in cat_idx.txt and dog_idx.txt if there are any; or ROOT/PetImages/Cat and Dog"
    ),
    source=(
        "Asirra, https://www.kaggle.com/c/dogs-vs-cats, or 'Kaggle Cats and Dogs Dataset' in "
        "Microsoft's download centre"
    ),
    licence="as stated by Kaggle and Microsoft",
)

_NAME = re.compile(r"(cat|dog)\.(\d+)\.jpe?g", re.IGNORECASE)


def load_cats_dogs(root: Path | None, seed: int, watcher: Watcher) -> DatasetBundle:
    """Read Cats vs Dogs; parts that are not given are made in memory and no file is moved.

    Args:
        root: a folder as the card says.
        seed: decides which pictures validate, and which test when no list says so.
        watcher: hears "check".
    """
    if root is None:
        raise DataError(
            "Cats vs Dogs cannot be downloaded from here.",
            "Get it from https://www.kaggle.com/c/dogs-vs-cats, unpack it and give its folder as "
            "--root.",
        )
    if root.is_file():
        raise DataError(f"{root} is a file.", "Unpack it and give the folder as --root.")
    table, layout = _find(root)
    return assemble(
        CARD,
        table,
        root=root,
        frame=FRAME,
        seed=seed,
        watcher=watcher,
        findings=(
            f"Read as: {layout}.",
            NO_ATTRIBUTE,
        ),
    )


def _find(root: Path) -> tuple[Table, str]:
    pets = first_folder((root / "PetImages", root), holding=("Cat",))
    if pets is not None:
        return _from_classes(pets), f"{pets.name}/Cat and {pets.name}/Dog"
    for folder in (root / "raw", root / "train", root):
        numbered = _numbered(folder) if folder.is_dir() else {}
        if numbered:
            tested = _listed(folder, root, numbered)
            table = _table(
                [
                    (path, ANIMALS.index(animal), "test" if (animal, n) in tested else "train")
                    for (animal, n), path in numbered.items()
                ]
            )
            lists = "test pictures from cat_idx.txt and dog_idx.txt" if tested else "no test lists"
            return table, f"{folder / 'cat.N.jpg'} and dog.N.jpg, {lists}"
    raise DataError(
        f"{root} holds no Cats vs Dogs: neither {root / 'raw' / 'cat.0.jpg'} nor "
        f"{root / 'train' / 'cat.0.jpg'} nor {root / 'PetImages' / 'Cat'} exists; it holds "
        f"{first_names(root)}.",
        "Give the folder that holds raw, train or PetImages.",
    )


def _from_classes(pets: Path) -> Table:
    if not (pets / "Dog").is_dir():
        raise DataError(f"The folder {pets / 'Dog'} is missing.", "Unpack the archive again.")
    return _table(
        [
            (path, label, "train")
            for label, name in enumerate(("Cat", "Dog"))
            for path in sorted(pictures_in(pets / name), key=_natural)
        ]
    )


def _natural(path: Path) -> tuple[int, str]:
    return (int(path.stem) if path.stem.isdecimal() else -1, path.name)


def _numbered(folder: Path) -> dict[tuple[str, int], Path]:
    """Give the pictures by animal and number, in that order."""
    found = {}
    for path in folder.iterdir():
        if (match := _NAME.fullmatch(path.name)) is not None:
            found[match[1].lower(), int(match[2])] = path
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


def _table(rows: list[tuple[Path, int, str]]) -> Table:
    return Table(
        paths=tuple(path for path, _, _ in rows),
        labels=torch.tensor([label for _, label, _ in rows], dtype=torch.int64),
        attributes=torch.full((len(rows),), UNKNOWN),
        splits=tuple(split for _, _, split in rows),
    )
