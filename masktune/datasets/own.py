"""A dataset of the user's own: folders, a CSV list, or a zip of either."""

import hashlib
from dataclasses import replace
from pathlib import Path

from masktune.data import csvs, folders
from masktune.data.archive import unpack
from masktune.data.card import DataSettings
from masktune.data.kept import tidy, used
from masktune.data.listing import SUFFIXES, Listing, refuse_missing
from masktune.errors import DataError
from masktune.files import home, is_file
from masktune.progress import Watcher, unwatched


def read(root: Path, _settings: DataSettings, watcher: Watcher) -> Listing:
    """Read a dataset of the user's own, whichever of the known layouts it is in.

    A zip is unpacked under ``home() / "uploads"``, once; nothing else is written.
    """
    if _is_zip(root):
        folder = _unpacked(root, watcher)
        if not any(path.is_file() for path in folder.rglob("*") if path.suffix != ".txt"):
            raise DataError(
                f"{root.name} holds no pictures.", f"Pack {folders.LAYOUT}, or a CSV list of them."
            )
        return replace(_found(folder), title=title(root))
    if is_file(root) and root.suffix.lower() not in (".csv", ".tsv", ".txt"):
        raise DataError(
            f"{root.name} is neither a folder nor a CSV or zip file.",
            "Give the folder with the pictures, a CSV file that lists them, or a zip.",
        )
    return replace(_found(root), title=title(root))


def pictures_of(root: Path, *, watcher: Watcher = unwatched) -> tuple[Path, list[Path]]:
    """List the pictures of a folder, however deep, of a zip, or one file; labels do not matter.

    Returns:
        The folder that they lie in, and their paths.

    Raises:
        DataError: there is nothing of the name, or no picture in it.
    """
    if _is_zip(root):
        folder = _unpacked(root, watcher)
    elif is_file(root):
        return root.parent, [root]
    else:
        refuse_missing(root)
        folder = root
    if not (found := folders.scanned(folder).every()):
        raise DataError(
            f"{root} holds no pictures.",
            f"Give one picture, or a folder or zip of them, such as {', '.join(SUFFIXES[:5])}.",
        )
    return folder, found


def _is_zip(root: Path) -> bool:
    return root.suffix.lower() == ".zip" and is_file(root)


def _unpacked(root: Path, watcher: Watcher) -> Path:
    folder = home() / "uploads" / _digest(root)
    unpack(root, into=folder, watcher=watcher)
    used(folder)
    tidy(folder.parent)
    return folder


def title(root: Path) -> str:
    """Return what people call the pictures: a list's name where it says more than "metadata"."""
    listed = is_file(root) and root.suffix.lower() != ".zip"
    generic = listed and root.stem.lower().startswith(("metadata", "labels"))
    place = root.absolute()
    return place.parent.name if generic else place.stem if is_file(root) else place.name


def _found(root: Path) -> Listing:
    root = root if is_file(root) else folders.innermost(root)
    try:
        found = csvs.find_csv(root)
        return folders.read_folders(root) if found is None else csvs.read_csv(found)
    except csvs.NoListError as error:
        if is_file(root):
            raise
        try:  # the list may be about something else, and the folders beside it a dataset
            listing = folders.read_folders(root)
        except DataError:
            raise error from None
        return replace(listing, findings=(*listing.findings, f"Not used: {error.problem}"))


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:24]
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}.", "Give a zip this account may read."
        ) from error
