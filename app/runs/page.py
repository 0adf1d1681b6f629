"""Runs: all that was tried in this home, found, set side by side and kept tidy."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

import streamlit as st

from app.runs import actions, grid, together
from app.runs.table import (
    MOST_SETTINGS,
    STATES,
    Wanted,
    differing,
    matching,
    method_of,
    method_title,
    numbers,
    ordered,
    pictures_titles,
    runs_table,
    setting_title,
)
from app.shared.pages import heading, page_file
from app.shared.pieces import download, empty, pager
from app.shared.problems import explained_errors, plain
from app.shared.run_menu import draw_undo
from app.shared.run_picker import watch
from app.shared.run_rows import run_title, runs_words
from app.shared.sheets import say, show
from app.state import keep, open_run
from masktune.datasets.catalogue import CATALOGUE
from masktune.runs import jobs
from masktune.runs.jobs import Job
from masktune.show.markup import piece
from masktune.show.tables import Cell, Column, Table, csv
from masktune.show.wording import count

AT_ONCE = 20
"""Runs on one page of the list."""


ORDERS = {"created": ("Newest first", "Oldest first"), "name": ("Z to A", "A to Z")}
"""What the two orders are called where "largest" says little, by what is sorted by."""


def render() -> None:
    """Draw the page."""
    words, tools = st.columns([1, 1], vertical_alignment="bottom")
    with words:
        heading("Runs", "All that was tried here. Tick some to see them side by side.")
    with explained_errors():
        with st.spinner("Reading the runs", show_time=True):
            # One of another version's dataset can be neither opened nor named.
            runs = [job for job in jobs.every() if job.config.dataset in CATALOGUE]
        with tools, st.container(horizontal=True, horizontal_alignment="right"):
            place = st.container(width="content")
            actions.draw_import()
            actions.draw_trash()
        draw_undo()
        if not runs:
            _draw_none()
        else:
            _draw_list(runs, place)
            ticked = actions.ticked(runs)
            if ticked:
                actions.draw_ticked(ticked)
                together.draw(ticked)
        grid.draw()
        together.show_clicked()
        # Streamlit knows a fragment by its place: it stands where nothing above it comes or goes.
        watch([job for job in runs if job.active])


def _draw_none() -> None:
    with st.container(key="empty_runs", horizontal_alignment="center"):
        empty("No run yet", "What is finetuned here, or on the command line, is listed here.")
        if st.button("Choose pictures and model", type="primary"):
            st.switch_page(page_file("load"))


def _draw_list(runs: Sequence[Job], place: "st.delta_generator.DeltaGenerator") -> None:
    with st.container(key="card_runs_list"):
        all_settings = differing(runs)
        wanted = _draw_filters(runs, all_settings)
        found = matching(runs, wanted)
        settings = differing(found) if len(found) < len(runs) else all_settings
        listed = ordered(found, wanted)
        download(
            "CSV",
            lambda: csv(
                runs_table(listed, settings=settings, test=wanted.test, whole=True), end="\r\n"
            ),
            "runs.csv",
            place=place,
            prominent=True,
        )
        if not listed:
            say("No run is like that. Ask for less, or for all.", kind="muted")
            return
        more = [setting_title(name) for name in settings[MOST_SETTINGS:]]
        every = runs_words(len(runs))
        told = every if len(listed) == len(runs) else f"{count(len(listed))} of {every}"
        if more:
            told += f"; they also differ in {', '.join(more).lower()}, which the CSV has"
        say(f"{told}.", kind="muted")
        key = "_".join(["runs_list", *astuple(wanted)])
        shown = pager(listed, AT_ONCE, key=key, name="runs_list_page")
        _draw_rows(shown, runs_table(shown, settings=settings, test=wanted.test))


def _draw_filters(runs: Sequence[Job], settings: Sequence[str]) -> Wanted:
    state = st.session_state
    pictures = pictures_titles(runs)
    methods = {(name := method_of(job.config)): method_title(name) for job in runs}
    tests = {name: name for job in runs if job.digest for name in job.digest.tests}
    sorts = {name: title for name, (title, _) in numbers().items()}
    sorts |= {"name": "Name"} | {name: setting_title(name) for name in settings}
    st.text_input(
        "Search",
        placeholder="Name, note, tag, pictures or method",
        icon=":material/search:",
        **keep("runs_search"),
    )
    with st.grid(6, min_column_width=130):
        _choose("Pictures", "runs_dataset", {"": "All", **_sorted(pictures)})
        _choose("Method", "runs_method", {"": "All", **_sorted(methods)})
        _choose("State", "runs_state", STATES)
        _choose(
            "Evaluated on",
            "runs_test",
            {"": "First test set"} | tests,
        )
        _choose("Sort by", "runs_sort", sorts)
        down, up = ORDERS.get(state.runs_sort, ("Largest first", "Smallest first"))
        _choose("Order", "runs_order", {"down": down, "up": up})
    names = ("search", "dataset", "method", "state", "test", "sort", "order")
    return Wanted(**{name: str(state[f"runs_{name}"]) for name in names})


def _sorted(titles: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(titles.items(), key=lambda one: one[1].casefold()))


def _choose(label: str, name: str, titles: Mapping[str, str]) -> None:
    state = st.session_state
    if state[name] not in titles:  # an address may name what is not here
        state[name] = next(iter(titles))
    st.selectbox(label, list(titles), format_func=titles.__getitem__, **keep(name))


def _draw_rows(shown: Sequence[Job], table: Table) -> None:
    columns = table.columns
    wide = " ".join(map(_width, columns))
    narrow = " ".join(_width(column) for column in columns if not column.roomy)

    def cells(row: Sequence[Cell], kind: str) -> str:
        return piece(
            "listed_cells",
            columns=columns,
            cells=row,
            kind=kind,
            wide=wide,
            narrow=narrow,
        )

    with st.container(key="runs_head", horizontal=True, vertical_alignment="bottom"):
        actions.draw_tick_all(shown)
        show(cells([Cell(column.title) for column in columns], "head"))
        st.html("<span></span>", width=76)
    here = st.session_state.run
    for job, row in zip(shown, table.rows, strict=True):
        key = f"run_row_{job.id.replace('/', '_')}"
        with st.container(key=key, horizontal=True, vertical_alignment="center"):
            actions.draw_tick(job)
            show(cells(row, "here" if job.id == here else ""))
            if st.button(
                "Open",
                key=f"open_{job.id}",
                on_click=_open,
                args=(job,),
                width=76,
                help=f"Show {plain(run_title(job))}",
            ):
                st.switch_page(page_file(_page_of(job)))


def _open(job: Job) -> None:
    open_run(job)
    if job.config.only_before:  # there is nothing to show but the model that it makes
        st.session_state.update(run=None, training=None if job.state == "done" else job.id)


def _page_of(job: Job) -> str:
    if job.config.only_before:
        return "load"
    return "compare" if job.state == "done" else "finetune"


def _width(column: Column) -> str:
    if column.title == "Run":
        return "minmax(150px,2.6fr)"
    return {
        "State": "92px",
        "0 to 100%": "minmax(70px,1fr)",
        "Worst after": "minmax(100px,1fr)",
    }.get(column.title, "minmax(64px,.8fr)")


render()
