"""Abstain: let the model say nothing when it is unsure, and see what that costs and buys."""

import streamlit as st

from app.abstain import cards, files
from app.abstain.new_pictures import new_pictures_card
from app.abstain.pictures import pictures_card
from app.opened import computed
from app.shared.drawer import of_run, show_drawer
from app.shared.pages import heading, page_file
from app.shared.paper_card import show_paper
from app.shared.pieces import download
from app.shared.problems import explained_errors
from app.shared.run_picker import Needs, chosen_test
from app.shared.run_rows import finished_runs
from masktune.config import MASKTUNE
from masktune.runs.open import OpenSplit
from masktune.show.abstained import Rankings, rank

NEEDS = Needs(
    page="abstain",
    purpose="Abstain weighs the answers of the model before and the model after.",
    awaited="The curves appear",
)


def render() -> None:
    """Draw the page."""
    words, tools = st.columns([2, 1], vertical_alignment="bottom")
    with words:
        heading(
            "Abstain",
            "Let the model say nothing when it is unsure. Fewer answers, fewer mistakes.",
        )
    with explained_errors():
        test = chosen_test(NEEDS, finished_runs(st.session_state.run))
        if test is None:
            return
        rankings = computed(
            test, "rankings", lambda: rank(test.run.predictions.validation, test.pair)
        )
        with tools, st.container(horizontal=True, horizontal_alignment="right"):
            name = files.name(test, "risk-coverage.csv")
            download("Curves (CSV)", lambda: files.curves_csv(rankings), name, prominent=True)
        _results(test, rankings)
        show_paper(test.run, selective=True)
        show_drawer(of_run(test))


def _results(test: OpenSplit, rankings: Rankings) -> None:
    left, right = st.columns((1.9, 1))
    with right:
        readings, score = cards.point_card(test, rankings)
    with left:
        cards.curves_card(test, rankings, readings, score)
    reading = readings[score]
    left, right = st.columns((1, 1.5))
    with left:
        cards.groups_card(test, rankings, reading)
    with right:
        pictures_card(test, rankings.test[score], reading)
    cards.deciles_card(test, rankings, score)
    cards.table_card(test, rankings)
    new_pictures_card(test, reading)
    with st.container(horizontal=True):
        if test.run.config.rival == MASKTUNE:
            st.page_link(page_file("mask"), label="Try another k", icon=":material/tune:")
        else:
            label = "Try another method"
            st.page_link(page_file("finetune"), label=label, icon=":material/tune:")
        st.page_link(
            page_file("compare"), label="Compare before and after", icon=":material/compare:"
        )


render()
