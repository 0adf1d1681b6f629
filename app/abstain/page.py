"""Abstain: let the model say nothing when it is unsure, and see what that costs and buys."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.abstain import cards
from app.abstain.files import curves_csv
from app.abstain.sheet import pictures_card
from app.abstain.tested import Tested, tested
from app.opened import opened
from app.shared.pages import heading, page_file
from app.shared.paper_card import show_paper
from app.shared.pieces import download
from app.shared.problems import explained_errors, show_problem
from app.shared.run_picker import Needs, choose_finished, choose_test, finished_run, invite
from app.shared.run_rows import finished_runs
from masktune.errors import MaskTuneError
from masktune.runs import jobs
from masktune.runs.open import OpenRun

NEEDS = Needs(
    page="abstain",
    purpose="Abstain weighs the answers of the model before and the model after.",
    awaited="The curves appear",
)
WIDE = (1.9, 1)
"""The curve's share of the page against its operating point's."""


def render() -> None:
    """Draw the page."""
    words, tools = st.columns([2, 1], vertical_alignment="bottom")
    with words:
        heading(
            "Abstain",
            "Let the model say nothing when it is unsure. Fewer answers, fewer mistakes.",
        )
    with explained_errors():
        if (job := finished_run(NEEDS)) is not None:
            _open(job, tools)


def _open(job: jobs.Job, tools: DeltaGenerator) -> None:
    try:
        view = opened(job.id)
        view.predictions  # noqa: B018 (what cannot be read is said before anything is drawn)
    except MaskTuneError as error:
        show_problem(error.problem, error.remedy)
        invite(NEEDS)
        return
    test = _choose(job, view)
    with tools, st.container(horizontal=True, horizontal_alignment="right"):
        name = test.file_name("risk-coverage.csv")
        download("Curves (CSV)", lambda: curves_csv(test.rankings), name, prominent=True)
    _results(test)
    show_paper(view, selective=True)


def _choose(job: jobs.Job, view: OpenRun) -> Tested:
    """Let people choose the run and the test set."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=560):
            choose_finished(finished_runs(), label="Run", shown=job.id)
        name = choose_test(list(view.tests))
    return tested(view.tests[name])


def _results(test: Tested) -> None:
    left, right = st.columns(WIDE)
    with right:
        readings, score = cards.point_card(test)
    with left:
        cards.curves_card(test, readings, score)
    reading = readings[score]
    left, right = st.columns((1, 1.5))
    with left:
        cards.groups_card(test, reading)
    with right:
        pictures_card(test, reading)
    cards.table_card(test)
    with st.container(horizontal=True):
        st.page_link(page_file("mask"), label="Try another k", icon=":material/tune:")
        st.page_link(
            page_file("compare"), label="Compare before and after", icon=":material/compare:"
        )


render()
