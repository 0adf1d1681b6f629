"""Pieces of HTML on a page."""

import streamlit as st


def show(html: str, *, kind: str = "") -> None:
    """Put a piece of the light table's HTML on the page."""
    st.html(f'<div class="mt {kind}">{html}</div>')
