"""Waterbirds: birds cut out and put before land or water, in every layout it is shared in."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from masktune.data.assemble import Table, assemble
from masktune.data.card import UNKNOWN, DatasetCard
from masktune.data.frame import Frame
from masktune.data.listing import (
    first_folder,
    first_names,
    inside,
    pictures_in,
    read_csv,
    require,
)
from masktune.data.normalisations import NORMALISATIONS
from masktune.data.types import DatasetBundle
from masktune.errors import DataError
from masktune.progress import Watcher

FRAME = Frame(resize=(256, 256), crop=(224, 224))
RELEASE = "waterbird_complete95_forest2water2"
SPLITS = ("train", "validation", "test")

ORIGINAL = {
    "train": (3498, 184, 56, 1057),
    "validation": (467, 466, 133, 133),
    "test": (2255, 2255, 642, 642),
}
"""Pictures of the original release by group 2 * label + place."""

MISLABELLED = ("eastern_towhee", "western_meadowlark", "western_wood_pewee")
"""Land birds that the original release calls waterbirds, as its authors say themselves."""

CARD = DatasetCard(
    key="waterbirds",
    title="Waterbirds",
    summary=(
        "Photographs of birds before another background. In training 95% of the waterbirds are "
        "before water and 95% of the landbirds before land; in the test set half of each are."
    ),
    classes=("landbird", "waterbird"),
    attributes=("land", "water"),
    size=FRAME.size,
    tests=("test",),
    recipe="waterbirds",
    bundled=False,
    layout=(
        "ROOT/metadata.csv with the columns img_filename, y, split and place, the pictures beside "
        f"it (also in ROOT/{RELEASE} or ROOT/waterbirds_v1.0); or ROOT/metadata_waterbirds.csv "
        "with filename, split, y and a; or ROOT/images/train, val and test with folders 0 and 1, "
        "as the corrected release has them"
    ),
    source=(
        "Sagawa et al. 2020, https://github.com/kohpangwei/group_DRO; corrected release: "
        "https://github.com/aliasgharkhani/Masktune"
    ),
    licence="research use (pictures of CUB-200-2011 and Places)",
    mean=NORMALISATIONS["imagenet"][0],
    std=NORMALISATIONS["imagenet"][1],
)


@dataclass(frozen=True, slots=True)
class _Found:
    table: Table
    layout: str


def load_waterbirds(root: Path | None, seed: int, watcher: Watcher) -> DatasetBundle:
    """Read Waterbirds and say which release it is.

    Args:
        root: a folder as the card says.
        seed: not used when all three parts are there.
        watcher: hears "check".
    """
    if root is None:
        raise DataError(
            "Waterbirds cannot be downloaded from here.",
            "Get waterbird_complete95_forest2water2.tar.gz by the link in "
            "https://github.com/kohpangwei/group_DRO, unpack it and give its folder as --root.",
        )
    found = _find(root)
    return assemble(
        CARD,
        found.table,
        root=root,
        frame=FRAME,
        seed=seed,
        watcher=watcher,
        findings=(f"Read as: {found.layout}.", release_of(found.table)),
    )


def release_of(table: Table) -> str:
    """Say in a sentence whether this is the original release, the corrected one or a part."""
    counts = _counts(table)
    total = sum(sum(groups) for groups in ORIGINAL.values())
    here = len(table.paths)
    share = f"{here:,} of {total:,} pictures"
    labels = {
        label
        for path, label in zip(table.paths, table.labels.tolist(), strict=True)
        if path.name.lower().startswith(MISLABELLED)
    }
    if labels == {0}:
        return (
            f"This is the corrected release, {here:,} pictures, with the towhees, meadowlarks and "
            "pewees as landbirds. Do not compare it with numbers for the original one."
        )
    if labels == {0, 1}:
        return (
            "Some towhees, meadowlarks and pewees are landbirds and some waterbirds here: this "
            "is neither the original nor the corrected release."
        )
    if counts == ORIGINAL:
        return f"This is the original release, all {total:,} pictures."
    if counts is None:
        within = here < total
    else:
        within = all(
            mine <= theirs
            for split, groups in counts.items()
            for mine, theirs in zip(groups, ORIGINAL[split], strict=True)
        )
    if not within:
        return (
            f"The groups are larger than in the original release: {here:,} pictures, not {total:,}."
        )
    if labels == {1}:
        return f"This is a subset of the original release: {share}."
    return (
        f"This is a subset of a release, {share}; without any towhee, meadowlark or pewee the "
        "original and the corrected labels look the same."
    )


def _counts(table: Table) -> dict[str, tuple[int, ...]] | None:
    """Count each split's pictures by group; None without places."""
    if bool((table.attributes == UNKNOWN).any()):
        return None
    groups = (2 * table.labels + table.attributes).tolist()
    tally = Counter(zip(table.splits, groups, strict=True))
    return {split: tuple(tally[split, group] for group in range(4)) for split in SPLITS}


