"""Tell cheaply whether anything was added to, taken from or renamed in a dataset's folder."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

_LISTS = (".csv", ".tsv", ".txt", ".json")  # files whose content is read as text
_MOST = 16  # roots remembered

Noted = tuple[str, tuple[int, int]]
_noted: dict[Path, tuple[Noted, ...]] = {}


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
