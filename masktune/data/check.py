"""Which picture files can be used: each is decoded once, and the verdict is remembered."""

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from masktune.data.card import Skipped
from masktune.data.frame import Size
from masktune.data.kept import tidy, used
from masktune.data.picture import PictureError, glance
from masktune.files import home, replace_file
from masktune.progress import Progress, Watcher, unwatched

STEP = 256
"""Files between two reports to the watcher."""

_VERSION = 1  # of what is remembered: raise it when verdicts change

Stamp = tuple[int, int]
"""Bytes and time of change in nanoseconds: tell whether a file is still the one judged."""

Verdict = tuple[str, int, int]
"""Why a file cannot be used, or "" and the H and W of its picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check of files found."""

    kept: tuple[int, ...]  # positions of the usable files, ascending
    skipped: tuple[Skipped, ...]  # the others, with paths relative to the root, in the order given
    sizes: frozenset[Size]  # the different ones of the usable pictures, upright


def usable(paths: Sequence[Path], *, root: Path, watcher: Watcher = unwatched) -> Checked:
    """Find out which pictures can be used by decoding each once.

    Verdicts are kept under ``home() / "checks"`` and hold as long as a file's size and time of
    change do, so that the next check decodes only what is new. No other file is written.
    """
    digest = hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:24]
    memory = home() / "checks" / f"{digest}.json"
    known, learnt = _remembered(memory), False
    above = f"{root.as_posix()}/"  # cut off as text, which pathlib takes ten times as long for
    names = [path.as_posix().removeprefix(above) for path in paths]
    verdicts: list[Verdict] = []
    unjudged: list[tuple[int, Stamp | None]] = []
    for position, (name, path) in enumerate(zip(names, paths, strict=True)):
        before, verdict = known.get(name, (None, ("", 0, 0)))
        stamp = _stamp(path)
        if stamp is None or stamp != before:
            unjudged.append((position, stamp))
        verdicts.append(verdict)
    finished = len(paths) - len(unjudged)
    try:
        with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
            for start in range(0, len(unjudged), STEP):
                part = unjudged[start : start + STEP]
                judged = pool.map(_judge, [paths[position] for position, _ in part])
                for (position, stamp), (verdict, lasting) in zip(part, judged, strict=True):
                    verdicts[position] = verdict
                    if stamp is not None and lasting:
                        known[names[position]], learnt = (stamp, verdict), True
                finished += len(part)
                watcher(Progress(stage="check", done=finished, total=len(paths)))
    finally:
        if learnt:  # a check that was stopped goes on where it was
            _remember(memory, known)
    if paths and not unjudged:
        watcher(Progress(stage="check", done=finished, total=len(paths)))
    return Checked(
        kept=tuple(position for position, (reason, *_) in enumerate(verdicts) if not reason),
        skipped=tuple(Skipped(n, why) for n, (why, *_) in zip(names, verdicts, strict=True) if why),
        sizes=frozenset((height, width) for reason, height, width in verdicts if not reason),
    )


def _judge(path: Path) -> tuple[Verdict, bool]:
    """Return the verdict on a file, and whether it will be the same next time."""
    try:
        height, width = glance(path)
    except PictureError as error:
        return (error.reason, 0, 0), error.lasting
    return ("", height, width), True


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except (OSError, ValueError):  # missing, or no name for a file: judging it says which
        return None
    return status.st_size, status.st_mtime_ns


def _remembered(file: Path) -> dict[str, tuple[Stamp, Verdict]]:
    """Read earlier verdicts by name; none when there is no such file or it is broken."""
    used(file)
    try:
        content = json.loads(file.read_text("utf-8"))
        if content["version"] != _VERSION:
            return {}
        return {
            name: ((int(size), int(changed)), (str(reason), int(height), int(width)))
            for name, (size, changed, reason, height, width) in content["files"].items()
        }
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}


def _remember(file: Path, known: dict[str, tuple[Stamp, Verdict]]) -> None:
    files = {name: [*stamp, *verdict] for name, (stamp, verdict) in known.items()}
    with contextlib.suppress(OSError):  # without a memory the next check takes longer
        file.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(file) as written:
            written.write(json.dumps({"version": _VERSION, "files": files}).encode())
        tidy(file.parent)
