"""Pieces of HTML on a page."""

import streamlit as st

from masktune.show.markup import piece


def show(html: str, *, kind: str = "") -> None:
    """Put a piece of the light table's HTML on the page."""
    st.html(f'<div class="mt {kind}">{html}</div>')


def say(text: str, *, kind: str = "") -> None:
    """Put a paragraph on the page; what is not Markup is escaped."""
    show(piece("paragraph", text=text, kind=kind))
