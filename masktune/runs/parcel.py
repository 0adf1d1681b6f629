"""Run folders as one ZIP, to be opened elsewhere."""

import io
import json
import re
import shutil
import zipfile
from contextlib import AbstractContextManager
from pathlib import Path

from masktune.data import archive as zips
from masktune.errors import DataError, MaskTuneError, RunFolderError
from masktune.files import beside, home
from masktune.runs.folder import BEFORE, RunFolder
from masktune.runs.index import RUNS
from masktune.runs.open import PREDICTIONS, OpenRun
from masktune.runs.resume import AFTER
from masktune.scores.result import RESULT
from masktune.scores.trained import TrainResult

KINDS = (".json", ".jsonl", ".txt", ".csv", ".npz", ".safetensors")
"""Endings of the files of a run that travel; its report can be made again from them."""

MOST_BYTES = zips.MOST_BYTES
"""What is taken out of one ZIP, or out of one run's answers, at most."""

_AGAIN = "Give a ZIP that the page Runs has exported, or a finished run folder packed as it is."


def pack(*paths: Path) -> bytes:
    """Return run folders as the content of a ZIP, each in a folder of the run's name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in paths:
            for each in _travelling(path):
                # Weights hardly shrink, and there are many of them.
                stored = each.suffix in (".safetensors", ".npz")
                method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
                archive.write(each, f"{OpenRun(path).id}/{each.name}", compress_type=method)
    return file.getvalue()


def size(*paths: Path) -> int:
    """Return how many bytes of run folders travel."""
    return sum(each.stat().st_size for path in paths for each in _travelling(path))


def _travelling(path: Path) -> list[Path]:
    return [
        each
        for each in sorted(path.iterdir())
        if each.is_file() and each.suffix in KINDS and not each.name.startswith(".")
    ]


def unpack(zip_path: Path, *, name: str | None = None) -> list[Path]:
    """Take finished runs and trainings out of a ZIP into the home; return their folders.

    Settings, numbers and answers are read first: if one cannot be opened, none is taken, and
    neither where one is here already, which is left as it is. Where several runs were packed, those
    that are not finished stay out.

    Args:
        zip_path: of the file.
        name: what the file was called, for a run folder that lies in no folder of the ZIP.

    Raises:
        RunFolderError: it is no ZIP, holds no finished run that can be read, or one that is here.
    """
    with _arriving() as part:
        try:
            zips.unpack(zip_path, into=part, kinds=KINDS)
        except DataError as error:
            raise RunFolderError(error.problem, _AGAIN) from error
        return _take_in(part, Path(name or zip_path.name).stem)


def copy(folder: Path) -> list[Path]:
    """Take a copy of a run folder that lies elsewhere into the home, as ``unpack`` does.

    Raises:
        RunFolderError: it is no folder, or none of a finished run that can be read, or one that is
            here; or it cannot be copied.
    """
    if not folder.is_dir():
        raise RunFolderError(f"{folder} is no folder.", "Give the folder of a finished run.")
    with _arriving() as part:
        try:
            part.mkdir()
            for each in _travelling(folder):
                shutil.copy2(each, part)
        except OSError as error:
            raise RunFolderError(
                f"{folder} cannot be copied: {error.strerror or error}.",
                "Free some disk space, or see whether you may read it.",
            ) from error
        return _take_in(part, OpenRun(folder).id)


def _arriving() -> AbstractContextManager[Path]:
    runs = home() / RUNS
    runs.mkdir(parents=True, exist_ok=True)
    return beside(runs / "import")


def _take_in(part: Path, name: str) -> list[Path]:
    """Move what arrived among the runs; ``name`` is for files that lie in no folder."""
    found = {}
    for folder in _runs_in(part):
        _check(folder)
        target = home() / RUNS / _plain(name if folder == part else folder.name)
        if target.exists():
            raise RunFolderError(
                f"A run {target.name} is here already; it was left as it is.",
                "Open that one, or rename the folder that is to come in.",
            )
        if target in found:
            raise RunFolderError(
                f"Two runs would be called {target.name}.", "Rename one of their folders."
            )
        found[target] = folder
    for target, folder in found.items():
        folder.rename(target)
    return [*found]


def _runs_in(part: Path) -> list[Path]:
    found = sorted(each.parent for each in part.rglob("config.json"))
    finished = [each for each in found if (each / RESULT).is_file()]
    if not found or any(one in other.parents for one in found for other in found):
        held = "a run folder in another" if found else "no run folder"
        raise RunFolderError(f"What was given holds {held}.", _AGAIN)
    return finished or found[:1]  # of one it is said what is missing


def _check_size(answers: Path) -> None:
    """Refuse answers that are packed so well that they would fill the memory."""
    if zipfile.is_zipfile(answers):  # what is none is found out by who reads it
        with zipfile.ZipFile(answers) as archive:
            held = sum(entry.file_size for entry in archive.infolist())
        if held > MOST_BYTES:
            raise RunFolderError(f"{answers.name} unpacks to {held / 1e9:.1f} GB.", _AGAIN)


def _check_json(folder: Path, name: str) -> None:
    """Refuse what lists would stumble over, which read every run: JSON that is no plain text."""
    content = RunFolder(folder).read_json(name)
    try:
        plain = isinstance(content, dict) and bool(json.dumps(content, ensure_ascii=False).encode())
    except UnicodeEncodeError:  # half of a letter, which JSON can spell and no text can hold
        plain = False
    if not plain:
        raise RunFolderError(f"{name} is no JSON object of plain text.", _AGAIN)


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "imported"


def _check(folder: Path) -> None:
    run = OpenRun(folder)
    try:
        # Settings and result are read for the answers, too.
        trained = run.config.only_before
        _check_size(folder / PREDICTIONS)
        found = TrainResult.read(folder) if trained else run.predictions
        for each in folder.glob("*.json"):
            _check_json(folder, each.name)
    except MaskTuneError as error:
        # The place where it was looked at is nobody's.
        problem = error.problem.replace(f"{folder}/", "").replace(str(folder), "It")
        raise RunFolderError(f"The run cannot be opened: {problem}", _AGAIN) from error
    models = (BEFORE,) if isinstance(found, TrainResult) else (BEFORE, AFTER)
    missing = [name for name in models if not (folder / name).is_file()]
    if missing:
        raise RunFolderError(f"The run has no {' and no '.join(missing)}.", _AGAIN)
