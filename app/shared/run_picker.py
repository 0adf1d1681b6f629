"""The run and the test set that Compare and Abstain show, or the ways to one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.opened import opened
from app.shared.pages import page_file
from app.shared.pieces import POLL, empty
from app.shared.problems import show_problem
from app.shared.run_rows import ahead_words, demo_takes, few_of_studies, finished_runs, run_labels
from app.state import hold, keep, open_run, subject
from masktune.errors import MaskTuneError
from masktune.runs import jobs
from masktune.scores.groups import group_name
from masktune.show.wording import duration

if TYPE_CHECKING:  # the first screen needs no PyTorch
    from masktune.runs.open import OpenSplit

ALL = -1
"""Stands for all groups in a list of them."""

WATCH = 2.0
"""Seconds between two looks at other runs than the one on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a page says about the run it needs: what for, and what appears once it is done."""

    page: str
    purpose: str
    awaited: str


def chosen_test(needs: Needs, listed: list[jobs.Job]) -> "OpenSplit | None":
    """Let people choose a finished run and a test set of it; where there is none, say so."""
    job = _finished_run(needs)
    if job is None:
        return None
    try:
        view = opened(job.id)
        view.predictions  # noqa: B018 (what cannot be read is said before anything is drawn)
    except MaskTuneError as error:
        show_problem(error.problem, error.remedy)
        invite(needs)
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=560):
            choose_finished(listed, label="Run", shown=job.id)
        state = st.session_state
        if state.test not in view.tests:  # the one chosen before is of another run
            state.test = next(iter(view.tests))
        st.segmented_control(
            "Evaluate on",
            list(view.tests),
            required=True,
            help="The pictures both models were asked about after tuning.",
            **keep("test"),
        )
    return view.tests[state.test]


def _finished_run(needs: Needs) -> jobs.Job | None:
    """Give the chosen run if it is done; otherwise draw what is missing and how to get it."""
    chosen = st.session_state.run
    job = jobs.find(chosen) if chosen else None
    if job is not None and job.state == "done":
        return job
    if job is not None and job.active:
        st.fragment(_wait, run_every=POLL)(job.id, needs)
        return None
    if job is not None:
        show_problem(
            job.problem or f"The run ended before it had a result: it was {job.state}.",
            job.remedy or "Start it again on Finetune: it goes on from the last finished part.",
        )
    elif chosen:
        show_problem(f"There is no run '{chosen}' here (any more).", "Open another one.")
    invite(needs)
    return None


def _wait(run: str, needs: Needs) -> None:
    """Tell how far a run is; once it is no longer at work, draw the whole page."""
    job = jobs.find(run)
    if job is None or not job.active:
        st.rerun()
    with st.container(key=f"empty_{needs.page}", horizontal_alignment="center"):
        words = f"{needs.awaited} here as soon as it is done. You can close this page."
        empty(standing(job), words)
        st.progress(min(job.step / job.total, 1.0) if job.total else 0.0, width=420)
        st.page_link(
            page_file("finetune"), label="Watch it on Finetune", icon=":material/monitoring:"
        )


def watch(runs: Sequence[jobs.Job]) -> None:
    """Draw the whole page anew when one of some runs has moved on."""
    active = tuple((job.id, job.state) for job in runs if job.active)
    st.fragment(_watch, run_every=WATCH if active else None)(active)


def _watch(states: tuple[tuple[str, str], ...]) -> None:
    for run, state in states:
        job = jobs.find(run)
        if job is None or job.state != state:
            st.rerun()


def standing(job: jobs.Job) -> str:
    """Say in a few words how far a run is."""
    if job.state == "queued":
        waits = f"This run waits: {ahead_words(job.ahead)}"
        return waits if job.ahead else "This run is about to start"
    left = "" if job.seconds_left is None else f", {duration(job.seconds_left)} left"
    return f"This run is still at work: {job.stage or 'starting'}{left}"


def invite(needs: Needs) -> None:
    """Draw the ways to a finished run."""
    done = finished_runs()
    with st.container(key=f"empty_{needs.page}", horizontal_alignment="center"):
        empty(
            "No run is open" if done else "No finished run yet",
            f"{needs.purpose} {demo_takes()}",
            *(["Or open a finished run, also one from the command line."] if done else []),
        )
        with st.container(horizontal=True, horizontal_alignment="center"):
            if subject() is None:
                if st.button("Choose pictures and model", type="primary"):
                    st.switch_page(page_file("load"))
            elif st.button("Finetune for one epoch", type="primary", icon=":material/play_arrow:"):
                st.switch_page(page_file("finetune"))
            if done:
                with st.popover("Open a run", icon=":material/folder_open:"):
                    choose_finished(done, label="Finished runs")


def choose_finished(done: list[jobs.Job], *, label: str, shown: str | None = None) -> None:
    """Let people choose one of the finished runs, and show it."""
    few = few_of_studies(done, named={shown or ""})
    by_id = {job.id: job for job in few}
    key = f"run_of_{label}"
    st.session_state[key] = shown if shown in by_id else None

    def opened() -> None:
        if (run := st.session_state[key]) is not None:
            open_run(by_id[run])

    st.selectbox(
        label,
        list(by_id),
        index=None,
        format_func=run_labels(few).__getitem__,
        placeholder="Choose a run",
        help="Of studies the newest runs; all others are opened on Runs."
        if len(few) < len(done)
        else None,
        key=key,
        on_change=opened,
    )


def own_key(name: str, test: "OpenSplit") -> str:
    """Tell widgets of different pictures apart: a group or page of one may be none of another."""
    return f"{name}_{test.run.id}_{test.name}"


def choose_group(
    test: "OpenSplit",
    *,
    name: str,
    place: DeltaGenerator | None = None,
    width: int = 230,
    label: Literal["visible", "collapsed"] = "visible",
) -> int | None:
    """Let people choose a group that has pictures, by its number; None is all of them.

    ``name`` is that of the choice in the state.
    """
    scores = enumerate(test.before.scores)
    names = {ALL: "All groups", **{n: group_name(score) for n, score in scores if score.count}}
    hold(name, own_key(name, test))
    chosen: int = (place or st).selectbox(
        "Group",
        list(names),
        format_func=names.__getitem__,
        width=width,
        label_visibility=label,
        **keep(name, names),
    )
    return None if chosen == ALL else chosen
