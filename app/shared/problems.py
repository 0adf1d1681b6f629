"""The one place that shows what went wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from app.shared.training import by_labels
from masktune.config import names_code
from masktune.errors import MaskTuneError, ModelError


@contextmanager
def explained_errors() -> Iterator[None]:
    """Show what the user can put right; let everything else crash loudly."""
    try:
        yield
    except ModelError as error:
        show_problem(error.problem, here(error.remedy, error.choices))
    except MaskTuneError as error:
        show_problem(error.problem, error.remedy)


def here(remedy: str, choices: tuple[str, ...] | None) -> str:
    """Return a remedy in the words of a page, where an architecture is chosen by a menu.

    Args:
        remedy: in the words of the command line.
        choices: see ``ModelError``.
    """
    if choices is None:
        return remedy
    if choices and not any(map(names_code, choices)):
        return f"Choose {' or '.join(choices)} under Architecture."
    return (
        "Choose the architecture it was trained with under Architecture, if it is there; a class "
        "of your own works on the command line only."
    )


def show_problem(problem: str, remedy: str) -> None:
    """Show one problem and one remedy, with options as pages call them."""
    problem, remedy = plain(by_labels(problem)), plain(by_labels(remedy))
    st.error(f"**{problem}**\n\n{remedy}", icon=":material/build:")


def plain(text: str) -> str:
    """Keep text from being read as Markdown: a path may hold stars, a message brackets."""
    return "".join(f"\\{mark}" if mark in "\\`*_{}[]()#+!|<>$:~" else mark for mark in text)
