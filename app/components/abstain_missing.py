"""What the Abstain page shows while there is no finished run."""

from html import escape

import streamlit as st

from app import jobs
from app.components.compare_empty import choose_finished, standing
from app.components.compare_runs import finished_runs
from app.components.frame import page_file
from app.components.problems import show_problem
from app.components.sheets import show
from app.state import session

POLL = 1.0
"""Seconds between two looks at a run that is not done."""


def finished_run() -> jobs.Job | None:
    """Give the chosen run if it is done; otherwise draw what is missing and how to get it."""
    chosen = session().run
    job = jobs.find(chosen) if chosen else None
    if job is not None and job.state == "done":
        return job
    if job is not None and job.active:
        st.fragment(_wait, run_every=POLL)(job.id)
        return None
    if job is not None:
        show_problem(
            job.problem or f"The run ended before it had a result: it was {job.state}.",
            job.remedy or "Start it again on Finetune: it goes on from the last finished part.",
        )
    elif chosen:
        show_problem(f"There is no run '{chosen}' here (any more).", "Open another one.")
    invite()
    return None


def _wait(run_id: str) -> None:
    """Tell how far a run is; once it is no longer at work, draw the whole page."""
    job = jobs.find(run_id)
    if job is None or not job.active:
        st.rerun()
    with st.container(key="empty_abstain", horizontal_alignment="center"):
        show(
            f"<i></i><h2>{escape(standing(job))}</h2>"
            "<p>The curves appear here as soon as it is done. You can close this page.</p>",
            kind="empty",
        )
        st.progress(min(job.step / job.total, 1.0) if job.total else 0.0, width=420)
        st.page_link(
            page_file("finetune"), label="Watch it on Finetune", icon=":material/monitoring:"
        )


def invite() -> None:
    """Draw the ways to a finished run."""
    done = finished_runs()
    with st.container(key="empty_abstain", horizontal_alignment="center"):
        show(
            f"<i></i><h2>{'No run is open' if done else 'No finished run yet'}</h2>"
            "<p>Abstain weighs the answers of the model before and the model after. Finetuning "
            f"takes about 8 s with the demo.{'<br>Or open a finished run.' if done else ''}</p>",
            kind="empty",
        )
        with st.container(horizontal=True, horizontal_alignment="center"):
            if session().subject is None:
                if st.button("Choose pictures and model", type="primary"):
                    st.switch_page(page_file("load"))
            elif st.button("Finetune for one epoch", type="primary", icon=":material/play_arrow:"):
                st.switch_page(page_file("finetune"))
            if done:
                with st.popover("Open a run", icon=":material/folder_open:"):
                    choose_finished(done, label="Finished runs")
