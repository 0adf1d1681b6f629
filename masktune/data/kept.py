"""Uploads, verdicts and drawn pictures under home: removed when nobody used them for long."""

import contextlib
import json
import os
import shutil
import time
from pathlib import Path

from masktune.files import home

MOST = 100
"""Entries kept in a folder."""
DAYS = 30
"""After which an entry that nobody used goes."""
HOURS = 6
"""For which an entry stays whatever there is: somebody may be looking at it."""

NEEDING = (
    "runs/*/config.json",
    "studies/*/study.json",  # its plan names what runs need that have no folder yet
    "studies/*/*/*/config.json",
    "reproductions/*/study.json",
    "reproductions/*/*/*/config.json",
    "trash/**/config.json",  # what can be brought back is to come back whole
    "trash/**/study.json",
)
"""Files of the home that name what runs need: those of trainings lie among the runs."""


def used(path: Path) -> None:
    """Note that a file or folder was used now."""
    with contextlib.suppress(OSError):  # somebody else's, or on a disk that cannot be written
        os.utime(path)


def tidy(folder: Path, *, most: int | None = None) -> None:
    """Remove what was not used for ``DAYS``, and of more than ``most`` what was used longest ago.

    What a run needs stays, also one of a study or in the trash, and what was used within the last
    ``HOURS``. ``MOST`` may stay unless ``most`` says how many; a folder that is not there is left
    alone.
    """
    times = {}
    for path in folder.glob("[!.]*"):
        with contextlib.suppress(OSError):  # removed by another process meanwhile
            times[path] = path.stat().st_mtime
    old = sorted(times, key=lambda path: times[path])
    surplus, now = len(old) - (MOST if most is None else most), time.time()
    removable = [
        path
        for number, path in enumerate(old)
        if now - times[path] > HOURS * 3600
        and (number < surplus or now - times[path] > DAYS * 86400)
    ]
    needed = _needed() if removable else ""
    for path in removable:
        # As JSON spells it: some files have the letters of other languages escaped, some as such.
        spelled = (json.dumps(str(path), ensure_ascii=escaped)[1:-1] for escaped in (True, False))
        if not any(each in needed for each in spelled):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _needed() -> str:
    """Return the settings of all runs as one text, in which the paths of what they need stand."""
    texts = []
    for file in (file for way in NEEDING for file in home().glob(way)):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            texts.append(file.read_text("utf-8"))
    return "\n".join(texts)
