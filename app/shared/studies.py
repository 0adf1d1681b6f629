"""What the cards of studies share: that of grids on Runs, those on Finetune."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.shared.pieces import POLL, confirm_stop, draw_stopped
from app.shared.problems import explained_errors, plain
from app.shared.run_menu import throw_study
from app.shared.run_rows import about, ahead_words, clock, runs_words
from masktune.errors import ConfigError
from masktune.runs.folder import RunFolder
from masktune.runs.jobs import Job

if TYPE_CHECKING:  # with PyTorch, which the list of runs does not need
    from masktune.studies.jobs import StudyJob

STATES = {"queued": "Waiting", "interrupted": "Paused", "done": "Done"}


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


def headline(study: "StudyJob") -> str:
    """Say what a study is and where it stands."""
    state = STATES.get(study.state, study.state.capitalize())
    settings = len({(one["title"], one.get("settings")) for one in study.plan})
    seeds = len({one["seed"] for one in study.plan})
    size = f"{settings} {'setting' if settings == 1 else 'settings'} × {seeds} "
    return (
        f"{state}: {counted(study)}, {size}"
        f"{'seed' if seeds == 1 else 'seeds'}, started {clock(study.created)}"
    )


def draw_study(
    study: "StudyJob", *, act: Callable[["StudyJob", Sequence[Job]], None] | None = None
) -> None:
    """Draw where a study stands, and what can be done with it as a whole.

    ``act`` draws the button of a page for its finished runs.
    """
    from masktune.studies import jobs as studies

    # Buttons stand outside of what is drawn again and again: a click there may be lost.
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{headline(study)}**", width="stretch")
        if act is not None:
            act(study, [*studies.finished_runs(study).values()])
        if study.active:
            key, icon = f"pause_{study.id}", ":material/pause_circle:"
            st.button("Pause", icon=icon, key=key, on_click=_pause, args=(study,))
            stop = partial(studies.cancel, study.path)
            confirm_stop(study.kind, study.id, "Finished runs are kept", stop)
        draw_delete(study)
    if study.active:
        st.fragment(_draw_standing, run_every=POLL)(study.id, study.state, study.done)
    elif study.state != "done":
        draw_stopped(f"this {study.kind}", study, studies.resume)


def _pause(study: "StudyJob") -> None:
    from masktune.studies import jobs as studies

    with explained_errors():
        studies.pause(study.path)


def _draw_standing(study_id: str, state: str, done: int) -> None:
    from masktune.studies import jobs as studies

    study = studies.find(study_id)
    if study is None or (study.state, study.done) != (state, done):
        st.rerun()  # the whole page: table and list of runs say it too
    st.progress(study.done / len(study.plan), text=standing(study))


def draw_delete(study: "StudyJob") -> None:
    """Draw the menu that puts a study with its runs into the trash."""
    with st.popover("", icon=":material/more_vert:", help="Delete"):
        st.button(
            "Delete, and stop it" if study.active else "Delete",
            icon=":material/delete:",
            key=f"delete_{study.id}",
            on_click=partial(_delete, study),
            help="It goes into the trash on Runs with its runs and tables, from where it can be "
            "brought back. Other runs that started from its models keep a copy.",
        )


def _delete(study: "StudyJob") -> None:
    from masktune.studies import jobs as studies

    throw_study(study.path, [*studies.finished_runs(study).values()])
