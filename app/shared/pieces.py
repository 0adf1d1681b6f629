"""The pieces that pages are made of, each of them once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.shared.problems import explained_errors, show_problem
from app.shared.sheets import show
from app.state import USUAL, hold
from masktune.runs import jobs
from masktune.show.markup import piece
from masktune.show.tables import Table, csv
from masktune.show.theme import CONFIG

if TYPE_CHECKING:  # with PyTorch, which the first screen does not need
    from masktune.studies.jobs import StudyJob

POLL = 1.0
"""Seconds between two looks at a run or a study that works or waits."""

Thing = TypeVar("Thing")
MIME = {
    ".csv": "text/csv",
    ".png": "image/png",
    ".html": "text/html",
    ".json": "application/json",
    ".zip": "application/zip",
}


@contextmanager
def card(
    name: str, title: str, *, hint: str | None = None, table: Table | None = None
) -> Iterator[DeltaGenerator]:
    """Draw a card; what is drawn inside goes below its title, downloads into what it yields.

    The hint stands behind a question mark. A table can be saved as CSV.
    """
    with st.container(key=f"card_{name}", height="stretch"):
        head = st.container(horizontal=True, vertical_alignment="center")
        head.header(title, anchor=False, help=hint, width="stretch")
        if table is not None:
            download("CSV", lambda: csv(table), f"{name.rpartition('_')[2]}.csv", place=head)
        yield head


def download(
    label: str,
    data: bytes | Callable[[], bytes],
    name: str,
    *,
    place: DeltaGenerator | None = None,
    prominent: bool = False,
    icon: str = ":material/download:",
) -> None:
    """Draw a download button; a file that is not made yet is made once somebody asks for it.

    The name of the file tells buttons apart, and its ending says what it is. A prominent button has
    a border.
    """
    (place or st).download_button(
        label,
        data,
        file_name=name,
        mime=MIME.get(Path(name).suffix, "application/octet-stream"),
        key=f"save_{name}",
        on_click="ignore",
        type="secondary" if prominent else "tertiary",
        icon=icon,
        help=None if prominent else f"Save as {name}",
    )


def chart(figure: go.Figure, *, key: str) -> None:
    """Draw a figure, which nobody changes any more, with words for those who cannot see it."""
    if "to_dict" not in vars(figure):
        # Streamlit asks at every rerun, and a copy with its theme takes a tenth of a page's time.
        figure.to_dict = cache(figure.to_dict)
    st.plotly_chart(
        figure, theme="streamlit", config=CONFIG, alt=str(figure.layout.meta), key=f"chart_{key}"
    )


def empty(title: str, *words: str) -> None:
    """Say that there is nothing to show yet, and what to do; a line for each of the words."""
    show(piece("empty", title=title, words=words), kind="empty")


def confirm_delete(name: str, words: str, delete: Callable[[], None]) -> None:
    """Draw a button that deletes something by its name, once somebody has ticked the words."""
    sure = st.checkbox(words, key=f"sure_{name}")
    st.button("Delete for good", key=f"delete_{name}", disabled=not sure, on_click=delete)


def confirm_stop(what: str, name: str, kept: str, stop: Callable[[], None]) -> None:
    """Draw a button that stops work by its name, once somebody has been told what is kept of it."""
    with st.popover("Cancel", icon=":material/stop_circle:", wrap=False):
        st.markdown(f"**Stop this {what}?** {kept}; it can go on later.")
        if st.button(f"Stop the {what}", key=f"stop_{name}", type="primary"):
            with explained_errors(), st.spinner("Stopping"):
                stop()
            st.rerun()


def draw_stopped(what: str, job: "jobs.Job | StudyJob", resume: Callable[[Path], None]) -> None:
    """Say why work, such as "this run", has not come to its end, and let it go on."""
    failed, name = job.state == "failed", what.capitalize()
    if failed:
        show_problem(job.problem or f"{name} failed.", job.remedy or "Start it again.")
        if lines := jobs.last_lines(job.path):
            st.caption("The last lines of its log")
            st.code(lines, language=None, wrap_lines=True)
    else:
        st.markdown(f"{name} was {job.state}. What it has finished is kept.")
    label = "Start again" if failed else f"Go on with {what}"
    if st.button(label, icon=":material/restart_alt:", key=f"again_{job.id}"):
        with explained_errors():
            resume(job.path)
            st.rerun()


def pager(things: Sequence[Thing], size: int, *, key: str, name: str | None = None) -> list[Thing]:
    """Show one page of things at a time, and page numbers where there are several.

    The page is carried by a ``name`` of the state, if one is given. ``key`` tells these things from
    others, which begin with their first page.
    """
    pages, page = max(1, -(-len(things) // size)), 1
    if name is not None:
        hold(name, key)
        page = st.session_state[name] if 1 <= st.session_state[name] <= pages else USUAL[name]
    if pages > 1:
        # Streamlit's page numbers take no value from the session.
        page = min(st.pagination(pages, default=page, max_visible_pages=5, key=key), pages)
    if name is not None:
        st.session_state[name] = page
    return list(things[(page - 1) * size : page * size])
