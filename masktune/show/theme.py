"""What all figures share: the palette, the empty frame, labels that do not collide."""

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

AFTER = "#12907F"
BEFORE = "#808C93"
JOINT = "#B0760C"
HIDDEN = "#FF2D6F"
SERIES = ("#3E86F7", "#BD5BC6", "#926327", "#7686E1", "#496AB6")
"""For groups and test sets, which are neither after nor before nor joint."""

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
WIDTH = 2.5
STYLES: dict[str, dict[str, Any]] = {
    "before": {"color": BEFORE, "width": WIDTH, "dash": "dash"},
    "after": {"color": AFTER, "width": WIDTH, "dash": "solid"},
    "joint": {"color": JOINT, "width": 1.8 * WIDTH, "dash": "solid"},
    "own": {"color": SERIES[1], "width": WIDTH, "dash": "dashdot"},
}
"""The line of each score."""

MOST_POINTS = 1000
"""Points of a curve that are drawn; more cannot be told apart on a screen."""

LONGEST = 32
"""Letters of a name beside a row."""

CONFIG = {"displayModeBar": False, "responsive": True, "scrollZoom": False}
"""What to hand to Plotly beside a figure."""

_CLEAR = "rgba(0,0,0,0)"


def empty(*, height: int) -> go.Figure:
    """Return a figure without marks, and without what a page does not want of Plotly's.

    That is background, zoom, margins and the axes' zero lines. Colours of text, axes and grid are
    left to the page.
    """
    axis = {
        "fixedrange": True,
        "zeroline": False,
        "automargin": True,
        "title": {"font": {"size": 13}, "standoff": 8},
        "ticks": "outside",  # unseen: they only keep the labels off the marks
        "ticklen": 6,
        "tickcolor": _CLEAR,
    }
    # Under Streamlit's theme 8 touches the tick labels.
    upright = {**axis, "title": {"font": {"size": 13}, "standoff": 20}}
    # One layout: each update of a figure takes Plotly as long as making it.
    return go.Figure(
        layout={
            "height": height,
            "paper_bgcolor": _CLEAR,
            "plot_bgcolor": _CLEAR,
            "dragmode": False,
            "margin": {"l": 8, "r": 16, "t": 16, "b": 8},
            "hovermode": "closest",
            "font": {"size": 13},
            "xaxis": axis,
            "yaxis": upright,
        }
    )


def told(figure: go.Figure, words: str) -> go.Figure:
    """Keep with a figure what it shows, for those who cannot see it."""
    return figure.update_layout(meta=words)


def legend_below(figure: go.Figure, *, column: int = 0) -> None:
    """Put the key under the figure, where it does not move the marks; clicks change nothing.

    Its entries stand side by side, or one below the other in a ``column`` so many pixels tall:
    Plotly would take what a taller key needs from the marks, and hide the end of it.
    """
    below = 58 if figure.layout.xaxis.title.text else 34  # under the axis' own title
    room = column or 38
    figure.update_layout(
        showlegend=True,
        legend={
            "orientation": "v" if column else "h",
            "x": 0,
            "y": -below / max(figure.layout.height - 24 - room - below, 64),
            "yanchor": "top",
            "traceorder": "normal",
            "itemclick": False,
            "itemdoubleclick": False,
            "maxheight": column or None,
        },
        margin_b=room + below,
    )


def label_rows(figure: go.Figure, labels: Sequence[tuple[str, str, str]]) -> None:
    """Name the rows 0, 1, ... of a figure, from the top down: name, its strong part, and a note.

    Names stand over their rows: at the side they would leave a narrow page no room for the marks.
    """
    for row, label in enumerate(labels):
        figure.add_annotation(
            text=_row_label(*label),
            x=0,
            xref="paper",
            xanchor="left",
            y=row,
            yanchor="bottom",
            yshift=12,
            showarrow=False,
        )
    figure.update_yaxes(showticklabels=False, range=[len(labels) - 0.4, -0.75], showgrid=False)


def _row_label(name: str, strong: str, note: str) -> str:
    # Plotly reads a little HTML in labels, so names are escaped.
    parts = strong, name.removeprefix(strong)
    first, rest = (p if len(p) <= LONGEST else f"{p[: LONGEST - 1]}…" for p in parts)
    return f"<b>{escape(first)}</b>{escape(rest)}  {escape(note)}"


def right_column(figure: go.Figure, head: str, texts: Sequence[str]) -> None:
    """Write one text at the right end of every row, and a head over them."""
    for row, text in enumerate([head, *texts], start=-1):
        figure.add_annotation(
            text=escape(text),
            x=1,
            xref="paper",
            xanchor="left",
            xshift=12,
            y=row if row >= 0 else -0.6,
            showarrow=False,
        )
    figure.update_layout(margin_r=72)


def whiskers(values: Sequence[tuple[float, float, float]], *, thickness: int) -> dict[str, object]:
    """Return the error bars of marks, each a value with the bounds of its interval."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - value for value, _, high in values],
        "arrayminus": [value - low for value, low, _ in values],
        "thickness": thickness,
        "width": 0,
    }


def label_ends(
    figure: go.Figure,
    ends: Mapping[str, tuple[float, float]],
    *,
    top: float,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Name lines at their right ends instead of in a legend, with a note after some names.

    ``ends`` are (x, y) by name; ``top`` is the upper end of the y axis, which starts at 0.
    """
    line_height = 24 / figure.layout.height * top
    heights = spread({name: y for name, (_, y) in ends.items()}, gap=line_height, top=top)
    for name, (x, _) in ends.items():
        figure.add_annotation(
            text=f"<b>{escape(name)}</b> {escape(notes.get(name, ''))}".rstrip(),
            x=x,
            y=heights[name],
            xanchor="left",
            xshift=8,
            showarrow=False,
        )
    longest = max(len(f"{name} {notes.get(name, '')}") for name in ends)
    figure.update_layout(showlegend=False, margin_r=24 + 7 * longest)


def spread(heights: Mapping[str, float], *, gap: float, top: float) -> dict[str, float]:
    """Move labels apart that would overlap; their order stays, and none rises above ``top``.

    >>> spread({"a": 0.5, "b": 0.5, "c": 0.25}, gap=0.25, top=1.0)
    {'c': 0.25, 'a': 0.5, 'b': 0.75}
    >>> spread({"a": 1.0, "b": 0.9375}, gap=0.25, top=1.0)
    {'b': 0.75, 'a': 1.0}
    """
    names = sorted(heights, key=lambda name: heights[name])
    placed = [heights[name] for name in names]
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    ceiling = top
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return dict(zip(names, placed, strict=True))


def thinned(length: int) -> npt.NDArray[np.int64]:
    """Give the positions of at most ``MOST_POINTS`` of a curve's points, both ends among them."""
    return np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).astype(np.int64))
