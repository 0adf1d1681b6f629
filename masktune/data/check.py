"""Which picture files can be used: each is decoded once, and the verdict is remembered."""

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from masktune.data.kept import tidy, used
from masktune.data.picture import PictureError, glance
from masktune.data.types import Skipped
from masktune.files import home, replace_file
from masktune.progress import Progress, Watcher, unwatched

STEP = 256
"""Files between two reports to the watcher."""

_VERSION = 1  # of what is remembered: raise it when verdicts change


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check of files found.

    Attributes:
        kept: positions of the usable files, ascending.
        skipped: the others, with paths relative to the root, in the order given.
        sizes: the different (H, W) of the usable pictures, upright.
    """

    kept: tuple[int, ...]
    skipped: tuple[Skipped, ...]
    sizes: frozenset[tuple[int, int]]


class _Stamp(NamedTuple):
    """Tells whether a file is still the one that was judged."""

    bytes: int
    changed: int  # nanoseconds


class _Verdict(NamedTuple):
    """Why a file cannot be used, or "" and the (H, W) of its picture."""

    reason: str
    height: int = 0
    width: int = 0


class _Passing(_Verdict):
    """A verdict that may be another next time and is not remembered."""


def usable(paths: Sequence[Path], *, root: Path, watcher: Watcher = unwatched) -> Checked:
    """Find out which pictures can be used by decoding each once.

    Verdicts are kept under ``home() / "checks"`` and hold as long as a file's size and time of
    change do, so that the next check decodes only what is new. No other file is written.

    Args:
        paths: picture files.
        root: the dataset's folder, which names in ``skipped`` are relative to.
        watcher: told in the stage "check", now and then and at the end.
    """
    memory = _Memory.of(root)
    names = _names(paths, root)
    stamps = [_stamp(path) for path in paths]
    verdicts = [memory.recall(name, stamp) for name, stamp in zip(names, stamps, strict=True)]
    unjudged = [position for position, verdict in enumerate(verdicts) if verdict is None]
    finished = len(paths) - len(unjudged)
    threads = min(os.cpu_count() or 1, 8)
    try:
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(unjudged), STEP):
                part = unjudged[start : start + STEP]
                for position, verdict in zip(
                    part, pool.map(_judge, [paths[p] for p in part]), strict=True
                ):
                    verdicts[position] = verdict
                    memory.learn(names[position], stamps[position], verdict)
                finished += len(part)
                watcher(Progress(stage="check", done=finished, total=len(paths)))
    finally:
        memory.write()  # a check that was stopped goes on where it was
    if paths and not unjudged:
        watcher(Progress(stage="check", done=finished, total=len(paths)))
    judged = [verdict for verdict in verdicts if verdict is not None]
    return Checked(
        kept=tuple(position for position, verdict in enumerate(judged) if not verdict.reason),
        skipped=tuple(
            Skipped(name, verdict.reason)
            for name, verdict in zip(names, judged, strict=True)
            if verdict.reason
        ),
        sizes=frozenset((v.height, v.width) for v in judged if not v.reason),
    )


def _judge(path: Path) -> _Verdict:
    try:
        height, width = glance(path)
    except PictureError as error:
        return (_Verdict if error.lasting else _Passing)(error.reason)
    return _Verdict("", height, width)


def _names(paths: Sequence[Path], root: Path) -> list[str]:
    """Name files relative to the root; as text, which pathlib takes ten times as long for."""
    above = f"{root.as_posix()}/"
    return [path.as_posix().removeprefix(above) for path in paths]


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except (OSError, ValueError):  # missing, or no name for a file: judging it says which
        return None
    return _Stamp(status.st_size, status.st_mtime_ns)


@dataclass(slots=True)
class _Memory:
    """Earlier verdicts on the files of one root, by name."""

    file: Path
    verdicts: dict[str, tuple[_Stamp, _Verdict]]
    changed: bool = False

    @classmethod
    def of(cls, root: Path) -> "_Memory":
        """Read what is remembered; nothing when there is no such file or it is broken."""
        digest = hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:24]
        file = home() / "checks" / f"{digest}.json"
        used(file)
        try:
            return cls(file, _parsed(json.loads(file.read_text("utf-8"))))
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return cls(file, {})

    def recall(self, name: str, stamp: _Stamp | None) -> _Verdict | None:
        known = self.verdicts.get(name)
        return known[1] if known is not None and known[0] == stamp else None

    def learn(self, name: str, stamp: _Stamp | None, verdict: _Verdict) -> None:
        if stamp is not None and not isinstance(verdict, _Passing):
            self.verdicts[name] = (stamp, verdict)
            self.changed = True

    def write(self) -> None:
        if not self.changed:
            return
        files = {name: [*stamp, *verdict] for name, (stamp, verdict) in self.verdicts.items()}
        with contextlib.suppress(OSError):  # without a memory the next check takes longer
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(self.file) as file:
                file.write(json.dumps({"version": _VERSION, "files": files}).encode())
            tidy(self.file.parent)


def _parsed(content: dict[str, Any]) -> dict[str, tuple[_Stamp, _Verdict]]:
    if content["version"] != _VERSION:
        return {}
    return {
        name: (_Stamp(int(size), int(changed)), _Verdict(str(reason), int(height), int(width)))
        for name, (size, changed, reason, height, width) in content["files"].items()
    }
