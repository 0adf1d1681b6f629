"""A dataset of the user's own: folders, a CSV list, or a zip of either."""

import hashlib
from dataclasses import replace
from pathlib import Path

from masktune.data import csvs, folders
from masktune.data.archive import unpack
from masktune.data.assemble import Listing, assemble
from masktune.data.card import DatasetCard
from masktune.data.check import Checked
from masktune.data.frame import Frame
from masktune.data.normalisations import NORMALISATIONS
from masktune.data.types import DatasetBundle
from masktune.errors import DataError
from masktune.files import home
from masktune.progress import Watcher, unwatched

SMALL = 64
"""Pictures that are all of one size up to this many pixels a side are seen as they are."""

_MEAN, _STD = NORMALISATIONS["imagenet"]

CARD = DatasetCard(
    key="folder",
    title="My pictures",
    summary=(
        "Pictures of your own, sorted into folders, listed in a CSV file, or a zip of either. "
        "With an attribute there are groups; without one every step still works."
    ),
    classes=(),
    attributes=(),
    size=(224, 224),
    tests=("test",),
    recipe="own",
    bundled=False,
    layout=f"{folders.LAYOUT}; or {csvs.LAYOUT}; or a zip of either",
    source="you",
    licence="yours",
    mean=_MEAN,
    std=_STD,
)


def load_own(root: Path | None, seed: int, watcher: Watcher = unwatched) -> DatasetBundle:
    """Read a dataset of the user's own, whichever of the known layouts it is in.

    A zip is unpacked under ``home() / "uploads"``, once; nothing else is written.

    Args:
        root: a folder, a CSV file or a zip file.
        seed: decides the parts that are not given.
        watcher: told while a zip is unpacked and files are checked.
    """
    if root is None:
        raise DataError("Your own pictures need a place.", "Give --root with a folder or a zip.")
    listing = _listed(root, watcher)
    bundle = assemble(
        replace(CARD, classes=listing.classes, attributes=listing.attributes),
        listing.table,
        root=listing.root,
        frame=_frame,
        seed=seed,
        watcher=watcher,
        findings=listing.findings,
    )
    height, width = bundle.card.size
    if bundle.card.size == CARD.size:
        return bundle
    seen = f"Every picture is {width} x {height} pixels and is seen so, unless a frame is set."
    return replace(bundle, findings=(*bundle.findings, seen))


def _listed(root: Path, watcher: Watcher) -> Listing:
    if not root.exists():
        raise DataError(f"{root} does not exist.", f"Give a place that holds: {CARD.layout}.")
    if root.suffix.lower() == ".zip" and root.is_file():
        folder = unpack(root, into=home() / "uploads" / _digest(root), watcher=watcher)
        return _read(folder)
    if root.is_file() and root.suffix.lower() not in (".csv", ".tsv", ".txt"):
        raise DataError(
            f"{root.name} is neither a folder nor a CSV or zip file.",
            "Give the folder with the pictures, a CSV file that lists them, or a zip.",
        )
    return _read(root)


def _read(root: Path) -> Listing:
    root = root if root.is_file() else folders.innermost(root)
    try:
        found = csvs.find_csv(root)
        if found is None:
            return folders.read_folders(root)
        return csvs.read_csv(found)
    except csvs.NoListError as error:
        listing = _in_folders(root)
        if listing is None:
            raise
        return replace(listing, findings=(*listing.findings, f"Not used: {error.problem}"))


def _in_folders(root: Path) -> Listing | None:
    """Read the folders beside a CSV file that is about something else, if they are a dataset."""
    if root.is_file():
        return None
    try:
        return folders.read_folders(root)
    except DataError:
        return None


def _frame(checked: Checked) -> Frame:
    if len(checked.sizes) == 1:
        (size,) = checked.sizes
        if max(size) <= SMALL:
            return Frame(resize=size)
    return Frame(resize=CARD.size)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:24]
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}.", "Give a zip this account may read."
        ) from error
