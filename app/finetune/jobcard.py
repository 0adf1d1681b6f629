"""The job card: where a run stands, while it works and after."""

from collections.abc import Callable, Sequence
from html import escape

import plotly.graph_objects as go
import streamlit as st

from app.finetune.charts import (
    HEIGHT,
    Event,
    accuracy_chart,
    loss_chart,
    newest_stage,
    speed,
    steps_csv,
)
from app.finetune.results import ahead_words, clock
from app.finetune.time import Pace, about, seconds_left, stages, widths
from app.kept import once
from app.opened import result as read_result
from app.shared.pages import page_file
from app.shared.pieces import chart, download
from app.shared.problems import explained_errors, plain, show_problem
from app.shared.run_rows import run_title
from app.shared.sheets import show
from masktune.heat.strategies import strategy_of
from masktune.runs import jobs
from masktune.runs.jobs import Job
from masktune.scores.evidence import Evidence
from masktune.scores.metrics import METRICS, Metric
from masktune.scores.result import RunResult, SplitResult
from masktune.show.markup import metric, strip
from masktune.show.wording import (
    duration,
    metric_note,
    metric_title,
    verdict_parts,
)

POLL = 1.0
"""Seconds between two looks at a run that works or waits."""

HEADS = {
    "queued": "Waiting",
    "running": "Running",
    "done": "Done",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "interrupted": "Interrupted",
}


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
        st.header(f"{HEADS[job.state]}: {plain(run_title(job))}", anchor=False)
    if job.active:
        with cancel, st.container(horizontal_alignment="right"):
            _draw_cancel(job)
    if job.note:
        st.caption(plain(job.note))
    show(stages_html(job, widths(job.config, pace)))
    events = jobs.events(job.path)
    match job.state:
        case "queued":
            show(f"<p><b>{waiting_words(job)}</b> You can close this page; the run goes on.</p>")
        case "running":
            show(working_html(job, seconds_left(job, pace), _speed(job, events)))
        case "done":
            _draw_done(job)
        case _:
            _draw_stopped(job)
    _draw_charts(job, events)


def stages_html(job: Job, wide: Sequence[float]) -> str:
    """Give one bar in stages, each as wide as it usually takes."""
    names = stages(job.config)
    now, share = where(job)
    words = f"{HEADS[job.state]}, stage {min(now + 1, len(names))} of {len(names)}"
    parts = []
    for number, (name, width) in enumerate(zip(names, wide, strict=True)):
        filled = 1.0 if number < now else share if number == now else 0.0
        current = number == now and job.state != "queued"
        parts.append(
            f'<div class="{"now" if current else ""}" style="flex:{width:.3f} 1 0">'
            f'<b><i style="width:{100 * filled:.1f}%"></i></b><span>{escape(name)}</span></div>'
        )
    return f'<div class="stages" role="img" aria-label="{words}">{"".join(parts)}</div>'


def where(job: Job) -> tuple[int, float]:
    """Give the number of the current stage and how much of it is done, in [0, 1].

    A stage speaks first when its first step is done, so one that is complete means that the next
    is being worked on.
    """
    names = stages(job.config)
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


def working_html(job: Job, left: float | None, pace: float | None) -> str:
    """Say how long a running run still takes, how quick it is and since when it works."""
    parts = []
    if 0 < job.step < job.total:
        parts.append(
            f"<b>{escape(job.stage.capitalize())}, step {job.step:,} of {job.total:,}.</b>"
        )
    if left is not None:
        parts.append(f"<b>About {about(left)} left.</b>")
    elif job.seconds_left is not None:
        parts.append(f"<b>{about(job.seconds_left)} left of this stage.</b>")
    elif not job.stage:
        parts.append("<b>Starting: PyTorch and the pictures are being read.</b>")
    if pace is not None:
        parts.append(f"{pace:.1f} steps a second.")
    parts.append(
        f"Started {clock(job.began or job.created)}. You can close this page; the run goes on."
    )
    return f"<p>{' '.join(parts)}</p>"


