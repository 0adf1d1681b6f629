"""CelebA: blond hair, which goes with being a woman, in every layout it is shared in."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from masktune.data.assemble import Table, assemble
from masktune.data.card import DatasetCard
from masktune.data.frame import Frame
from masktune.data.listing import (
    Cells,
    first_folder,
    first_names,
    inside,
    read_celeba_text,
    read_csv,
    require,
)
from masktune.data.normalisations import NORMALISATIONS
from masktune.data.types import DatasetBundle
from masktune.errors import DataError
from masktune.progress import Watcher

FRAME = Frame(cut=178, resize=(224, 224))
SPLITS = ("train", "validation", "test")
PICTURES = "img_align_celeba"

PUBLISHED = {
    "train": (71629, 66874, 22880, 1387),
    "validation": (8535, 8276, 2874, 182),
    "test": (9767, 7535, 2480, 180),
}
"""Pictures of the release by group 2 * blond + man."""

CARD = DatasetCard(
    key="celeba",
    title="CelebA, hair colour",
    summary=(
        "Portraits of well-known people: is the hair blond? In training only 6% of the blond "
        "people are men, so the face gives the hair away."
    ),
    classes=("not blond", "blond"),
    attributes=("woman", "man"),
    size=FRAME.size,
    tests=("test",),
    recipe="celeba",
    bundled=False,
    layout=(
        "ROOT/list_attr_celeba.csv and ROOT/list_eval_partition.csv (or both as .txt), and the "
        f"pictures in ROOT/{PICTURES} (also in ROOT/celebA/data, ROOT/celebA_v1.0 or ROOT/celeba, "
        f"and {PICTURES}/{PICTURES}); or ROOT/metadata.csv with the columns img_filename, y, "
        "split and place"
    ),
    source="Liu et al. 2015, https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
    licence="non-commercial research (as stated)",
    mean=NORMALISATIONS["imagenet"][0],
    std=NORMALISATIONS["imagenet"][1],
)

_NESTED = ("celebA/data", "celebA_v1.0", "celeba", "celebA", "CelebA", "data")


def load_celeba(root: Path | None, seed: int, watcher: Watcher) -> DatasetBundle:
    """Read CelebA with blond hair as the label and being a man as the attribute.

    Args:
        root: a folder as the card says.
        seed: not used when all three parts are there.
        watcher: hears "check".
    """
    if root is None:
        raise DataError(
            "CelebA cannot be downloaded from here.",
            "Get it by the links in https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html, unpack it "
            "and give its folder as --root.",
        )
    folders = [root, *(root / name for name in _NESTED)]
    table, layout = _find(root, folders)
    return assemble(
        CARD,
        table,
        root=root,
        frame=FRAME,
        seed=seed,
        watcher=watcher,
        findings=(f"Read as: {layout}.", release_of(table)),
    )


def release_of(table: Table) -> str:
    """Say in a sentence whether this is the whole release or a part of it."""
    groups = (2 * table.labels + table.attributes).tolist()
    tally = Counter(zip(table.splits, groups, strict=True))
    counts = {split: tuple(tally[split, group] for group in range(4)) for split in SPLITS}
    total = sum(map(sum, PUBLISHED.values()))
    if counts == PUBLISHED:
        return (
            f"This is the whole release, {total:,} pictures in the published parts of 162,770, "
            "19,867 and 19,962."
        )
    if all(
        mine <= theirs
        for split in SPLITS
        for mine, theirs in zip(counts[split], PUBLISHED[split], strict=True)
    ):
        return f"This is a subset of the release: {len(table.paths):,} of {total:,} pictures."
    return (
        f"The groups are not those of the release: {len(table.paths):,} pictures where it has "
        f"{total:,}."
    )


def _find(root: Path, folders: Sequence[Path]) -> tuple[Table, str]:
    if root.is_file():
        raise DataError(f"{root} is a file.", "Unpack it and give the folder as --root.")
    for suffix, read in ((".csv", read_csv), (".txt", read_celeba_text)):
        name = f"list_attr_celeba{suffix}"
        folder = first_folder(folders, holding=(name, f"Anno/{name}"))
        if folder is not None:
            attributes = read(_one_of(folder, "Anno", name), ("image_id", "Blond_Hair", "Male"))
            partition = _partition(folder)
            table = _joined(attributes, partition, _pictures_of(folder))
            return table, f"{name} and {partition.path.name}"
    folder = first_folder(folders, holding=("metadata.csv",))
    if folder is not None:
        return _from_metadata(folder / "metadata.csv", folder), "metadata.csv as in DFR"
    raise DataError(
        f"{root} holds no CelebA: neither {root / 'list_attr_celeba.csv'} nor "
        f"{root / 'list_attr_celeba.txt'} nor {root / 'metadata.csv'} exists; it holds "
        f"{first_names(root)}.",
        "Give the folder that holds list_attr_celeba.csv.",
    )


def _one_of(folder: Path, nested: str, name: str) -> Path:
    """Give the path of a file that lies in ``folder`` or one below, as on CelebA's own pages."""
    return folder / nested / name if (folder / nested / name).is_file() else folder / name


