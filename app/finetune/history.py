"""The list of runs: what each did and came to, and what can be done with it."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from app.finetune.results import (
    rate_words,
    runs_csv,
    standing,
    title,
)
from app.opened import result_of
from app.shared.pages import page_file
from app.shared.pieces import download
from app.shared.problems import explained_errors
from app.shared.run_picker import watch
from app.shared.sheets import show
from app.state import open_run
from masktune.config import BUNDLED
from masktune.datasets.catalogue import card
from masktune.runs import jobs
from masktune.runs.jobs import Job
from masktune.scores.result import RunResult
from masktune.show.markup import strip
from masktune.show.wording import count, interval, method_words, percent

AT_ONCE = 10
"""Runs on one page of the list."""

SIGNS = {
    "queued": "<i>·</i> waiting",
    "running": "<i>▸</i> <b>running</b>",
    "done": '<span class="chip fixed" aria-hidden="true">✓</span> done',
    "failed": '<span class="chip broken" aria-hidden="true">✕</span> failed',
    "cancelled": "<i>■</i> cancelled",
    "interrupted": "<i>‖</i> interrupted",
}

COLUMNS = (0.6, 15, 3.4)
"""Widths of a row's parts: the box to choose it, what it is, what can be done."""


def draw_history(runs: Sequence[Job]) -> None:
    """Draw the runs on these pictures.

    Args:
        runs: the newest first, at least one.
    """
    st.header("Runs on these pictures", anchor=False)
    shown = {job: result_of(job) for job in _page(runs)}
    tests = [result.first.name for result in shown.values() if result is not None]
    with st.container(key="run_head"):
        _, head, _ = st.columns(COLUMNS, vertical_alignment="bottom")
    with head:
        show(head_html(tests[0] if tests else ""))
    for job, result in shown.items():
        with st.container(key=f"run_row_{job.id}"):
            _draw_row(job, result)
    _draw_below(runs)
    watch([job for job in runs if job.id != st.session_state.run])


def _page(runs: Sequence[Job]) -> Sequence[Job]:
    pages = -(-len(runs) // AT_ONCE)
    if pages == 1:
        return runs
    page = st.pagination(pages, key="runs_page")
    return runs[(page - 1) * AT_ONCE : page * AT_ONCE]


def head_html(test: str) -> str:
    """Give the heads of the list.

    Args:
        test: the test set that the worst group is measured on.
    """
    where = f" of “{escape(test)}”" if test else ""
    return (
        '<div class="run head"><span>State</span><span>What is hidden</span>'
        f'<span class="number">Learning rate</span>'
        f'<span class="number">Worst group{where} before</span><span>0 to 100%</span>'
        "<span>after</span><span>Time, or what went wrong</span></div>"
    )


def row_html(job: Job, result: RunResult | None, *, here: bool) -> str:
    """Give one run as a row.

    Args:
        job: the run.
        result: what it came to, None while there is nothing.
        here: whether it is the run this page shows.
    """
    what = escape(title(job))
    notes = [method_words(job.config.masking)] if job.name else []
    notes += [job.note] if job.note else []
    small = "".join(f"<small>{escape(note)}</small>" for note in notes)
    return (
        f'<div class="run{" here" if here else ""}"><span>{SIGNS[job.state]}</span>'
        f"<span>{f'<b>{what}</b>' if job.name else what}{small}</span>"
        f'<span class="number">{rate_words(job, result)}</span>{_scores(result)}'
        f"<span>{escape(standing(job, result))}</span></div>"
    )


def _scores(result: RunResult | None) -> str:
    if result is None:
        return "<span></span><span></span><span></span>"
    was, now = result.first.before.worst, result.first.after.worst
    line = strip(
        was.accuracy or 0.0,
        now.accuracy or 0.0,
        before_interval=was.interval,
        after_interval=now.interval,
    )
    return (
        f'<span class="number">{percent(was.accuracy)}</span><span>{line}</span>'
        f"<span><b>{percent(now.accuracy)}</b>"
        f"<small>{interval(now.interval)}, n = {count(now.count)}</small></span>"
    )


def _draw_row(job: Job, result: RunResult | None) -> None:
    choose, what, act = st.columns(COLUMNS, vertical_alignment="center")
    run, box = st.session_state.run, f"choose_{job.id}"
    st.session_state[box] = job.id in _chosen()
    with choose:
        st.checkbox(
            f"Choose {title(job)}",
            key=box,
            on_change=_choose,
            args=(job.id,),
            label_visibility="collapsed",
            disabled=job.state != "done",
        )
    with what:
        show(row_html(job, result, here=job.id == run))
    with act, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        st.button(
            "Open",
            key=f"open_{job.id}",
            disabled=job.id == run,
            on_click=open_run,
            args=(job,),
        )
        with st.popover("", icon=":material/more_vert:", help="Name, note, delete"):
            _draw_menu(job)


def _draw_menu(job: Job) -> None:
    with st.form(f"about_{job.id}", border=False):
        name = st.text_input("Name", value=job.name, placeholder=method_words(job.config.masking))
        note = st.text_area("Note", value=job.note, height=80)
        if st.form_submit_button("Save", key=f"save_{job.id}"):
            with explained_errors():
                jobs.describe(job.path, name=name.strip(), note=note.strip())
                st.rerun()
    sure = st.checkbox(
        "Delete it with its models and results" + (", and stop it" if job.active else ""),
        key=f"sure_{job.id}",
    )
    st.button(
        "Delete for good",
        key=f"delete_{job.id}",
        disabled=not sure,
        on_click=_delete,
        args=(job,),
    )


def _delete(job: Job) -> None:
    with explained_errors():
        jobs.delete(job.path)
        _forget(job)


def _forget(job: Job) -> None:
    """Let go of a run that is no more, also of its model."""
    state = st.session_state
    if job.id in _chosen():
        _choose(job.id)
    if state.run == job.id:
        state.run = None
    if state.model.startswith(f"{job.path}/"):
        bundled = card(state.dataset).bundled
        state.update({"model": BUNDLED if bundled else "", "arch": job.config.arch})


def _chosen() -> list[str]:
    return st.session_state.compared or []


def _choose(run: str) -> None:
    """Tick a run to be compared, or take the tick away."""
    now = _chosen()
    st.session_state.compared = [r for r in now if r != run] if run in now else [*now, run]


def _show_one(compared: Sequence[Job]) -> None:
    """Show one of the runs that are to be compared."""
    if st.session_state.run not in {job.id for job in compared}:
        open_run(compared[0])


def _draw_below(runs: Sequence[Job]) -> None:
    compared = [job for job in runs if job.state == "done" and job.id in _chosen()]
    few = len(compared) < 2
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(
            "Compare the chosen runs",
            icon=":material/stacked_line_chart:",
            disabled=few,
            on_click=_show_one,
            args=(compared,),
        ):
            st.switch_page(page_file("compare"))
        download("List as CSV", lambda: runs_csv(runs), "runs.csv", prominent=True)
        if few:
            words = "one more" if compared else "two or more"
            show(f'<span class="muted">Tick {words} to see them side by side.</span>')
