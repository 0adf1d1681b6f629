"""One running job a device: the others wait their turn, in the order they came.

A waiting job is a process of its own that looks at the folders beside its own, so the queue needs
no server: it survives a restart of the page, and a job that dies while waiting is passed over.
This module must stay light: jobs wait before PyTorch is imported.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from filelock import BaseFileLock, FileLock

from masktune.cache import Cache
from masktune.errors import RunFolderError
from masktune.files import replace_file, stamp

STUDY = "study.json"
"""What the folder of a study has instead of ``config.json`` and ``status.json``."""

HOMES = ("runs", "studies")
"""Folders beside one another whose jobs wait in one line."""

POLL = 0.3
"""Seconds between two looks."""

_READ = Cache(most=8192)  # files of a few hundred bytes, looked at again and again

CLOCK_SET = 2.0
"""Seconds by which the start time of one and the same process may seem to differ."""


def line_up(folder: Path, launch: Callable[[], int]) -> None:
    """Start the process of a job and give it the last place in the queue.

    The place is given here and not by the process: several that are started at once come up in
    any order, and until one has come up nobody could see or cancel it. The folders beside that of
    the job, which holds ``config.json`` or ``study.json``, are the queue, runs and studies of one
    home in one; ``launch`` gives the number of the process.
    """
    with _lock(folder):  # the process cannot take its turn before its place is written
        pid = launch()
        _say(folder, "queued", ticket=time.time_ns(), pid=pid)


def wait_for_turn(folder: Path) -> None:
    """Wait until no earlier job of the same device is left, then mark this one as running."""
    if not any((folder / name).is_file() for name in ("config.json", STUDY)):
        raise RunFolderError(
            f"{folder} is not a run folder, so nothing can wait in it.",
            "Leave --queue out: it is for jobs of the page, which make their folder first.",
        )
    device = _device(folder)
    with _lock(folder):
        # The place that this process was given when it was started; else the last one.
        status = _status(folder)
        given = status.get("ticket") if status.get("pid") == os.getpid() else None
        ticket = time.time_ns() if given is None else int(given)
        _say(folder, "queued", ticket=ticket, pid=os.getpid())
    while True:
        with _lock(folder):
            if not any(_ahead(folder, other, device, ticket) for other in _others(folder)):
                _say(folder, "running", ticket=ticket, pid=os.getpid(), began=time.time())
                return
        time.sleep(POLL)


def say_failed(folder: Path, problem: str, remedy: str) -> None:
    """Say why a job of this process ends, unless its run has said how it ended."""
    status = _status(folder)
    if status.get("pid") == os.getpid() and status.get("state") in ("queued", "running"):
        _say(folder, "failed", pid=os.getpid(), problem=problem, remedy=remedy)


def waiting_for(folder: Path) -> int:
    """Count the runs of living jobs of the same device that come before this one.

    A study is as many as it has yet to do: whoever waits for it waits for all of them.
    """
    status, device = _status(folder), _device(folder)
    ticket = status.get("ticket")
    if status.get("state") != "queued" or ticket is None:
        return 0
    ahead = (other for other in _others(folder) if _ahead(folder, other, device, ticket))
    return sum(_to_do(_status(other)) for other in ahead)


def _to_do(status: Mapping[str, Any]) -> int:
    return max(len(status.get("plan") or ()) - (status.get("step") or 0), 1)


def alive(status: Mapping[str, Any]) -> bool:
    """Tell whether the process that wrote a status still runs, and is the same one."""
    try:
        process = psutil.Process(status["pid"])
        # A start time counts from when the machine was booted, which the kernel gives in whole
        # seconds and moves when somebody sets the clock.
        same = abs(process.create_time() - status["started"]) < CLOCK_SET
        # A dead child that nobody waited for keeps its number and its start time.
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except (KeyError, TypeError, ValueError, psutil.Error):
        return False


def at_work(folder: Path) -> bool:
    """Tell whether a living process works or waits in the folder of a run or a study."""
    status = _status(folder)
    return status.get("state") in ("queued", "running") and alive(status)


def _homes(folder: Path) -> list[Path]:
    home = folder.parent
    return [home.with_name(name) for name in HOMES] if home.name in HOMES else [home]


def _lock(folder: Path) -> BaseFileLock:
    home = _homes(folder)[0]
    home.mkdir(parents=True, exist_ok=True)  # a study may come before any run
    return FileLock(home / ".turns.lock")


def _others(folder: Path) -> Iterator[Path]:
    homes = (home for home in _homes(folder) if home.is_dir())
    return (path for home in homes for path in home.iterdir() if path.is_dir() and path != folder)


def _ahead(folder: Path, other: Path, device: str | None, ticket: int) -> bool:
    status = _status(other)
    if not at_work(other):
        return False
    # "auto" may come out as any device, and which one only PyTorch could tell.
    devices = {device, _device(other)}
    if len(devices) == 2 and "auto" not in devices:
        return False
    earlier = (status.get("ticket", 0), other.name) < (ticket, folder.name)
    return status["state"] == "running" or earlier


def standing(state: str, pid: int, **said: object) -> dict[str, Any]:
    """Return the content of ``status.json`` for a process; what is not said is nothing yet."""
    return {
        "state": state,
        "pid": pid,
        "started": psutil.Process(pid).create_time(),
        "stage": "",
        "step": 0,
        "total": 0,
        "eta": None,
        "updated": time.time(),
        "problem": None,
        "remedy": None,
        **said,
    }


def _say(folder: Path, state: str, *, pid: int, **said: object) -> None:
    path = _status_file(folder)
    kept = _status(folder) if path.name == STUDY else {}  # its plan and table
    with replace_file(path) as file:
        file.write(json.dumps({**kept, **standing(state, pid, **said)}).encode())


def _status_file(folder: Path) -> Path:
    study = folder / STUDY
    return study if study.is_file() else folder / "status.json"


def _status(folder: Path) -> Mapping[str, Any]:
    return _read(_status_file(folder))


def _device(folder: Path) -> str | None:
    if study := _read(folder / STUDY):
        return (study.get("about") or {}).get("device") or "auto"
    return _read(folder / "config.json").get("device")


def _read(path: Path) -> Mapping[str, Any]:
    def read() -> dict[str, Any]:
        try:
            content = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    file = str(path)
    written = stamp(file)
    return {} if written is None else _READ.get((file, written), read)
