"""Tell whether a dataset is still the one that a run saw, or its folder the one read before."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from masktune.data.images import TensorImages
from masktune.data.types import DatasetBundle

VERSION = "2:"
"""What a fingerprint begins with; those without it are of runs up to version 0.1.0."""

_LISTS = (".csv", ".tsv", ".txt", ".json")  # files whose content is read as text
_MOST = 16  # roots remembered

Noted = tuple[str, tuple[int, int]]
_noted: dict[Path, tuple[Noted, ...]] = {}


def fingerprint(bundle: DatasetBundle) -> str:
    """Return a text that differs when a picture was added, removed, renamed or labelled anew.

    Heat and predictions are kept by position, so any of these would pair them with other pictures.
    Of the files' names the beginning that all have in common does not count: the dataset may move
    as a whole. Of pictures in memory the pixels count, of files only the names.
    """
    return VERSION + _digest(bundle, pixels=True)


def is_of(bundle: DatasetBundle, known: object) -> bool:
    """Tell whether ``known``, as some version kept it, is the fingerprint of a dataset."""
    if isinstance(known, str) and known.startswith(VERSION):
        return known == fingerprint(bundle)
    return known == _digest(bundle, pixels=False)


def _digest(bundle: DatasetBundle, *, pixels: bool) -> str:
    splits = (bundle.train, bundle.validation, *bundle.tests.values())
    files = [list(map(str, split.images.files)) for split in splits]
    every = [file for part in files for file in part]
    above = len(os.path.commonprefix(every))  # noqa: RUF071 (a list may mix absolute and relative)
    digest = hashlib.sha256(repr((bundle.card.classes, bundle.card.attributes)).encode())
    for split, part in zip(splits, files, strict=True):
        names = [file[above:] for file in part]
        digest.update(repr((split.name, len(split), names)).encode())
        digest.update(split.labels.numpy().tobytes())
        digest.update(split.attributes.numpy().tobytes())
        if pixels and isinstance(split.images, TensorImages):
            digest.update(split.images.pixels.contiguous().numpy().data)
    return digest.hexdigest()[:32]


def stamp(root: Path) -> str:
    """Return a text that is another one when a dataset's folder or file is.

    A folder's time of change moves when a name in it comes or goes, so the folders' times say
    enough, and while none of them moved there are no others to look for: asked again, ImageNet
    costs a thousand questions to the disk, not a million. Pictures that are written anew under
    their names do not show; lists do.
    """
    noted = _noted.get(root)
    if noted is None or any(_times(path) != times for path, times in noted):
        noted = tuple(_walk(str(root), seen=set()))
        _noted[root] = noted
        for old in list(_noted)[:-_MOST]:
            _noted.pop(old, None)
    return hashlib.sha256(repr(noted).encode()).hexdigest()[:32]


def _walk(path: str, *, seen: set[str]) -> Iterator[Noted]:
    yield path, _times(path)
    try:
        real = os.path.realpath(path)
        if real in seen:  # by a link: each folder counts once, also where links go in circles
            return
        seen.add(real)
        with os.scandir(path) as entries:
            inside = sorted((entry.name, entry.path, entry.is_dir()) for entry in entries)
    except (OSError, ValueError):  # a file, missing, or no name for one
        return
    for name, inner, folder in inside:
        if folder:
            yield from _walk(inner, seen=seen)
        elif name.lower().endswith(_LISTS):
            yield inner, _times(inner)


def _times(path: str) -> tuple[int, int]:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return (0, 0)
    return status.st_mtime_ns, 0 if os.path.isdir(path) else status.st_size  # noqa: PTH112
