"""Pieces of HTML on a page."""

from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st
from markupsafe import escape

from app.state import address
from masktune.show.markup import piece

MARK = 'href="?shown='


def picture_link(where: str) -> str:
    """Return what leads to the page of one picture: "SPLIT/NUMBER", or an uploaded file.

    The script that keeps a click in the session adds the rest of the address.
    """
    return f"picture?{urlencode({'picture': where})}"


def picture_links(split: str, rows: Sequence[int]) -> list[str]:
    """Return what leads to the pages of some pictures of a split."""
    return [picture_link(f"{split}/{row}") for row in rows]


def show(html: str, *, kind: str = "") -> None:
    """Put a piece of the light table's HTML on the page.

    A mark's link is made whole: it opens its pictures of this run also in a new tab, and where it
    is followed before the script that keeps it in the session has come.
    """
    if MARK in html and (here := address(shown=False)):
        html = str(html).replace(MARK, f'href="?{escape(here)}&amp;shown=')
    st.html(f'<div class="mt {kind}">{html}</div>')


def say(text: str, *, kind: str = "") -> None:
    """Put a paragraph on the page; what is not Markup is escaped."""
    show(piece("paragraph", text=text, kind=kind))
