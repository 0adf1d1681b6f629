"""Deleted runs and studies: put aside in the home's trash, and brought back by one step."""

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from masktune.errors import RunFolderError
from masktune.files import home
from masktune.runs.folder import RunFolder
from masktune.runs.index import OF_STUDIES, REPRODUCTIONS, RUNS, STUDIES
from masktune.runs.jobs import cancel, hand_over, stop
from masktune.runs.queue import STUDY, at_work

TRASH = "trash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thrown:
    """A deleted run or study: its folder in the trash, its way from the home before, and when."""

    path: Path
    way: str
    moment: float

    @property
    def id(self) -> str:
        """What the run is called in an address, once it is back."""
        return self.way.removeprefix(f"{RUNS}/")

    @property
    def is_study(self) -> bool:
        """Whether it is a study with all of its runs."""
        return _is_study(self.way)


def throw(path: Path) -> Thrown:
    """Put a run, or a study with its runs, into the trash; what still works is cancelled first.

    Runs elsewhere that start from a model that it has trained get a copy.

    Raises:
        RunFolderError: it is no run or study of the home, its study is at work on it, or what is
            under way is still to begin with its model.
    """
    root = home()
    way = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
    whole = _is_study(way) and (path / STUDY).is_file()
    if not (whole or _is_run(way)):
        raise RunFolderError(f"{path} is not one of the app's runs.", "Delete it by hand.")
    if not whole:
        _check_rests(path, way)
    hand_over(path)
    if whole:
        stop(RunFolder(path), STUDY)
    else:
        cancel(path)
    moment = time.time_ns()
    aside = root / TRASH / str(moment) / way
    _move(path, aside)
    return Thrown(path=aside, way=way, moment=moment / 1e9)


def _check_rests(path: Path, way: str) -> None:
    """Refuse a run of which a study or an experiment would not expect that it goes."""
    study = path.parents[1]
    if (study / STUDY).is_file() and at_work(study):
        raise RunFolderError(
            f"The run {path.name} belongs to a study that is at work.", "Pause the study first."
        )
    # A model that several experiments start from lies in none of them.
    if way.startswith(f"{REPRODUCTIONS}/") and at_work(path):
        raise RunFolderError(
            f"An experiment is at work on the run {path.name}.", "Stop its command first."
        )


def bring_back(gone: Thrown) -> Path:
    """Put a run or a study back where it was.

    Raises:
        RunFolderError: another is there by now, its study is deleted too, or it was for good.
    """
    path = home() / gone.way
    if path.exists():
        kind = "study" if gone.is_study else "run"
        raise RunFolderError(
            f"There is a {kind} {gone.id} again.", "Delete that one, then bring this one back."
        )
    if any(one.is_study and gone.way.startswith(f"{one.way}/") for one in thrown()):
        raise RunFolderError(
            f"The study of the run {gone.id} is in the trash.", "Bring the study back first."
        )
    _move(gone.path, path)
    _tidy(gone)
    return path


def thrown() -> list[Thrown]:
    """List what is in the trash, the newest first."""
    root, found = home() / TRASH, []
    for moment in root.iterdir() if root.is_dir() else ():
        for path in _thrown_at(moment) if moment.name.isdecimal() else ():
            way = path.relative_to(moment).as_posix()
            found.append(Thrown(path=path, way=way, moment=int(moment.name) / 1e9))
    return sorted(found, key=lambda one: one.moment, reverse=True)


def _thrown_at(moment: Path) -> Iterator[Path]:
    yield from moment.glob(f"{RUNS}/*")
    yield from moment.glob(f"{REPRODUCTIONS}/*/*/*")
    for study in moment.glob(f"{STUDIES}/*"):
        # Of a study that is still there only runs were thrown.
        yield from (study,) if (study / STUDY).is_file() else study.glob("*/*")


def delete_for_good(gone: Thrown) -> None:
    """Remove a run or a study from the trash."""
    shutil.rmtree(gone.path, ignore_errors=True)
    _tidy(gone)


def _is_run(way: str) -> bool:
    parts = way.split("/")
    depth = 2 if parts[0] == RUNS else 4 if parts[0] in OF_STUDIES else 0
    return len(parts) == depth and not {"", ".", ".."} & {*parts}


def _is_study(way: str) -> bool:
    kind, _, name = way.partition("/")
    return kind == STUDIES and "/" not in name and name not in ("", ".", "..")


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
    """Remove the folders that held a run or a study in the trash."""
    root = home() / TRASH
    for folder in gone.path.parents:
        if folder == root:
            return
        with suppress(OSError):  # other runs are in it
            folder.rmdir()