def _partition(folder: Path) -> Cells:
    table = _one_of(folder, "Eval", "list_eval_partition.csv")
    if table.is_file():
        return read_csv(table, ("image_id", "partition"))
    text = _one_of(folder, "Eval", "list_eval_partition.txt")
    if not text.is_file():
        raise DataError(
            f"CelebA needs {table} or {text}, and neither exists.",
            "Put one of them beside the list of attributes.",
        )
    rows = [tuple(line.split()) for line in text.read_text("utf-8-sig").splitlines()]
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise DataError(
                f"Row {number} of {text} has {len(row)} cells, not 2.", "Download it again."
            )
    return Cells(path=text, rows=rows, first=1)


def _pictures_of(folder: Path) -> Path:
    """Give the folder of the pictures; unpacked zips often have it twice."""
    candidates = [folder / PICTURES, folder / "Img" / PICTURES]
    for place in candidates:
        if (place / PICTURES).is_dir():
            return place / PICTURES
        if place.is_dir():
            return place
    packed = next((z for z in folder.rglob(f"{PICTURES}*.zip") if z.is_file()), None)
    if packed is not None:
        raise DataError(
            f"The pictures are still packed in {packed}.",
            f"Unpack {packed.name} so that {folder / PICTURES} holds them.",
        )
    raise DataError(
        f"The folder of the pictures, {folder / PICTURES}, does not exist.",
        f"Unpack {PICTURES}.zip there.",
    )


def _joined(attributes: Cells, partition: Cells, pictures: Path) -> Table:
    """Join both tables on the picture's name: their rows need not be in the same order."""
    parts = partition.numbers(1, name="partition", allowed=(0, 1, 2))
    split_of = dict(zip(partition.texts(0), parts, strict=True))
    names = attributes.texts(0)
    if absent := [name for name in names if name not in split_of]:
        raise DataError(
            f"{len(absent):,} pictures of {attributes.path} have no row in {partition.path}, "
            f"first {absent[0]}.",
            "Download both files again.",
        )
    blond, man = (
        [int(value == 1) for value in attributes.numbers(column, name=name, allowed=(-1, 0, 1))]
        for column, name in ((1, "Blond_Hair"), (2, "Male"))
    )
    paths = inside(pictures, names, listed_in=attributes.path)
    require(paths, listed_in=attributes.path)
    return Table(
        paths=paths,
        labels=torch.tensor(blond),
        attributes=torch.tensor(man),
        splits=tuple(SPLITS[split_of[name]] for name in names),
    )


def _from_metadata(path: Path, folder: Path) -> Table:
    cells = read_csv(path, ("img_filename", "y", "split", "place"))
    names = cells.texts(0)
    direct = (folder / names[0]).is_file()
    paths = inside(folder if direct else _pictures_of(folder), names, listed_in=path)
    splits = cells.numbers(2, name="split", allowed=(0, 1, 2))
    require(paths, listed_in=path)
    return Table(
        paths=paths,
        labels=torch.tensor(cells.numbers(1, name="y", allowed=(0, 1))),
        attributes=torch.tensor(cells.numbers(3, name="place", allowed=(0, 1))),
        splits=tuple(SPLITS[split] for split in splits),
    )
