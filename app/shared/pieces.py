"""The frame of a card on the Compare page: a title, and downloads at its right."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from masktune.show.theme import CONFIG

CSV = "text/csv"
PNG = "image/png"


@contextmanager
def card(name: str, title: str, *, hint: str | None = None) -> Iterator[DeltaGenerator]:
    """Draw a card; what is drawn inside goes below its title.

    Args:
        name: tells cards apart.
        title: on the card.
        hint: what the title means, behind a question mark.

    Yields:
        The place right of the title, for downloads.
    """
    with st.container(key=f"card_compare_{name}", height="stretch"):
        head = st.container(horizontal=True, vertical_alignment="center")
        head.header(title, anchor=False, help=hint, width="stretch")
        yield head


def save(
    place: DeltaGenerator,
    label: str,
    data: Callable[[], bytes],
    *,
    name: str,
    kind: str,
    prominent: bool = False,
    icon: str = ":material/download:",
) -> None:
    """Draw a download button whose file is only made once somebody asks for it.

    Args:
        place: where to draw it.
        label: on the button.
        data: makes the file.
        name: of the file; tells buttons apart.
        kind: MIME type.
        prominent: with a border.
        icon: before the label.
    """
    place.download_button(
        label,
        data,
        file_name=name,
        mime=kind,
        key=f"save_{name}",
        on_click="ignore",
        type="secondary" if prominent else "tertiary",
        icon=icon,
        help=None if prominent else f"Save as {name}",
    )


def chart(figure: go.Figure, *, key: str) -> None:
    """Draw a figure with its words for those who cannot see it."""
    st.plotly_chart(
        figure, theme="streamlit", config=CONFIG, alt=str(figure.layout.meta), key=f"chart_{key}"
    )
