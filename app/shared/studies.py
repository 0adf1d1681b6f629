"""What the cards of studies share: that of grids on Runs, that of tournaments on Finetune."""

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.shared.pieces import confirm_delete
from app.shared.problems import explained_errors, plain
from app.shared.run_rows import about, ahead_words, runs_words
from app.state import let_go
from masktune.errors import ConfigError
from masktune.runs.folder import RunFolder

if TYPE_CHECKING:  # with PyTorch, which the list of runs does not need
    from masktune.studies.jobs import StudyJob


def numbers(text: str, what: str) -> tuple[float, ...]:
    """Read what somebody typed into a field of several numbers.

    Raises:
        ConfigError: there is something else in it.
    """
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise ConfigError(
            f"The {what} are given as '{text}'.", "Give numbers with commas between, such as 1,2."
        ) from error


def counted(study: "StudyJob") -> str:
    """Say how many runs of a study are finished."""
    from masktune.studies import jobs as studies

    # One that goes on passes over what it has finished, and counts it again.
    done = max(study.done, len(studies.finished_runs(study)))
    return f"{done} of {runs_words(len(study.plan))}"


def standing(study: "StudyJob") -> str:
    """Say what a study that works or waits is at, and how long it still takes."""
    goes_on = f"You can close this page; the {study.kind} goes on."
    if study.state == "queued":
        waits = f"{ahead_words(study.ahead).capitalize()}. " if study.ahead else ""
        return f"{waits}It starts by itself. {goes_on}"
    if not study.stage:
        return f"Starting: PyTorch and the pictures are being read. {goes_on}"
    said = [f"{study.stage}{_step(study)}."]
    if study.seconds_left is not None:
        said.append(f"About {about(study.seconds_left)} left.")
    return plain(" ".join([*said, goes_on]))


def _step(study: "StudyJob") -> str:
    """Say how far the run under way is."""
    path = study.under_way
    status = {} if path is None else RunFolder(path).status()
    step, total = status.get("step") or 0, status.get("total") or 0
    return f": {status['stage']}, step {step:,} of {total:,}" if 0 < step < total else ""


def draw_delete(study: "StudyJob") -> None:
    """Draw the menu that deletes a study with its runs, which all pages then let go of."""
    with st.popover("", icon=":material/more_vert:", help="Delete"):
        stop = ", and stop it" if study.active else ""
        words = f"Delete it with its runs and tables{stop}"
        confirm_delete(study.id, words, partial(_delete, study))


def _delete(study: "StudyJob") -> None:
    from masktune.studies import jobs as studies

    with explained_errors():
        runs = studies.finished_runs(study)
        studies.delete(study.path)
        for job in runs.values():
            let_go(job)
