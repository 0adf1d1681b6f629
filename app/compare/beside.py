"""Other runs beside the shown one: a table, the controls, and accuracy against k."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from app.compare.charts import accuracy_against_k, sweep_marks
from app.compare.methods import show_methods
from app.kept import COMPUTED, once
from app.opened import opened, written
from app.shared.pages import page_file
from app.shared.pieces import card, chart, download
from app.shared.problems import explained_errors
from app.shared.run_picker import watch
from app.shared.run_rows import (
    beside_words,
    few_of_studies,
    missing,
    row_of,
    run_labels,
    run_title,
    runs_table,
    sweep,
)
from app.shared.sheets import say, show
from masktune.checkpoints.settings import same
from masktune.config import MASKTUNE, RunConfig
from masktune.errors import MaskTuneError
from masktune.heat.strategies import strategy_of
from masktune.runs import jobs
from masktune.runs.load import same_pictures, title_of
from masktune.scores.evidence import Direction, Evidence
from masktune.show.marks import marks_line
from masktune.show.results import weigh_control
from masktune.show.tables import csv, html
from masktune.show.wording import control_words

MOST_BESIDE = 12
"""Runs beside the shown one, at first; people may add more."""


def show_runs(shown: jobs.Job, comparable: Sequence[jobs.Job], test: str) -> None:
    """Draw a table of runs on the same pictures, with what the controls say."""
    others = {job.id: job for job in comparable}
    with card(
        "compare_runs",
        "Runs side by side",
        hint="Runs on the same pictures. Controls train one more epoch without hiding what the "
        "model leans on; they show how much of the gain is MaskTune's. A narrow window shows fewer "
        "columns; the CSV has all.",
    ) as tools:
        row = row_of(shown, test)
        if row is None:
            say("The result of this run was written by another version.", kind="muted")
            return
        chosen = _choose(shown, others)
        _draw_left_out(shown, others)
        rows = [found for job in chosen if (found := row_of(job, test)) is not None]
        table = runs_table(row, [row, *rows])
        download("CSV", lambda: csv(table), "runs.csv", place=tools)
        show(html(table))
        words = beside_words(row, rows, against=lambda one: evidence_of(one, shown, test))
        if words:
            say(words, kind="after")
        if shown.config.rival == MASKTUNE:
            _draw_controls(shown, weighed=bool(words))
    if chosen:
        show_methods(shown, chosen, test)


def _choose(shown: jobs.Job, others: dict[str, jobs.Job]) -> list[jobs.Job]:
    if not others:
        return []
    state = st.session_state
    wanted = at_first(shown, [*others.values()]) if state.compared is None else state.compared
    few = few_of_studies(others.values(), named=wanted)
    labels = run_labels(few, dataset=False)
    key = f"compare_beside_{shown.id}"
    state[key] = [run for run in wanted if run in others]

    def choose() -> None:
        state.compared = [shown.id, *state[key]]

    picked = st.multiselect(
        "Beside this run",
        list(labels),
        format_func=labels.__getitem__,
        placeholder="Choose other runs on the same pictures",
        key=key,
        on_change=choose,
    )
    return [others[run] for run in picked]


def _draw_left_out(shown: jobs.Job, others: Mapping[str, jobs.Job]) -> None:
    """Say which of the runs that were chosen to be compared cannot stand here, and why."""
    wanted = [run for run in st.session_state.compared or () if run not in {shown.id, *others}]
    if not wanted:
        return
    said = "; ".join(left_out_words(run, jobs.find(run), shown) for run in wanted[:MOST_BESIDE])
    more = len(wanted) - MOST_BESIDE
    said += f"; and {more} more" if more > 0 else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        say(f"Not beside it: {said}.", kind="muted")
        st.page_link(page_file("runs"), label="See them on Runs", icon=":material/view_list:")


def left_out_words(run: str, job: jobs.Job | None, shown: jobs.Job) -> str:
    """Say why a run cannot stand beside the one that is shown.

    Args:
        run: its id.
        job: None where there is no such run any more.
        shown: the run that is shown.
    """
    if job is None:
        return f"{run}, which is not here any more"
    config, own, name = job.config, shown.config, run_title(job)
    if config.only_before:
        return f"{name}, which only trained a model"
    if job.digest is None:
        why = "whose result cannot be read" if job.state == "done" else "which is not finished"
        return f"{name}, {why}"
    if (config.dataset, config.root) != (own.dataset, own.root):
        return f"{name}, on other pictures ({title_of(config)})"
    if same_pictures(config, replace(own, seed=config.seed)):
        return f"{name}, on another split of these pictures (seed {config.seed})"
    return f"{name}, which sees or splits these pictures otherwise"


def at_first(shown: jobs.Job, others: list[jobs.Job]) -> tuple[str, ...]:
    """Choose the runs that tuned the same model: this run's controls first, then any others.

    A control at another rate or over other rounds says less of it.
    """
    alike = [job for job in others if jobs.tuned_alike(job, shown)]
    own = {job.id for job in jobs.controls_of(shown, alike)}
    alike.sort(key=lambda job: (job.id not in own, not jobs.is_control(job.config)))
    return tuple(job.id for job in alike[:MOST_BESIDE])


def _draw_controls(shown: jobs.Job, *, weighed: bool) -> None:
    """Say that controls of a run are under way; offer them where none was weighed."""
    wanted = jobs.control_settings(jobs.opened(shown))
    past = [job for job in jobs.every() if not job.archived]
    running = [j for j in past if j.active and any(same(j.config, config) for config in wanted)]
    if running:
        at_work = sum(job.state == "running" for job in running)
        say(
            f"The controls are under way: {at_work} at work, {len(running) - at_work} waiting. "
            "They join the table by themselves.",
            kind="muted",
        )
        watch(running)
        return
    if weighed:
        return
    wanted = missing(wanted, past)
    words = (
        "There are two: a random window, and one more epoch with nothing hidden."
        if wanted
        else "Choose them under “Beside this run”."
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        say(f"No control of this model is beside it. {words}", kind="muted")
        if wanted:
            icon = ":material/science:"
            st.button("Run the controls", icon=icon, on_click=_start, args=(wanted,))


def _start(controls: Sequence[RunConfig]) -> None:
    """Start controls; they stand beside the run also where somebody has chosen what does."""
    state = st.session_state
    with explained_errors():
        started = [jobs.start(config).name for config in controls]
        if state.compared is not None:
            state.compared = [*state.compared, *started]


def evidence_of(control: jobs.Job, shown: jobs.Job, test: str) -> Evidence | None:
    """Weigh a control against a run on a test set; None where that cannot be."""

    def weighed() -> Evidence | None:
        try:
            return weigh_control(opened(control.id), opened(shown.id).tests[test])
        except MaskTuneError:
            return None  # gone or damaged: no evidence either way

    return COMPUTED.get((written(control.path), written(shown.path), test), weighed)


def control_parts(
    shown: jobs.Job, comparable: Sequence[jobs.Job], test: str
) -> list[tuple[Direction, str]]:
    """Say which controls a run did not simply surpass: the newest of each kind is asked."""
    newest: dict[str, jobs.Job] = {}
    for job in jobs.controls_of(shown, comparable):
        newest.setdefault(job.config.masking.strategy, job)
    parts = [
        control_words(test, job.config.masking, found)
        for job in newest.values()
        if (found := evidence_of(job, shown, test)) is not None
    ]
    return [part for part in parts if part[0] != "up"]


def show_sweep(shown: jobs.Job, listed: list[jobs.Job], test: str) -> None:
    """Draw accuracy against k, or say how to get it."""
    with card(
        "compare_sweep",
        "Accuracy against k",
        hint="Runs that differ in nothing but k. The dotted line is the k of this run; bars are "
        "95% intervals (Wilson).",
    ) as tools:
        rows = [found for job in sweep(shown, listed) if (found := row_of(job, test)) is not None]
        if len(rows) > 1:
            download("CSV", lambda: csv(runs_table(None, rows)), "k-sweep.csv", place=tools)
            k = shown.config.masking.k
            chart(once(accuracy_against_k, rows, k=k), key="sweep")
            show(marks_line(sweep_marks(rows, k=k)))
            return
        say(how_to_sweep(shown), kind="muted")
        st.page_link(page_file("mask"), label="Choose another k", icon=":material/tune:")


def how_to_sweep(shown: jobs.Job) -> str:
    """Say why there is no curve over k, and how to get one."""
    if not strategy_of(shown.config.masking).uses_k:
        return "This run has no k. Open one that has, such as a MaskTune run, to see it."
    k = shown.config.masking.k
    other = "1.0 and 3.0" if k == 2.0 else "1.0 and 2.0" if k == 3.0 else "2.0 and 3.0"
    return (
        f"Only k = {k:g} so far. Finetune the same model at another k, such as {other}: the runs "
        "join into a curve here."
    )
