"""Finished runs: each is read once for all sessions, and no more of it than is drawn."""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from app.kept import COMPUTED, DRAWN
from masktune.cache import Cache, Made
from masktune.datasets.catalogue import card
from masktune.errors import RunFolderError
from masktune.runs.folder import RunFolder
from masktune.runs.jobs import Job, path_of
from masktune.scores.result import RESULT, RunResult

if TYPE_CHECKING:  # the first screen reads numbers only, and needs no PyTorch for them
    from masktune.runs.open import OpenRun, OpenSplit
    from masktune.show.contact_sheets import Looks

_RESULTS = Cache(most=1024)  # 0.1 MB each
_RUNS = Cache(most=6)
# A photograph with both heats takes about 1 MB; with at most 24 of them this holds 400 MB.
_LOOKS = Cache(most=16)


def written(path: Path) -> Hashable:
    """Tell two results in one place apart."""
    return RunFolder(path).stamp(RESULT)


def result(path: Path) -> RunResult:
    """Return the numbers of a finished run.

    Raises:
        RunFolderError: its result cannot be read.
    """
    return _RESULTS.get(written(path), lambda: RunResult.read(path))


def result_of(job: Job) -> RunResult | None:
    """Return the numbers of a run; None when it is not finished or its result cannot be read."""
    if job.state != "done":
        return None
    try:
        return result(job.path)
    except RunFolderError:
        return None


def opened(run: str) -> "OpenRun":
    """Return a finished run by its id; runs on the same pictures share them."""
    from app import loaded
    from masktune.runs.open import OpenRun

    path = path_of(run)

    def read() -> "OpenRun":
        found = OpenRun(path, load=loaded.bundle, result=result(path))
        card(found.config.dataset)  # a run on pictures that nobody knows here is refused
        return found

    return _RUNS.get(written(path), read)


def looks_of(test: "OpenSplit", positions: Sequence[int]) -> "Looks":
    """Return where both models look in some pictures of a test set."""
    from masktune.show.contact_sheets import looks

    key = (written(test.run.path), test.name, tuple(positions))
    with st.spinner("Looking where both models look"):
        return _LOOKS.get(key, lambda: looks(test.run, test.split, positions))


def drawn(test: "OpenSplit", what: Hashable, make: Callable[[], Made]) -> Made:
    """Return what is drawn of a run on a test set; drawn once."""
    return DRAWN.get((written(test.run.path), test.name, what), make)


def computed(test: "OpenSplit", what: Hashable, make: Callable[[], Made]) -> Made:
    """Return what is computed of a run on a test set; computed once."""
    return COMPUTED.get((written(test.run.path), test.name, what), make)
