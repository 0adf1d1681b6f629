"""One running job a device: the others wait their turn, in the order they came.

A waiting job is a process of its own that looks at the folders beside its own, so the queue needs
no server: it survives a restart of the page, and a job that dies while waiting is passed over.
This module must stay light: jobs wait before PyTorch is imported.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from filelock import BaseFileLock, FileLock

from masktune.errors import RunFolderError
from masktune.files import replace_file

POLL = 0.3
"""Seconds between two looks."""

CLOCK_SET = 2.0
"""Seconds by which the start time of one and the same process may seem to differ."""


def line_up(folder: Path, launch: Callable[[], int]) -> None:
    """Start the process of a job and give it the last place in the queue.

    The place is given here and not by the process: several that are started at once come up in
    any order, and until one has come up nobody could see or cancel it. The folders beside the run
    folder, which holds ``config.json``, are the queue; ``launch`` gives the number of the process.
    """
    with _lock(folder):  # the process cannot take its turn before its place is written
        pid = launch()
        _say(folder, "queued", ticket=time.time_ns(), pid=pid)


def wait_for_turn(folder: Path) -> None:
    """Wait until no earlier job of the same device is left, then mark this one as running."""
    if not (folder / "config.json").is_file():
        raise RunFolderError(
            f"{folder} is not a run folder, so nothing can wait in it.",
            "Leave --queue out: it is for jobs of the page, which make their folder first.",
        )
    device = _read(folder / "config.json").get("device")
    with _lock(folder):
        # The place that this process was given when it was started; else the last one.
        status = _read(folder / "status.json")
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
    status = _read(folder / "status.json")
    if status.get("pid") == os.getpid() and status.get("state") in ("queued", "running"):
        _say(folder, "failed", pid=os.getpid(), problem=problem, remedy=remedy)


def waiting_for(folder: Path) -> int:
    """Count the living jobs of the same device that come before this one."""
    status, device = _read(folder / "status.json"), _read(folder / "config.json").get("device")
    ticket = status.get("ticket")
    if status.get("state") != "queued" or ticket is None:
        return 0
    return sum(_ahead(folder, other, device, ticket) for other in _others(folder))


def alive(status: dict[str, Any]) -> bool:
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


def _lock(folder: Path) -> BaseFileLock:
    return FileLock(folder.parent / ".turns.lock")


def _others(folder: Path) -> Iterator[Path]:
    return (path for path in folder.parent.iterdir() if path.is_dir() and path != folder)


def _ahead(folder: Path, other: Path, device: str | None, ticket: int) -> bool:
    status = _read(other / "status.json")
    if status.get("state") not in ("queued", "running") or not alive(status):
        return False
    # "auto" may come out as any device, and which one only PyTorch could tell.
    devices = {device, _read(other / "config.json").get("device")}
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
    with replace_file(folder / "status.json") as file:
        file.write(json.dumps(standing(state, pid, **said)).encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
