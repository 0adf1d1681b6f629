"""The list of runs: what each did and came to, and what can be done with it."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from markupsafe import Markup

from app.opened import result_of
from app.shared.pages import page_file
from app.shared.pieces import download, pager
from app.shared.run_menu import draw_about, draw_delete
from app.shared.run_picker import watch
from app.shared.run_rows import ahead_words, clock, run_title, worst_cells, worst_head
from app.shared.sheets import say, show
from app.shared.training import by_labels
from app.state import open_run
from masktune.config import BUNDLED, BY_RECIPE, LAST_LAYER, MASKTUNE
from masktune.files import Value
from masktune.runs.jobs import Job
from masktune.scores.groups import GroupScore
from masktune.scores.result import RunResult
from masktune.show.markup import piece
from masktune.show.tables import Cell, Column, Table, csv
from masktune.show.wording import NOTHING, count, duration, method_words

AT_ONCE = 10
"""Runs on one page of the list."""

COLUMNS = (0.6, 15, 3.4)
"""Widths of a row's parts: the box to choose it, what it is, what can be done."""


def draw_history(runs: Sequence[Job], *, of_studies: int) -> None:
    """Draw the runs on these pictures.

    Args:
        runs: the newest first; those of studies are not among them.
        of_studies: how many others grids and tournaments have made.
    """
    # Streamlit knows a fragment by its place: below the rows another run would move it.
    watch([job for job in runs if job.id != st.session_state.run])
    st.header("Runs on these pictures", anchor=False)
    if of_studies:
        also = " more" if runs else ""
        words = f"{count(of_studies, f'{also} run'.strip())} of grids and tournaments on Runs"
        st.page_link(page_file("runs"), label=words, icon=":material/view_list:")
    if not runs:
        return
    shown = pager(runs, AT_ONCE, key="runs_page")
    table = history_table(shown)
    with st.container(key="run_head"):
        _, head, _ = st.columns(COLUMNS, vertical_alignment="bottom")
    with head:
        heads = [Cell(column.title) for column in table.columns]
        show(piece("run_cells", cells=heads, kind="head"))
    for job, cells in zip(shown, table.rows, strict=True):
        with st.container(key=f"run_row_{job.id}"):
            _draw_row(job, cells)
    _draw_below(runs)


def _draw_row(job: Job, cells: Sequence[Cell]) -> None:
    choose, what, act = st.columns(COLUMNS, vertical_alignment="center")
    run, box = st.session_state.run, f"choose_{job.id}"
    st.session_state[box] = job.id in _chosen()
    with choose:
        st.checkbox(
            f"Choose {run_title(job)}",
            key=box,
            on_change=_choose,
            args=(job.id,),
            label_visibility="collapsed",
            disabled=job.state != "done",
        )
    with what:
        show(piece("run_cells", cells=cells, kind="here" if job.id == run else ""))
    with act, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        st.button(
            "Open", key=f"open_{job.id}", disabled=job.id == run, on_click=open_run, args=(job,)
        )
        with st.popover("", icon=":material/more_vert:", help="Name, note, tags, delete"):
            draw_about(job)
            draw_delete(job)


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
        download(
            "List as CSV", lambda: csv(history_table(runs), end="\r\n"), "runs.csv", prominent=True
        )
        if few:
            more = "one more" if compared else "two or more"
            say(f"Tick {more} to see them side by side.", kind="muted")


def rate_words(job: Job, result: RunResult | None) -> str:
    """Say at which rate a run finetunes; only a finished one knows what a file of weights said."""
    config = job.config
    if config.rival in LAST_LAYER:
        return NOTHING
    if config.rival in BY_RECIPE:
        return f"{config.training.lr:g}"
    taken = config.finetune_lr
    if taken is None and result is not None:
        taken = next((one.lr for one in result.masking.rounds), None)
    if taken is None and config.model in (None, BUNDLED):
        taken = config.training.last_lr
    return "usual" if taken is None else f"{taken:g}"


def standing(job: Job, result: RunResult | None) -> str:
    """Say how long a run took, where it stands, or what went wrong."""
    match job.state:
        case "done":
            return "its result cannot be read" if result is None else duration(result.took)
        case "running":
            return f"since {clock(job.began or job.created)}"
        case "queued":
            return f"waiting since {clock(job.created)}, {ahead_words(job.ahead)}"
        case "failed":
            return by_labels(job.problem)
        case _:
            return "can go on where it stopped"


def history_table(runs: Sequence[Job]) -> Table:
    """Show what runs did and came to, by the worst group of their first test set.

    Unlike those of other tables its rows are drawn one by one, each beside its buttons.
    """
    found = [(job, result_of(job)) for job in runs]
    tests = [result.first for _, result in found if result is not None]
    where = f" of “{tests[0].name}”" if tests else ""
    return Table(
        name="Runs on these pictures",
        columns=(
            Column("State", ("run", "name", "note", "state")),
            Column("Method", ("hidden", "k", "rounds")),
            Column("Learning rate", ("learning rate",)),
            Column(f"{worst_head(tests)}{where} before", ("test set", *_names("worst before"))),
            Column("0 to 100%", ()),
            Column("after", _names("worst after")),
            Column("Time, or what went wrong", ("seconds", "problem")),
        ),
        rows=[_row(job, result) for job, result in found],
    )


def _names(worst: str) -> tuple[str, ...]:
    return worst, f"{worst}, low", f"{worst}, high", f"{worst}, n"


def _row(job: Job, result: RunResult | None) -> list[Cell]:
    masking = job.config.masking
    notes = [method_words(job.config) if job.name else "", job.note]
    return [
        Cell(piece("run_state", state=job.state), values=(job.id, job.name, job.note, job.state)),
        Cell(
            run_title(job),
            Markup("<br>").join(filter(None, notes)),
            (masking.strategy, masking.k, masking.rounds)
            if job.config.rival == MASKTUNE
            else (job.config.rival, None, None),
            strong=bool(job.name),
        ),
        Cell(rate_words(job, result)),
        *_scores(result),
        Cell(standing(job, result), values=(result.took if result else None, job.problem)),
    ]


def _scores(result: RunResult | None) -> tuple[Cell, Cell, Cell]:
    if result is None:
        return Cell(values=(None,) * 5), Cell(), Cell(values=(None,) * 4)
    test = result.first
    before, line, after = worst_cells(test)
    return (
        replace(before, values=(test.name, *_values(test.before.worst))),
        line,
        replace(after, values=_values(test.after.worst)),
    )


def _values(worst: GroupScore) -> tuple[Value, ...]:
    return worst.accuracy, *(worst.interval or (None, None)), worst.count
