"""Pieces of a page and of the report as HTML: from Jinja's templates, every text escaped."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from masktune.scores.evidence import Direction
from masktune.scores.metrics import Metric
from masktune.scores.result import SplitResult
from masktune.show.painting import Picture, data_uri, jpeg_bytes, png_bytes, sheet
from masktune.show.theme import CONFIG
from masktune.show.wording import metric_note, percent, points, whose

TEMPLATES = Path(__file__).with_name("templates")
GUTTER = 8
"""Pixels around each tile of a sprite that repeat its edge. A browser that makes tiles smaller, or
begins them between two pixels of the screen, mixes in what lies beside. With it a tile of 224 is
still whole 16 x 16 blocks, so that JPEG does not bleed from one into the next."""

Bounds = tuple[float, float] | None


@cache
def templates(folder: Path = TEMPLATES) -> Environment:
    """Return the templates of a folder; these pieces can be imported in all of them."""
    loader = FileSystemLoader([folder, TEMPLATES])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters["breakable"] = breakable
    return environment


def breakable(text: str) -> Markup:
    """Hold names, ranges and an n together; a name that is too long breaks after an underscore.

    >>> breakable("long_haired cat, 5–9")
    Markup('<span class="held">long_<wbr>haired</span> cat, <span class="held">5–9</span>')
    >>> breakable("n = 1, 5.0% answered")
    Markup('<span class="held">n = 1,</span> <span class="held">5.0% answered</span>')
    """
    if isinstance(text, Markup):
        return text
    held = re.sub(  # with its comma, which would begin a line otherwise
        r"\bn = [\d,]*\d,?|[\d.]+% answered|\S*[_–]\S+",
        r'<span class="held">\g<0></span>',
        str(escape(text)),
    )
    return Markup(held.replace("_", "_<wbr>"))


def piece(macro: str, /, **values: object) -> Markup:
    """Return a macro of pieces.html, filled in.

    >>> piece("caption", strong="<cow>", small="3 pictures")
    Markup('<b>&lt;cow&gt;</b><small>3 pictures</small>')
    """
    drawn: Markup = getattr(templates().get_template("pieces.html").module, macro)(**values)
    return drawn


def strip(
    before: float,
    after: float | None,
    *,
    before_interval: Bounds = None,
    after_interval: Bounds = None,
) -> Markup:
    """Return a line from 0 to 100 % with a hollow dot before and a solid one after, if any."""
    bounds = {"before": before_interval, "after": after_interval}
    if after is None:
        dots = {"before": before}
        return piece("strip", words=percent(before), dots=dots, bounds=bounds, way=None)
    words = f"{percent(before)} before, {percent(after)} after"
    dots, way = {"before": before, "after": after}, sorted((before, after))
    return piece("strip", words=words, dots=dots, bounds=bounds, way=way)


def metric_strip(one: Metric, test: SplitResult) -> Markup:
    """Return the strip of a metric before and after with its intervals."""
    return strip(
        one.of(test.before) or 0.0,
        one.of(test.after) or 0.0,
        before_interval=one.interval(test.before),
        after_interval=one.interval(test.after),
    )


def metric_card(one: Metric, test: SplitResult, *, name: str, clear: Direction) -> Markup:
    """Return a card with one metric: after, how it changed, its strip, whose it is and its n.

    Where it clearly moved, by the evidence, colours the change.
    """
    before, after = one.of(test.before) or 0.0, one.of(test.after) or 0.0
    who, note = whose(one, test.before, test.after), metric_note(one, test.after)
    return piece(
        "metric_card",
        name=name,
        value=percent(after),
        change=points(after - before),
        kind=clear,
        beside=f"from {percent(before)}",
        line=metric_strip(one, test),
        note=f"{who}: {note}" if who else note,
    )


def figure(drawn: go.Figure) -> Markup:
    """Return a figure as data; the page's script draws it with the Plotly it carries."""
    spec = json.loads(drawn.to_json())
    spec["layout"].pop("template", None)  # the page has its own colours
    # The file may hold class names, and "</script>" in one would end the element.
    data = json.dumps({**spec, "config": CONFIG}, ensure_ascii=False).replace("<", "\\u003c")
    return piece("figure", height=drawn.layout.height, words=drawn.layout.meta, data=Markup(data))