def _find(root: Path) -> _Found:
    if root.is_file():
        raise DataError(f"{root} is a file.", "Unpack it and give the folder as --root.")
    folders = [root, *(root / name for name in _NESTED)]
    corrected = first_folder(folders, holding=("images/train",))
    if corrected is not None:
        return _from_folders(corrected)
    folder = first_folder(folders, holding=("metadata.csv",))
    if folder is not None:
        columns = ("img_filename", "y", "split", "place")
        layout = "metadata.csv as in group_DRO and WILDS"
        return _from_csv(folder / "metadata.csv", folder, columns, layout)
    listed = first_folder(folders, holding=("metadata_waterbirds.csv",))
    if listed is not None:
        pictures = first_folder((listed / "waterbirds" / RELEASE, listed / RELEASE), holding=(".",))
        columns = ("filename", "y", "split", "a")
        layout = "metadata_waterbirds.csv as in BalancingGroups and SubpopBench"
        return _from_csv(listed / "metadata_waterbirds.csv", pictures or listed, columns, layout)
    raise DataError(
        f"{root} holds no Waterbirds: neither {root / 'metadata.csv'} nor "
        f"{root / 'metadata_waterbirds.csv'} nor {root / 'images' / 'train'} exists; it holds "
        f"{first_names(root)}.",
        f"Give the folder that holds metadata.csv, usually {RELEASE} or waterbirds_v1.0.",
    )


_NESTED = (RELEASE, "waterbirds_v1.0", f"cub/data/{RELEASE}", "waterbirds", f"waterbirds/{RELEASE}")


def _from_csv(path: Path, folder: Path, columns: Sequence[str], layout: str) -> _Found:
    cells = read_csv(path, columns)
    paths = inside(folder, cells.texts(0), listed_in=path)
    table = Table(
        paths=paths,
        labels=torch.tensor(cells.numbers(1, name=columns[1], allowed=(0, 1))),
        attributes=torch.tensor(cells.numbers(3, name=columns[3], allowed=(0, 1))),
        splits=tuple(SPLITS[n] for n in cells.numbers(2, name=columns[2], allowed=(0, 1, 2))),
    )
    require(paths, listed_in=path)
    return _Found(table, layout)


def _from_folders(root: Path) -> _Found:
    """Read images/{train,val,test}/{0,1}; the folder is the label, whatever a table says."""
    rows: list[tuple[Path, int, str]] = []
    for folder, split in zip(("train", "val", "test"), SPLITS, strict=True):
        for label in (0, 1):
            place = root / "images" / folder / str(label)
            if not place.is_dir():
                raise DataError(
                    f"The corrected layout lacks the folder {place}.",
                    "Unpack the whole release again.",
                )
            rows += [(path, label, split) for path in pictures_in(place)]
    places = _places(root / "metadata.csv", [path for path, _, _ in rows])
    table = Table(
        paths=tuple(path for path, _, _ in rows),
        labels=torch.tensor([label for _, label, _ in rows], dtype=torch.int64),
        attributes=torch.tensor(places, dtype=torch.int64),
        splits=tuple(split for _, _, split in rows),
    )
    known = bool(rows) and UNKNOWN not in places
    return _Found(
        table,
        "images/{train,val,test}/{0,1} as in the corrected release, "
        + (
            "places from metadata.csv"
            if known
            else "without places, so the worst class stands in for the worst group"
        ),
    )


def _places(path: Path, pictures: Sequence[Path]) -> list[int]:
    """Look up each picture's place by its base name; unknown when there is no table."""
    if not path.is_file():
        return [UNKNOWN] * len(pictures)
    cells = read_csv(path, ("img_filename", "place"))
    names = [name.rsplit("/", 1)[-1] for name in cells.texts(0)]
    known = dict(zip(names, cells.numbers(1, name="place", allowed=(0, 1)), strict=True))
    if absent := [picture for picture in pictures if picture.name not in known]:
        raise DataError(
            f"{len(absent):,} of {len(pictures):,} pictures have no row in {path}, first "
            f"{absent[0]}.",
            "Add their rows, or rename metadata.csv to go on without places.",
        )
    return [known[picture.name] for picture in pictures]
