"""CelebA: blond hair, which goes with being a woman, in every layout it is shared in."""

from collections.abc import Sequence
from pathlib import Path

from masktune.data.card import DataSettings
from masktune.data.frame import Frame
from masktune.data.listing import (
    PARTS,
    Listing,
    Row,
    compared,
    first_folder,
    first_names,
    grouped,
    require,
)
from masktune.data.table import Sheet, read_sheet, read_spaced
from masktune.errors import DataError
from masktune.progress import Watcher

FRAME = Frame(cut=178, resize=(224, 224))
PICTURES = "img_align_celeba"

PUBLISHED = {
    "train": (71629, 66874, 22880, 1387),
    "validation": (8535, 8276, 2874, 182),
    "test": (9767, 7535, 2480, 180),
}
"""Pictures of the release by group 2 * blond + man."""

_NESTED = ("celebA/data", "celebA_v1.0", "celeba", "celebA", "CelebA", "data")


def read(root: Path, _settings: DataSettings, _watcher: Watcher) -> Listing:
    """Read CelebA with blond hair as the label and being a man as the attribute."""
    rows, layout = _find(root, [root, *(root / name for name in _NESTED)])
    return Listing(rows=rows, findings=(f"Read as: {layout}.", release_of(rows)), frame=FRAME)


def release_of(rows: Sequence[Row]) -> str:
    """Say in a sentence whether this is the whole release or a part of it."""
    total, found = sum(map(sum, PUBLISHED.values())), compared(rows, PUBLISHED)
    if found == "whole":
        return (
            f"This is the whole release, {total:,} pictures in the published parts of 162,770, "
            "19,867 and 19,962."
        )
    if found == "part":
        return f"This is a subset of the release: {len(rows):,} of {total:,} pictures."
    return (
        f"The groups are not those of the release: {len(rows):,} pictures where it has {total:,}."
    )


def _find(root: Path, folders: Sequence[Path]) -> tuple[tuple[Row, ...], str]:
    for name in ("list_attr_celeba.csv", "list_attr_celeba.txt"):
        folder = first_folder(folders, holding=(name, f"Anno/{name}"))
        if folder is not None:
            attributes = _sheet(_one_of(folder, "Anno", name))
            partition = _partition(folder)
            rows = _joined(attributes, partition, _pictures_of(folder))
            return rows, f"{name} and {partition.path.name}"
    if (held := first_folder(folders, holding=("metadata.csv",))) is not None:
        rows = grouped(
            held / "metadata.csv",
            ("img_filename", "y", "split", "place"),
            folder=lambda first: held if (held / first).is_file() else _pictures_of(held),
        )
        return rows, "metadata.csv as in DFR"
    raise DataError(
        f"{root} holds no CelebA: neither {root / 'list_attr_celeba.csv'} nor "
        f"{root / 'list_attr_celeba.txt'} nor {root / 'metadata.csv'} exists; it holds "
        f"{first_names(root)}.",
        "Give the folder that holds list_attr_celeba.csv.",
    )


def _one_of(folder: Path, nested: str, name: str) -> Path:
    """Give the path of a file that lies in ``folder`` or one below, as on CelebA's own pages."""
    return folder / nested / name if (folder / nested / name).is_file() else folder / name


def _sheet(path: Path, *, header: tuple[str, ...] = ()) -> Sheet:
    if path.suffix == ".csv":
        return read_sheet(path, known=("image_id", *header))
    return read_spaced(path, header=header)


def _partition(folder: Path) -> Sheet:
    files = [_one_of(folder, "Eval", f"list_eval_partition.{kind}") for kind in ("csv", "txt")]
    for path in files:
        if path.is_file():
            return _sheet(path, header=("image_id", "partition"))
    raise DataError(
        f"CelebA needs {files[0]} or {files[1]}, and neither exists.",
        "Put one of them beside the list of attributes.",
    )


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


def _joined(attributes: Sheet, partition: Sheet, pictures: Path) -> tuple[Row, ...]:
    """Join both tables on the picture's name: their rows need not be in the same order."""
    parts = partition.numbers("partition", allowed=(0, 1, 2))
    split_of = dict(zip(partition.values("image_id", str), parts, strict=True))
    names = attributes.files("image_id")
    if absent := [name for name in names if name not in split_of]:
        raise DataError(
            f"{len(absent):,} pictures of {attributes.path} have no row in {partition.path}, "
            f"first {absent[0]}.",
            "Download both files again.",
        )
    blond, man = (
        [int(n == 1) for n in attributes.numbers(name, allowed=(-1, 0, 1))]
        for name in ("Blond_Hair", "Male")
    )
    paths = [pictures / name for name in names]
    require(paths, listed_in=attributes.path)
    return tuple(map(Row, paths, blond, (PARTS[split_of[name]] for name in names), man))
