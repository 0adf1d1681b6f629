"""A run folder as one ZIP, to be opened elsewhere."""

import io
import re
import zipfile
from pathlib import Path

from masktune.data.archive import unpack as unpack_zip
from masktune.errors import DataError, MaskTuneError, RunFolderError
from masktune.files import beside, home
from masktune.runs.folder import BEFORE
from masktune.runs.index import RUNS
from masktune.runs.open import OpenRun
from masktune.runs.resume import AFTER
from masktune.scores.trained import TrainResult

KINDS = (".json", ".jsonl", ".txt", ".csv", ".npz", ".safetensors")
"""Endings of the files of a run that travel; its report can be made again from them."""

_AGAIN = "Give a ZIP that the page Runs has exported, or a finished run folder packed as it is."


def pack(path: Path) -> bytes:
    """Return a run folder as the content of a ZIP, in a folder of the run's name."""
    name, file = OpenRun(path).id, io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in sorted(path.iterdir()):
            if each.is_file() and each.suffix in KINDS and not each.name.startswith("."):
                # Weights hardly shrink, and there are many of them.
                stored = each.suffix in (".safetensors", ".npz")
                method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
                archive.write(each, f"{name}/{each.name}", compress_type=method)
    return file.getvalue()


def unpack(zip_path: Path, *, name: str | None = None) -> Path:
    """Take a finished run, or a training, out of a ZIP into the home; return its folder.

    Settings, numbers and answers are read first: what cannot be opened is not taken. A run that is
    here already is left as it is.

    Args:
        zip_path: of the file.
        name: what the file was called, for a run folder that lies in no folder of the ZIP.

    Raises:
        RunFolderError: it is no ZIP, holds no finished run that can be read, or one that is here.
    """
    runs = home() / RUNS
    runs.mkdir(parents=True, exist_ok=True)
    with beside(runs / "import") as part:
        try:
            unpack_zip(zip_path, into=part, kinds=KINDS)
        except DataError as error:
            raise RunFolderError(error.problem, _AGAIN) from error
        folder = _run_in(part)
        called = folder.name if folder != part else Path(name or zip_path.name).stem
        target = runs / _plain(called)
        _check(folder)
        try:
            folder.rename(target)
        except OSError as error:
            if not target.exists():
                raise
            raise RunFolderError(
                f"A run {target.name} is here already; it was left as it is.",
                "Open that one, or rename the folder in the ZIP.",
            ) from error
    return target


def _run_in(part: Path) -> Path:
    found = [each.parent for each in part.rglob("config.json")]
    if len(found) != 1:
        held = "no run folder" if not found else f"{len(found)} run folders"
        raise RunFolderError(f"The ZIP holds {held}.", _AGAIN)
    return found[0]


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "imported"


def _check(folder: Path) -> None:
    run = OpenRun(folder)
    try:
        # Settings and result are read for the answers, too.
        found = TrainResult.read(folder) if run.config.only_before else run.predictions
    except MaskTuneError as error:
        # The place where it was looked at is nobody's.
        problem = error.problem.replace(f"{folder}/", "").replace(str(folder), "The ZIP")
        raise RunFolderError(f"The run in the ZIP cannot be opened: {problem}", _AGAIN) from error
    models = (BEFORE,) if isinstance(found, TrainResult) else (BEFORE, AFTER)
    missing = [name for name in models if not (folder / name).is_file()]
    if missing:
        raise RunFolderError(f"The run in the ZIP has no {' and no '.join(missing)}.", _AGAIN)
