"""Compare: what changed, group by group and picture by picture."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.compare import beside, metrics, numbers, pictures
from app.compare.outcome import Outcome, outcomes
from app.opened import opened
from app.shared.pages import heading, page_file
from app.shared.paper_card import show_paper
from app.shared.pieces import download
from app.shared.problems import explained_errors, show_problem
from app.shared.run_picker import Needs, choose_finished, choose_test, finished_run, invite
from app.shared.run_rows import finished_runs
from app.shared.sheets import show
from masktune.errors import MaskTuneError
from masktune.heat.strategies import strategy_of
from masktune.report.page import report_html
from masktune.runs import jobs
from masktune.runs.export import masks_zip, predictions_csv, weights_bytes
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
        if (job := finished_run(NEEDS)) is not None:
            _open(job, files)


def _open(job: jobs.Job, files: st.delta_generator.DeltaGenerator) -> None:
    try:
        every = outcomes(opened(job.id))
    except MaskTuneError as error:
        show_problem(error.problem, error.remedy)
        invite(NEEDS)
        return
    listed = finished_runs()
    outcome = _choose(job, listed, every)
    with files:
        _downloads(job, outcome, every)
    _result(job, listed, outcome, every)


def _choose(job: jobs.Job, listed: list[jobs.Job], every: Mapping[str, Outcome]) -> Outcome:
    """Let people choose the run and the test set."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=560):
            choose_finished(listed, label="Run", shown=job.id)
        return every[choose_test(every)]


def _downloads(job: jobs.Job, outcome: Outcome, every: Mapping[str, Outcome]) -> None:
    run, test = job.id, outcome.test.name
    row = st.container(horizontal=True, horizontal_alignment="right")
    download(
        "Report",
        lambda: report_html(outcome.view).encode(),
        f"{run}.html",
        place=row,
        prominent=True,
        icon=":material/description:",
    )
    download(
        "Numbers (CSV)",
        lambda: csv(*(groups_table(one.test) for one in every.values())),
        f"{run}-groups.csv",
        place=row,
        prominent=True,
    )
    more = row.popover("More", icon=":material/folder_zip:")
    download(
        f"Answers on “{test}” (CSV)",
        lambda: predictions_csv(outcome.view, tests=[outcome.test.name]),
        f"{run}-{test}-answers.csv",
        place=more,
    )
    download("Result (JSON)", (job.path / "result.json").read_bytes, f"{run}.json", place=more)
    download(
        "Weights after (safetensors)", (job.path / AFTER).read_bytes, f"{run}-{AFTER}", place=more
    )
    given = Path(job.config.model or "")
    if (origin := outcome.view.origin) is not None:
        download(
            f"Weights after, as {given.name} came",
            lambda: weights_bytes(outcome.view.after)[1],
            f"{given.stem}-tuned{origin.suffix}",
            place=more,
        )
    if strategy_of(job.config.masking).hides:
        _save_masks(more, outcome)


def _save_masks(place: DeltaGenerator, outcome: Outcome) -> None:
    """Offer keep maps and masked pictures; of a large set evenly chosen ones."""

    def evenly(pictures: int) -> range:
        return range(0, pictures, -(-pictures // MOST_MASKED))

    known = outcome.view.result.data.train
    shown = MOST_MASKED if known is None else len(evenly(known))
    every = f"up to {shown:,} " if known is None else f"{shown:,} of {known:,} "
    download(
        f"{'' if shown == known else every}masked pictures and keep maps (ZIP)".capitalize(),
        lambda: masks_zip(outcome.view, evenly(len(outcome.view.bundle.train))),
        f"{outcome.run}-masks.zip",
        place=place,
    )


def _result(
    job: jobs.Job,
    listed: list[jobs.Job],
    outcome: Outcome,
    every: Mapping[str, Outcome],
) -> None:
    show(metrics.verdict_html(outcome))
    metrics.show_metrics(outcome)
    if gaps := outcome.view.result.bg_gap:
        st.caption(
            f"BG-gap, accuracy on mixed_same minus mixed_rand: {points(gaps.before)} before, "
            f"{points(gaps.after)} after. The smaller, the less the background is worth."
        )
    show_paper(outcome.view, selective=False)
    with st.grid(2, min_column_width=470):
        numbers.show_groups(outcome, every)
        pictures.show_looks(outcome)
    pictures.show_flips(outcome)
    with st.grid(2, min_column_width=470):
        numbers.show_confusion(outcome)
        numbers.show_classes(outcome)
    beside.show_runs(job, listed, outcome.test.name)
    if numbers.round_series(outcome):
        with st.grid(2, min_column_width=470):
            numbers.show_rounds(outcome)
            beside.show_sweep(job, listed, outcome.test.name)
    else:
        beside.show_sweep(job, listed, outcome.test.name)
    st.page_link(
        page_file("abstain"),
        label="Next: hold back the answers that the two models are unsure of",
        icon=":material/arrow_forward:",
    )


render()