def _speed(job: Job, events: Sequence[Event]) -> float | None:
    return speed(newest_stage(events)) if events and events[-1]["stage"] == job.stage else None


def _draw_cancel(job: Job) -> None:
    with st.popover("Cancel", icon=":material/stop_circle:", wrap=False):
        st.markdown("**Stop this run?** What is finished is kept; it can go on later.")
        if st.button("Stop the run", key=f"stop_{job.id}", type="primary"):
            with explained_errors(), st.spinner("Stopping"):
                jobs.cancel(job.path)
            st.rerun()


def _draw_done(job: Job) -> None:
    with explained_errors():  # its result may have been written by another version
        _draw_result(job, read_result(job.path))


def _draw_result(job: Job, result: RunResult) -> None:
    test = result.first
    evidence = test.evidence
    for where, text in verdict_parts(test.name, evidence):
        show(f'<p class="verdict {where}">{escape(text)}</p>')
    cards = [_metric(one, test, evidence) for one in METRICS[:2]]
    for place, html in zip(st.columns(2), cards, strict=True):
        with place:
            show(html, kind="metric")
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(
            "Compare before and after", type="primary", icon=":material/compare:", key="to_compare"
        ):
            st.switch_page(page_file("compare"))
        show(f'<span class="muted">Took {duration(result.took)}, {clock(job.created)}.</span>')


def _metric(one: Metric, test: SplitResult, evidence: Evidence | None) -> str:
    before, after = one.of(test.before) or 0.0, one.of(test.after) or 0.0
    bounds = one.interval(test.before), one.interval(test.after)
    return metric(
        f"{metric_title(one, test.after)} of “{test.name}”",
        before,
        after,
        line=strip(before, after, before_interval=bounds[0], after_interval=bounds[1]),
        note=metric_note(one, test.after),
        clear="unclear" if evidence is None else one.clear(evidence),
    )


def _draw_stopped(job: Job) -> None:
    if job.state == "failed":
        show_problem(job.problem or "The run failed.", job.remedy or "Start it again.")
        if lines := jobs.last_lines(job.path):
            st.caption("The last lines of its log")
            st.code(lines, language=None, wrap_lines=True)
    else:
        st.markdown(f"This run was {job.state}. What it has finished is kept.")
    label = "Start again" if job.state == "failed" else "Go on with this run"
    if st.button(label, icon=":material/restart_alt:", key=f"again_{job.id}", type="primary"):
        with explained_errors():
            jobs.resume(job.path)
        st.rerun()


def _draw_chart(
    name: str, draw: Callable[[Sequence[Event]], go.Figure], job: Job, steps: Sequence[Event]
) -> None:
    if not steps:
        if job.active:
            show(_no_step_yet(name))
        return
    pictures = "training pictures" if steps[-1]["stage"] == "train" else "covered pictures"
    if not strategy_of(job.config.masking).hides:
        pictures = "training pictures"
    show(f"<b>{name} on the {pictures}</b>")
    chart(once(draw, steps), key=name)


def _draw_charts(job: Job, events: Sequence[Event]) -> None:
    steps = newest_stage(events) if events else []
    with st.grid(2, min_column_width=250):
        for name, draw in (("Loss", loss_chart), ("Accuracy", accuracy_chart)):
            with st.container():
                _draw_chart(name, draw, job, steps)
    if steps and not job.active:
        steps_file = f"{job.id}-steps.csv"
        download(
            "Steps as CSV",
            lambda: steps_csv(jobs.events(job.path)),
            steps_file,
            prominent=True,
        )


def _no_step_yet(name: str) -> str:
    return (
        f"<b>{name}</b>"
        f'<div class="waiting" style="height:{HEIGHT}px"><p>Drawn from the first training step '
        "on.</p></div>"
    )
