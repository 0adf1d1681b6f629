"""Compare: what changed, group by group and picture by picture."""

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.compare import beside, metrics, numbers, pictures
from app.shared.drawer import of_run, show_drawer
from app.shared.pages import heading, page_file
from app.shared.paper_card import show_paper
from app.shared.pieces import download
from app.shared.problems import explained_errors
from app.shared.run_picker import Needs, chosen_test
from app.shared.run_rows import comparable, finished_runs
from app.shared.sheets import show
from masktune.heat.strategies import strategy_of
from masktune.report.page import report_html
from masktune.runs import jobs
from masktune.runs.export import masks_zip, predictions_csv, weights_bytes
from masktune.runs.open import OpenRun, OpenSplit
from masktune.runs.resume import AFTER
from masktune.show.results import groups_table
from masktune.show.tables import csv
from masktune.show.wording import points

NEEDS = Needs(
    page="compare",
    purpose="Compare sets the model before beside the model after.",
    awaited="Before and after appear",
)
MOST_MASKED = 1000
"""Masked pictures in one download; ``python -m masktune masks`` writes all."""


def render() -> None:
    """Draw the page."""
    words, files = st.columns([1, 1], vertical_alignment="bottom")
    with words:
        heading("Compare", "What changed, group by group and picture by picture.")
    with explained_errors():
        state = st.session_state
        listed = finished_runs(state.run, named=state.compared or ())
        if (test := chosen_test(NEEDS, listed)) is not None:
            job = jobs.look(test.run.path)
            others = comparable(job, listed)
            # The headline goes out before anything else is drawn.
            show(metrics.verdict_html(test, beside.control_parts(job, others, test.name)))
            with files:
                _downloads(test)
            _result(test, job, listed, others)
            show_drawer(of_run(test))


def _downloads(test: OpenSplit) -> None:
    view, run = test.run, test.run.id
    row = st.container(horizontal=True, horizontal_alignment="right")
    download(
        "Report",
        lambda: report_html(view).encode(),
        f"{run}.html",
        place=row,
        prominent=True,
        icon=":material/description:",
    )
    download(
        "Numbers (CSV)",
        lambda: csv(*map(groups_table, view.tests.values())),
        f"{run}-groups.csv",
        place=row,
        prominent=True,
    )
    more = row.popover("More", icon=":material/folder_zip:")
    download(
        f"Answers on “{test.name}” (CSV)",
        lambda: predictions_csv(view, tests=[test.name]),
        f"{run}-{test.name}-answers.csv",
        place=more,
    )
    download("Result (JSON)", (view.path / "result.json").read_bytes, f"{run}.json", place=more)
    download(
        "Weights after (safetensors)", (view.path / AFTER).read_bytes, f"{run}-{AFTER}", place=more
    )
    given = Path(view.config.model or "")
    if (origin := view.origin) is not None:
        download(
            f"Weights after, as {given.name} came",
            lambda: weights_bytes(view.after)[1],
            f"{given.stem}-tuned{origin.suffix}",
            place=more,
        )
    if strategy_of(view.config.masking).hides:
        _save_masks(more, view)


def _save_masks(place: DeltaGenerator, view: OpenRun) -> None:
    """Offer keep maps and masked pictures; of a large set evenly chosen ones."""

    def evenly(pictures: int) -> range:
        return range(0, pictures, -(-pictures // MOST_MASKED))

    known = view.result.data.train
    shown = MOST_MASKED if known is None else len(evenly(known))
    every = f"up to {shown:,} " if known is None else f"{shown:,} of {known:,} "
    download(
        f"{'' if shown == known else every}masked pictures and keep maps (ZIP)".capitalize(),
        lambda: masks_zip(view, evenly(len(view.bundle.train))),
        f"{view.id}-masks.zip",
        place=place,
    )


def _result(test: OpenSplit, job: jobs.Job, listed: list[jobs.Job], others: list[jobs.Job]) -> None:
    metrics.show_metrics(test)
    if gaps := test.run.result.bg_gap:
        st.caption(
            f"BG-gap, accuracy on mixed_same minus mixed_rand: {points(gaps.before)} before, "
            f"{points(gaps.after)} after. The smaller, the less the background is worth."
        )
    show_paper(test.run, selective=False)
    with st.grid(2, min_column_width=470):
        numbers.show_groups(test)
        pictures.show_looks(test)
    pictures.show_flips(test)
    with st.grid(2, min_column_width=470):
        numbers.show_confusion(test)
        numbers.show_classes(test)
    beside.show_runs(job, others, test.name)
    if numbers.round_series(test):
        with st.grid(2, min_column_width=470):
            numbers.show_rounds(test)
            beside.show_sweep(job, listed, test.name)
    else:
        beside.show_sweep(job, listed, test.name)
    st.page_link(
        page_file("abstain"),
        label="Next: abstain where the two models are unsure",
        icon=":material/arrow_forward:",
    )
    st.page_link(
        page_file("picture"),
        label="Ask both models about one picture, also your own",
        icon=":material/center_focus_strong:",
    )


render()
