"""Abstain: let the model say nothing when it is unsure, and see what that costs and buys."""

from zipfile import BadZipFile

import streamlit as st

from app import cached, jobs
from app.components import abstain_cards as cards
from app.components.abstain_files import curves_csv
from app.components.abstain_missing import finished_run
from app.components.abstain_sheet import pictures_card
from app.components.abstain_tested import Tested, tested
from app.components.frame import heading, page_file
from app.components.problems import explained_errors, plain
from masktune.errors import RunFolderError
from masktune.view import RunView
from masktune.wording import count, method_words

WIDE = (1.9, 1)
"""The curve's share of the page against its operating point's."""


def render() -> None:
    """Draw the page."""
    words, tools = st.columns([1.4, 1], vertical_alignment="bottom")
    with words:
        heading(
            "Abstain",
            "Let the model say nothing when it is unsure. Fewer answers, fewer mistakes.",
        )
    with explained_errors():
        job = finished_run()
        if job is not None:
            view = _opened(job)
            with tools:
                test = _chosen_test(job, view)
            _results(test)


def _opened(job: jobs.Job) -> RunView:
    """Read a finished run, or say that it cannot be read: its folder may have been touched."""
    try:
        return cached.run(job.id)
    except (OSError, BadZipFile, KeyError, ValueError) as error:
        raise RunFolderError(
            f"The files of run '{job.id}' cannot be read: {error}",
            "Finetune again, or open another run.",
        ) from error


def _chosen_test(job: jobs.Job, view: RunView) -> Tested:
    names = list(view.predictions.tests)
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom"):
        name = names[0]
        if len(names) > 1:
            name = (
                st.segmented_control(
                    "Test set", names, default=names[0], required=True, key="abstain_test"
                )
                or name
            )
        content = cached.digest(job.path / "predictions.npz")
        test = tested(job.id, content, view, name=name)
        st.download_button(
            "Curves (CSV)",
            lambda: curves_csv(test.rankings),
            file_name=test.file_name("risk-coverage.csv"),
            icon=":material/download:",
            on_click="ignore",
        )
    return test


def _results(test: Tested) -> None:
    told = (
        f"{test.view.bundle.card.title}. {method_words(test.view.config.masking)}. "
        f"Test set “{test.name}”, n = {count(len(test.pair.before.labels))}."
    )
    st.caption(plain(told))
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
