"""Contact sheets: many pictures as one sprite, text beside them, nothing baked into pixels."""

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from masktune.show.painting import Picture, data_uri, jpeg_bytes, png_bytes, sheet


def sheet_html(
    tiles: Sequence[Picture],
    captions: Sequence[str],
    *,
    labels: Sequence[str],
    across: int,
    photos: bool = False,
) -> str:
    """Give a grid of pictures with captions.

    Args:
        tiles: pictures of one size.
        captions: HTML under each; names in it are escaped already.
        labels: plain text that stands for each picture where it cannot be seen.
        across: pictures side by side.
        photos: whether to encode with a little loss, many times smaller.
    """
    cells = [
        f"<figure>{tile}<figcaption>{caption}</figcaption></figure>"
        for tile, caption in zip(_tiles(len(tiles), across, labels), captions, strict=True)
    ]
    return f'<div class="sheet" style="{_style(tiles, across, photos)}">{"".join(cells)}</div>'


def rows_html(
    rows: Mapping[str, Sequence[Picture]],
    captions: Sequence[str],
    *,
    labels: Sequence[str],
    photos: bool = False,
) -> str:
    """Give named rows of pictures, one column a picture, captions at the foot.

    Args:
        rows: by row name, the same number of pictures in each.
        captions: HTML at the foot of each column.
        labels: plain text for each column.
        photos: whether to encode with a little loss.
    """
    across = len(captions)
    tiles = [tile for row in rows.values() for tile in row]
    told = [f"{name}, {label}" for name in rows for label in labels]
    drawn = _tiles(len(tiles), across, told)
    cells = []
    for number, name in enumerate(rows):
        cells.append(f'<span class="row">{escape(name)}</span>')
        cells += drawn[number * across : (number + 1) * across]
    cells.append("<span></span>")
    cells += [f"<figcaption>{caption}</figcaption>" for caption in captions]
    return f'<div class="sheet rows" style="{_style(tiles, across, photos)}">{"".join(cells)}</div>'


def show(html: str, *, kind: str = "") -> None:
    """Put a piece of the light table's HTML on the page."""
    st.html(f'<div class="mt {kind}">{html}</div>')


def _style(tiles: Sequence[Picture], across: int, photos: bool) -> str:
    sprite = sheet(tiles, across)
    uri = data_uri(jpeg_bytes(sprite) if photos else png_bytes(sprite))
    lines = -(-len(tiles) // across)
    return f"--sprite:url({uri});--zoom:{100 * across}% {100 * lines}%;--across:{across}"


def _tiles(count: int, across: int, labels: Sequence[str]) -> list[str]:
    lines = -(-count // across)
    drawn = []
    for number, label in zip(range(count), labels, strict=True):
        line, column = divmod(number, across)
        # In percent, so that tiles may have any size on the screen.
        x = 100 * column / max(across - 1, 1)
        y = 100 * line / max(lines - 1, 1)
        drawn.append(
            f'<i class="tile" role="img" aria-label="{escape(label)}" '
            f'style="background-position:{x:.4f}% {y:.4f}%"></i>'
        )
    return drawn
