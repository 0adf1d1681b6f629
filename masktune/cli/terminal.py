"""Progress for people at a terminal, and for log files."""

import json
import os
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from masktune.progress import Clock, Progress, Watcher, unwatched

PLAIN_EVERY = 0.25
"""Without a terminal, one line at each quarter of a stage."""


@contextmanager
def shown(stream: TextIO | None = None) -> Iterator[Watcher]:
    """Give a watcher that shows progress: bars on a terminal, plain lines elsewhere.

    On standard error unless told otherwise, so that standard output stays clean. Of several
    processes only the first speaks.
    """
    stream = sys.stderr if stream is None else stream
    if not first_process():
        yield unwatched
        return
    if not stream.isatty():
        yield _Lines(stream)
        return
    columns = (
        TextColumn("{task.description:12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[learning]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(file=stream)) as bars:
        tasks: dict[str, int] = {}

        def watch(progress: Progress) -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bars.add_task(progress.stage, learning="")
            bars.update(
                tasks[progress.stage],  # type: ignore[arg-type]
                completed=progress.done,
                total=progress.total,
                learning=_learning(progress),
            )

        yield watch


@dataclass(slots=True)
class _Lines:
    stream: TextIO
    clock: Clock = field(default_factory=Clock)
    stage: str = ""
    next_share: float = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.stage != self.stage:
            self.stage, self.next_share = progress.stage, 0.0
        left = self.clock.seconds_left(progress)
        share = progress.done / progress.total
        if share < self.next_share:
            return
        self.next_share = share + PLAIN_EVERY if share < 1 else float("inf")
        parts = [f"{progress.stage} {progress.done}/{progress.total}", _learning(progress)]
        if left is not None and share < 1:
            parts.append(f"{left:.0f} s left")
        print(", ".join(part for part in parts if part), file=self.stream, flush=True)


def _learning(progress: Progress) -> str:
    return "" if progress.loss is None else f"loss {progress.loss:.3f}"


def first_process() -> bool:
    """Tell whether this is the process that speaks for a distributed run (or the only one)."""
    return os.environ.get("RANK", "0") == "0"


def answer(chosen: Namespace, document: object, *lines: str) -> None:
    """Print what a command found on standard output: one JSON document if asked for, else lines.

    Of several processes only the first speaks.
    """
    if not first_process():
        return
    if chosen.json:
        lines = (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False),)
    sys.stdout.writelines(line + "\n" for line in lines)


def numbers(text: str) -> tuple[float, ...]:
    """Read an option that is numbers with commas between.

    >>> numbers("1, 2.5")
    (1.0, 2.5)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ArgumentTypeError(
            f"'{text}' is not a row of numbers with commas between, such as 0,1,2"
        ) from error
