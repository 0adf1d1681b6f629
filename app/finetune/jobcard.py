"""The job card: where a run stands, while it works and after."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import streamlit as st
from markupsafe import Markup

from app.finetune.charts import HEIGHT, Event, newest_stage, speed, steps_chart, steps_csv
from app.finetune.time import Pace, seconds_left, stages, widths
from app.kept import once
from app.opened import result as read_result
from app.shared.pages import page_file
from app.shared.pieces import POLL, chart, confirm_stop, download, draw_stopped
from app.shared.problems import explained_errors, plain
from app.shared.run_rows import about, ahead_words, clock, run_title
from app.shared.sheets import say, show
from masktune.config import LAST_LAYER
from masktune.heat.strategies import strategy_of
from masktune.runs import jobs
from masktune.runs.jobs import Job
from masktune.scores.metrics import METRICS, Metric
from masktune.scores.result import SplitResult
from masktune.show.markup import metric_card, piece
from masktune.show.wording import duration, metric_title, verdict_parts

GOES_ON = "You can close this page; the run goes on."


def follow(job: Job, pace: Pace) -> None:
    """Draw the card of a run, and draw it anew while the run works or waits."""
    card = st.fragment(_card, run_every=POLL if job.active else None)
    card(job.id, job.state, pace)


def _card(run_id: str, state: str, pace: Pace) -> None:
    job = jobs.find(run_id)
    if job is None or job.state != state:
        st.rerun()  # the whole page: buttons, list of runs and stepper say it too
    head, cancel = st.columns([4, 1], vertical_alignment="center")
    with head:
        st.header(f"{_state(job)}: {plain(run_title(job))}", anchor=False)
    if job.active:
        with cancel, st.container(horizontal_alignment="right"):
            stop = partial(jobs.cancel, job.path)
            confirm_stop("run", job.id, "What is finished is kept", stop)
    if job.note:
        st.caption(plain(job.note))
    show(stages_html(job, widths(job.config, pace)))
    events = jobs.events(job.path)
    steps = newest_stage(events)
    match job.state:
        case "queued":
            st.markdown(f"**{waiting_words(job)}** {GOES_ON}")
        case "running":
            quick = speed(steps) if steps and steps[-1]["stage"] == job.stage else None
            st.markdown(working_words(job, seconds_left(job, pace), quick))
        case "done":
            _draw_done(job)
        case _:
            draw_stopped("this run", job, jobs.resume)
    if steps or job.active:
        _draw_charts(job, steps)
    if steps and not job.active:
        name = f"{job.id}-steps.csv"
        download("Steps as CSV", lambda: steps_csv(events), name, prominent=True)


def _state(job: Job) -> str:
    return "Waiting" if job.state == "queued" else job.state.capitalize()


def stages_html(job: Job, wide: Sequence[float]) -> Markup:
    """Give one bar in stages, each as wide as it usually takes."""
    names = list(stages(job.config))
    now, share = where(job)
    filled = [1.0] * now + [share] + [0.0] * len(names)
    current = [number == now and job.state != "queued" for number in range(len(names))]
    return piece(
        "stages",
        words=f"{_state(job)}, stage {min(now + 1, len(names))} of {len(names)}",
        parts=list(zip(names, wide, filled, current, strict=False)),
    )


def where(job: Job) -> tuple[int, float]:
    """Give the number of the current stage and how much of it is done, in [0, 1].

    A stage speaks first when its first step is done, so one that is complete means that the next
    is being worked on.
    """
    names = list(stages(job.config))
    if job.state == "done":
        return len(names), 0.0
    if job.state == "queued" or job.stage not in names:
        return 0, 0.0
    number = names.index(job.stage)
    if job.total and job.step >= job.total:
        return min(number + 1, len(names) - 1), 0.0
    return number, job.step / job.total if job.total else 0.0


def waiting_words(job: Job) -> str:
    """Say how many runs come first."""
    if job.ahead == 0:
        return "It starts in a moment."
    return f"{ahead_words(job.ahead).capitalize()}. One run at a time; this one starts by itself."


def working_words(job: Job, left: float | None, quick: float | None) -> str:
    """Say how long a run still takes, how quick it is and since when it works, as Markdown.

    ``left`` are seconds until it is done, ``quick`` steps a second; None when not known.
    """
    bold = []
    if 0 < job.step < job.total:
        bold.append(f"{job.stage.capitalize()}, step {job.step:,} of {job.total:,}.")
    if left is not None:
        bold.append(f"About {about(left)} left.")
    elif job.seconds_left is not None:
        bold.append(f"{about(job.seconds_left)} left of this stage.")
    elif not job.stage:
        bold.append("Starting: PyTorch and the pictures are being read.")
    parts = [f"**{' '.join(bold)}**"] if bold else []
    if quick is not None:
        parts.append(f"{quick:.1f} steps a second.")
    return " ".join([*parts, f"Started {clock(job.began or job.created)}. {GOES_ON}"])


def _draw_done(job: Job) -> None:
    with explained_errors():  # its result may have been written by another version
        result = read_result(job.path)
        test = result.first
        if parts := verdict_parts(test.name, test.evidence):
            show(piece("verdict", parts=parts, more="", small=""))
        for place, one in zip(st.columns(2), METRICS[:2], strict=True):
            with place:
                show(_metric(one, test), kind="metric")
        with st.container(horizontal=True, vertical_alignment="center"):
            icon = ":material/compare:"
            if st.button("Compare before and after", type="primary", icon=icon, key="to_compare"):
                st.switch_page(page_file("compare"))
            began = clock(job.began or job.created)
            say(f"Took {duration(result.took)}, started {began}.", kind="muted")


def _metric(one: Metric, test: SplitResult) -> Markup:
    return metric_card(
        one,
        test,
        name=f"{metric_title(one, test.after)} of “{test.name}”",
        clear="unclear" if test.evidence is None else one.clear(test.evidence),
    )


def _draw_charts(job: Job, steps: Sequence[Event]) -> None:
    whole = not strategy_of(job.config.masking).hides or (steps and steps[-1]["stage"] == "train")
    pictures = "training pictures" if whole else "covered pictures"
    drawn: tuple[Literal["loss", "accuracy"], ...] = ("loss", "accuracy")
    if steps:
        st.caption("Thin: every step. Thick: the running mean.")
    with st.grid(2, min_column_width=250):
        for what in drawn:
            name = what.capitalize()
            with st.container():
                if steps:
                    st.markdown(f"**{name} on the {pictures}**")
                    chart(once(steps_chart, steps, what), key=name)
                else:
                    st.markdown(f"**{name}**")
                    words = (
                        "Only the last layer is fitted: there are no steps to draw."
                        if job.config.rival in LAST_LAYER
                        else "Drawn from the first training step on."
                    )
                    show(piece("waiting", height=HEIGHT, words=words))