def sheet_html(
    tiles: Sequence[Picture],
    captions: Sequence[str],
    *,
    labels: Sequence[str],
    across: int,
    photos: bool = False,
    links: Sequence[str] = (),
) -> Markup:
    """Return a grid of pictures with captions, cut out of one sprite.

    Args:
        tiles: pictures of one size.
        captions: under each; what is not Markup is escaped.
        labels: plain text that stands for each picture where it cannot be seen.
        across: pictures side by side.
        photos: whether to encode with a little loss, many times smaller.
        links: addresses that each picture leads to; none, or an empty one, where it leads nowhere.
    """
    lines = -(-len(tiles) // across)
    return piece(
        "sheet",
        uri=_sprite(tiles, across, photos),
        zoom=_zoom(tiles[0], across, lines),
        across=across,
        tiles=_tiles(labels, tiles[0], across, lines),
        captions=captions,
        links=links,
    )


def rows_html(
    rows: Mapping[str, Sequence[Picture]],
    captions: Sequence[str],
    *,
    labels: Sequence[str],
    photos: bool = False,
    most: int | None = None,
    links: Sequence[str] = (),
) -> Markup:
    """Return named rows of pictures, one column a picture, captions at the foot.

    Args:
        rows: by row name, the same number of pictures in each.
        captions: at the foot of each column; what is not Markup is escaped.
        labels: plain text for each column.
        photos: whether to encode with a little loss.
        most: pictures side by side, where more begin a new band; None is all of them.
        links: addresses that the pictures of each column lead to; none where they lead nowhere.
    """
    most = most or len(captions)
    bands = []
    for start in range(0, len(captions), most):
        part = slice(start, start + most)
        tiles = [tile for row in rows.values() for tile in row[part]]
        across = len(captions[part])
        told = [f"{name}, {label}" for name in rows for label in labels[part]]
        bands.append(
            piece(
                "rows",
                uri=_sprite(tiles, across, photos),
                zoom=_zoom(tiles[0], across, len(rows)),
                across=across,
                names=list(rows),
                tiles=_tiles(told, tiles[0], across, len(rows)),
                captions=captions[part],
                places=most,
                links=links[part],
            )
        )
    return Markup("").join(bands)


def _sprite(tiles: Sequence[Picture], across: int, photos: bool) -> str:
    edge = ((GUTTER, GUTTER), (GUTTER, GUTTER), (0, 0))
    sprite = sheet([np.pad(tile, edge, mode="edge") for tile in tiles], across)
    return data_uri(jpeg_bytes(sprite) if photos else png_bytes(sprite))


def _zoom(tile: Picture, across: int, lines: int) -> tuple[float, float]:
    """Return how wide and how high the sprite is, in percent of what is cut out of it."""
    height, width = tile.shape[:2]
    return (
        100 * across * (width + 2 * GUTTER) / width,
        100 * lines * (height + 2 * GUTTER) / height,
    )


def _tiles(
    labels: Sequence[str], tile: Picture, across: int, lines: int
) -> list[tuple[str, float, float]]:
    """Return label and place of each tile; in percent, so that tiles may have any size.

    100% is where the sprite ends with the tile: CSS counts in what of it lies outside.
    """
    height, width = tile.shape[:2]

    def place(number: int, of: int, side: int) -> float:
        pitch = side + 2 * GUTTER
        return 100 * (number * pitch + GUTTER) / (of * pitch - side)

    return [
        (label, place(number % across, across, width), place(number // across, lines, height))
        for number, label in enumerate(labels)
    ]
