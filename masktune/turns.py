"""One running job a device: the others wait their turn, in the order they came.

A waiting job is a process of its own that looks at the folders beside its own, so the queue needs
no server: it survives a restart of the page, and a job that dies while waiting is passed over.
This module must stay light: jobs wait before PyTorch is imported.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

POLL = 0.3
"""Seconds between two looks."""


def wait_for_turn(folder: Path) -> None:
    """Wait until no earlier job of the same device is left, then mark this one as running.

    Args:
        folder: the run folder, which holds ``config.json``; the folders beside it are the queue.
    """
    lock = FileLock(folder.parent / ".turns.lock")
    device = _read(folder / "config.json")["device"]
    ticket = time.time_ns()
    with lock:
        _say(folder, "queued", ticket)
    while True:
        with lock:
            if not any(_ahead(folder, other, device, ticket) for other in _others(folder)):
                _say(folder, "running", ticket)
                return
        time.sleep(POLL)


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
        # A dead child that nobody waited for keeps its number and its start time.
        return bool(
            process.create_time() == status["started"] and process.status() != psutil.STATUS_ZOMBIE
        )
    except (KeyError, psutil.Error):
        return False


def _others(folder: Path) -> Iterator[Path]:
    return (path for path in folder.parent.iterdir() if path.is_dir() and path != folder)


def _ahead(folder: Path, other: Path, device: str | None, ticket: int) -> bool:
    status = _read(other / "status.json")
    if status.get("state") not in ("queued", "running") or not alive(status):
        return False
    if _read(other / "config.json").get("device") != device:
        return False
    earlier = (status.get("ticket", 0), other.name) < (ticket, folder.name)
    return status["state"] == "running" or earlier


def _say(folder: Path, state: str, ticket: int) -> None:
    status = {
        "state": state,
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "stage": "",
        "step": 0,
        "total": 0,
        "eta": None,
        "updated": time.time(),
        "problem": None,
        "remedy": None,
        "ticket": ticket,
    }
    temporary = folder / f".status.json.{os.getpid()}.tmp"
    temporary.write_text(json.dumps(status), "utf-8")
    temporary.replace(folder / "status.json")


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content
