"""A model that is being trained, or is yet to be: what pages say and show until it is there."""

from functools import partial

import streamlit as st

from app.shared.pages import page_file
from app.shared.pieces import POLL, confirm_stop, empty
from app.shared.problems import plain
from app.shared.run_rows import ahead_words
from app.state import open_demo, subject
from masktune.config import RunConfig
from masktune.runs import jobs
from masktune.runs.jobs import Job
from masktune.runs.load import same_pictures
from masktune.show.wording import count, duration, percent


def under_way() -> Job | None:
    """Return the training of this session if it works or waits; else None."""
    job = latest()
    return job if job is not None and job.active else None


def latest() -> Job | None:
    """Return the training that this session has started on these pictures, however it stands."""
    job, now = jobs.find(st.session_state.training or ""), subject()
    if job is None or now is None or not job.config.only_before:
        return None
    return job if same_pictures(job.config, now) else None


def draw_under_way(job: Job, *, here: str) -> None:
    """Show how far a training is, to be stopped, and go on by itself once it has ended.

    ``here`` says what can be done on this page then.
    """
    st.fragment(_progress, run_every=POLL)(job.id, job.state, here)


def _progress(run: str, state: str, here: str) -> None:
    job = jobs.find(run)
    if job is None or job.state != state:
        st.rerun()  # the whole page: the model is taken before it is drawn
    st.progress(min(job.step / job.total, 1.0) if job.total else 0.0, text=training_words(job))
    st.caption(plain(f"{here} You can close this page; the training goes on."))
    confirm_stop("training", job.id, "Finished epochs are kept", partial(jobs.cancel, job.path))


def training_words(job: Job) -> str:
    """Say how far a training is, how long it takes yet and how well it learns."""
    if job.state == "queued":
        return f"Waiting: {ahead_words(job.ahead)}"
    if job.stage not in ("train", "predict"):
        return "Starting: PyTorch and the pictures are being read"
    parts = [f"Training, step {count(job.step)} of {count(job.total)}"]
    if job.stage == "predict":
        parts = ["Trained. Asking it about the test pictures"]
    if job.seconds_left is not None:
        parts.append(f"{duration(job.seconds_left)} left")
    if job.stage == "train" and (steps := jobs.events(job.path, most=4)):
        last = steps[-1]
        parts.append(f"loss {last['loss']:.3f}, {percent(last['accuracy'])} of the batch right")
    return ", ".join(parts)


def draw_without_model(loaded: RunConfig | None) -> None:
    """Say that there is no model to look at yet, and where there will be one."""
    if loaded is None:
        demo = "The demo opens in a few seconds. It needs no download."
        empty("No pictures and no model yet", demo)
        with st.container(horizontal=True, horizontal_alignment="center"):
            icon = ":material/play_arrow:"
            st.button("Open the demo", type="primary", icon=icon, on_click=open_demo)
            st.page_link(page_file("load"), label="Choose pictures and a model")
        return
    job = under_way()
    if job is not None:
        with st.container(key="empty_training", horizontal_alignment="center"):
            empty("This model is being trained", "Its heat can be looked at here once it is there.")
            with st.container(width=420):
                draw_under_way(job, here="The page goes on by itself.")
        return
    empty("This model is not trained yet", "Train it on Load. Then its heat can be looked at here.")
    with st.container(horizontal=True, horizontal_alignment="center"):
        if st.button("Go to Load", type="primary", icon=":material/arrow_back:"):
            st.switch_page(page_file("load"))
