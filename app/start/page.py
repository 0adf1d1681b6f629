"""Start: say what this is, show it, let people in."""

import json
from collections.abc import Sequence
from itertools import islice

import streamlit as st
from markupsafe import Markup

from app.shared.pages import page_file
from app.shared.problems import explained_errors
from app.shared.run_rows import RunRow, clock, finished_runs, row_of, worst_cells, worst_head
from app.shared.sheets import show
from app.state import open_demo
from masktune.files import ASSETS
from masktune.runs.load import title_of
from masktune.show.markup import piece
from masktune.show.painting import data_uri
from masktune.show.tables import Cell, Column, Table, html
from masktune.show.wording import count, duration, method_words, percent

RECENT = 6
"""Runs listed on the first screen."""


def render() -> None:
    """Draw the page."""
    words, pictures = st.columns([1, 1.9], gap="large", vertical_alignment="center")
    with words:
        _invitation()
    with pictures, st.container(key="card_story"):
        show(story_html(json.loads((ASSETS / "start.json").read_text("utf-8"))))
    with explained_errors():
        runs = [job for job in finished_runs() if not job.of_study]  # a grid would fill the list
        found = (row for job in runs if (row := row_of(job)) is not None)
        if rows := list(islice(found, RECENT)):
            st.header("Continue a run", anchor=False)
            with st.container(key="card_recent"):
                show(html(recent_table(rows)))
                st.page_link(page_file("runs"), label="All runs", icon=":material/view_list:")
                if len(runs) > len(rows):
                    st.caption(f"The {len(rows)} newest of {count(len(runs))}. Runs lists all.")


def _invitation() -> None:
    st.title("See what your model leans on. Then hide it.", anchor=False)
    st.markdown(
        ":gray[MaskTune Studio shows where a trained image classifier looks, covers that spot in "
        "the training pictures, and trains for one more epoch. Then it tells you, group by group, "
        "whether that helped.]"
    )
    with st.container(horizontal=True):
        if st.button("Open the demo", type="primary", icon=":material/play_arrow:"):
            open_demo()
            st.switch_page(page_file("mask"))
        if st.button("Choose pictures and model", icon=":material/folder_open:"):
            st.switch_page(page_file("load"))
    st.caption("The demo needs no download and no GPU. Your files are read, never changed.")


def story_html(facts: dict[str, float | str]) -> Markup:
    """Give the four pictures of the first screen with their captions."""
    hidden = percent(float(facts["hidden_fraction"]))
    before, after = percent(float(facts["before_sure"])), percent(float(facts["after_sure"]))
    steps = (
        (
            "picture",
            "1. The picture",
            f"In training, a blue square came with 0–4. The model says {facts['before']}, "
            f"{before} sure.",
        ),
        ("heat", "2. Where it looks", "At the square. It never needed to read the digit."),
        (
            "hidden",
            "3. Hide that",
            f"Pixels hotter than mean + 2 sigma are covered: {hidden} of this picture.",
        ),
        (
            "after",
            "4. After one epoch",
            f"It looks at the digit and says {facts['after']}, {after} sure.",
        ),
    )
    figures = [
        (title, text, data_uri((ASSETS / f"start-{name}.png").read_bytes()))
        for name, title, text in steps
    ]
    return piece("story", figures=figures)


def recent_table(rows: Sequence[RunRow]) -> Table:
    """Show finished runs with their worst group before and after, each a link that opens it."""
    return Table(
        name="Continue a run",
        kind="links",
        columns=(
            Column("Run"),
            Column(f"{worst_head(row.test for row in rows)} before"),
            Column("0 to 100%", left=True, roomy=True),
            Column("after"),
            Column("Took", roomy=True),
            Column("When", roomy=True),
        ),
        rows=[
            (
                Cell(
                    piece(
                        "link",
                        href=f"compare?run={row.job.id}",
                        text=row.job.name or title_of(row.job.config),
                    ),
                    method_words(row.job.config),
                ),
                *worst_cells(row.test),
                Cell(duration(row.seconds)),
                Cell(clock(row.job.created, today="today, %H:%M")),
            )
            for row in rows
        ],
    )


render()
