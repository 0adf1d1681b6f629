"""Deleted runs: put aside in the home's trash, brought back by one step, or deleted for good."""

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from masktune.errors import RunFolderError
from masktune.files import home
from masktune.runs.index import RUNS, STUDIES
from masktune.runs.jobs import cancel, hand_over
from masktune.runs.queue import STUDY, at_work

TRASH = "trash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thrown:
    """A deleted run: its folder in the trash, its way from the home before, and when it was."""

    path: Path
    way: str
    moment: float

    @property
    def id(self) -> str:
        """What the run is called in an address, once it is back."""
        return self.way.removeprefix(f"{RUNS}/")


def throw(path: Path) -> Thrown:
    """Put a run into the trash; one that still works is cancelled first.

    Runs that start from the model that it has trained get a copy.

    Raises:
        RunFolderError: it is no run of the home, its study is at work on it, or what is under way
            is still to begin with its model.
    """
    root = home()
    way = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
    if not _is_way(way):
        raise RunFolderError(f"{path} is not one of the app's runs.", "Delete it by hand.")
    study = path.parents[1]
    if way.startswith(STUDIES) and (study / STUDY).is_file() and at_work(study):
        raise RunFolderError(
            f"The run {path.name} belongs to a study that is at work.", "Pause the study first."
        )
    hand_over(path)
    cancel(path)
    moment = time.time_ns()
    aside = root / TRASH / str(moment) / way
    _move(path, aside)
    return Thrown(path=aside, way=way, moment=moment / 1e9)


def bring_back(thrown: Thrown) -> Path:
    """Put a run back where it was.

    Raises:
        RunFolderError: another run is there by now, or it was deleted for good.
    """
    path = home() / thrown.way
    if path.exists():
        raise RunFolderError(
            f"There is a run {thrown.id} again.", "Delete that one, then bring this one back."
        )
    _move(thrown.path, path)
    _tidy(thrown)
    return path


def thrown() -> list[Thrown]:
    """List what is in the trash, the newest first."""
    root, found = home() / TRASH, []
    for moment in root.iterdir() if root.is_dir() else ():
        for path in (*moment.glob(f"{RUNS}/*"), *moment.glob(f"{STUDIES}/*/*/*")):
            if moment.name.isdecimal():
                way = path.relative_to(moment).as_posix()
                found.append(Thrown(path=path, way=way, moment=int(moment.name) / 1e9))
    return sorted(found, key=lambda one: one.moment, reverse=True)


def delete_for_good(gone: Thrown) -> None:
    """Remove a run from the trash."""
    shutil.rmtree(gone.path, ignore_errors=True)
    _tidy(gone)


def _is_way(way: str) -> bool:
    parts = way.split("/")
    depth = {RUNS: 2, STUDIES: 4}.get(parts[0])
    return len(parts) == depth and not {"", ".", ".."} & {*parts}


def _move(path: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    except OSError as error:
        raise RunFolderError(
            f"{path} cannot be moved to {target.parent}: {error.strerror or error}.",
            "Look whether somebody else has moved or deleted it.",
        ) from error


def _tidy(gone: Thrown) -> None:
    """Remove the folders that held a run in the trash."""
    root = home() / TRASH
    for folder in gone.path.parents:
        if folder == root:
            return
        with suppress(OSError):  # other runs are in it
            folder.rmdir()
