"""The one place that shows what went wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from masktune.errors import MaskTuneError


@contextmanager
def explained_errors() -> Iterator[None]:
    """Show what the user can put right; let everything else crash loudly."""
    try:
        yield
    except MaskTuneError as error:
        show_problem(error.problem, error.remedy)


def show_problem(problem: str, remedy: str) -> None:
    """Show one problem and one remedy."""
    st.error(f"**{plain(problem)}**\n\n{plain(remedy)}", icon=":material/build:")


def plain(text: str) -> str:
    """Keep text from being read as Markdown: a path may hold stars, a message brackets."""
    return "".join(f"\\{mark}" if mark in "\\`*_{}[]()#+!|<>$:~" else mark for mark in text)
