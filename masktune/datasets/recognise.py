"""Which datasets of the catalogue a folder of pictures may be."""

from pathlib import Path

from masktune.datasets.catalogue import CATALOGUE
from masktune.files import is_there

HEAD = 4096
"""Bytes of a list in which its column names stand."""


def recognised(root: Path) -> tuple[str, ...]:
    """Return the keys of the datasets that a folder holds by its look; mostly none.

    A mark of a card is names with blanks between: files or folders that must be there, after a
    dash those that must not, and after a colon a word that the first lines of the file hold. One
    mark is enough. Nothing is read but these lines.
    """
    return tuple(
        card.key for card in CATALOGUE.values() if any(_holds(root, mark) for mark in card.marks)
    )


def _holds(root: Path, mark: str) -> bool:
    return all(
        not _there(root, name[1:]) if name.startswith("-") else _there(root, name)
        for name in mark.split()
    )


def _there(root: Path, name: str) -> bool:
    name, _, word = name.partition(":")
    if not word:
        return is_there(root / name)
    try:
        with (root / name).open("rb") as file:
            return word.encode() in file.read(HEAD)
    except (OSError, ValueError):  # not there, or no name for a file
        return False
