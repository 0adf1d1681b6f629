"""Pieces of a page: tables, strips, cards, figures and picture sheets as HTML text.

Every text from outside (class names, paths, settings) is escaped here. Numbers keep their full
precision beside what is shown, so that a table saved as CSV loses nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from masktune.scores.flips import AnswerChange, Change
from masktune.scores.groups import GroupScore
from masktune.show.contact_sheets import Rows
from masktune.show.painting import data_uri, jpeg_bytes, png_bytes, sheet
from masktune.show.theme import CONFIG
from masktune.show.wording import count, interval, percent, points, points_interval

Value = float | int | str | None


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows in one place, and the values a CSV file gets instead.

    Attributes:
        text: shown.
        small: shown below it.
        values: one for each name of the column; where there are none, the text.
    """

    text: str
    small: str = ""
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column and the names of the values below it; its title unless given."""

    title: str
    names: tuple[str, ...] = ()


def option_words(command: str) -> str:
    """Give a command as HTML that breaks between its options, not inside them."""
    first, *options = command.split(" --")
    return escape(first) + "".join(f" <span>--{escape(option)}</span>" for option in options)


def share_cell(share: float | None) -> Cell:
    """Show a share."""
    return Cell(percent(share), values=(share,))


def count_cell(number: int) -> Cell:
    """Show a number of things."""
    return Cell(count(number), values=(number,))


def points_cell(before: float | None, after: float | None) -> Cell:
    """Show the difference of two shares in points; a CSV file gets the plain difference."""
    change = None if before is None or after is None else after - before
    return Cell(points(change), values=(change,))


def accuracy_column(title: str) -> Column:
    """Head accuracies with intervals."""
    return Column(title, (title, f"{title}, low", f"{title}, high"))


def accuracy_cell(score: GroupScore) -> Cell:
    """Show an accuracy with its interval."""
    low, high = score.interval or (None, None)
    small = interval(score.interval) if score.interval else ""
    return Cell(percent(score.accuracy), small, (score.accuracy, low, high))


def change_column() -> Column:
    """Head changes with intervals."""
    return Column("Change, points", ("Change", "Change, low", "Change, high"))


def change_cell(change: Change) -> Cell:
    """Show a change with its interval."""
    low, high = change.interval or (None, None)
    small = points_interval(change.interval) if change.interval else ""
    return Cell(points(change.change), small, (change.change, low, high))


def table(name: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    """Give a table that can be saved as CSV.

    Args:
        name: of the CSV file, without its ending; read aloud as the table's name.
        columns: heads.
        rows: a cell for each column; the first one heads its row.
    """
    heads = "".join(
        f'<th scope="col" data-names="{_json(c.names or (c.title,))}">{escape(c.title)}</th>'
        for c in columns
    )
    lines = "".join(f"<tr>{_head(row[0])}{''.join(map(_cell, row[1:]))}</tr>" for row in rows)
    return (
        f'<div class="table" data-name="{escape(name)}"><table aria-label="{escape(name)}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def pairs(name: str, rows: Sequence[tuple[str, str]]) -> str:
    """Give a table of settings: names and values."""
    columns = (Column("Setting"), Column("Value"))
    return table(name, columns, [(Cell(key), Cell(value)) for key, value in rows])


def _head(cell: Cell) -> str:
    return f'<th scope="row"{_values(cell)}>{escape(cell.text)}{_small(cell)}</th>'


def _cell(cell: Cell) -> str:
    return f"<td{_values(cell)}>{escape(cell.text)}{_small(cell)}</td>"


def _values(cell: Cell) -> str:
    return f' data-values="{_json(cell.values or (cell.text,))}"'


def _small(cell: Cell) -> str:
    return f"<small>{escape(cell.small)}</small>" if cell.small else ""


def _json(values: Sequence[Value]) -> str:
    return escape(json.dumps(list(values), ensure_ascii=False))


def strip(
    before: float,
    after: float,
    *,
    before_interval: tuple[float, float] | None = None,
    after_interval: tuple[float, float] | None = None,
) -> str:
    """Give a line from 0 to 100 % with a hollow dot before and a solid one after."""
    low, high = sorted((before, after))
    parts = [f'<i class="way" style="{_between(low, high)}"></i>']
    for name, bounds in (("before", before_interval), ("after", after_interval)):
        if bounds is not None:
            parts.append(f'<i class="bar {name}" style="{_between(*bounds)}"></i>')
    parts += [
        f'<i class="dot {name}" style="left:{100 * at:.2f}%"></i>'
        for name, at in (("before", before), ("after", after))
    ]
    words = f"{percent(before)} before, {percent(after)} after"
    return f'<div class="strip" role="img" aria-label="{words}">{"".join(parts)}</div>'


def _between(low: float, high: float) -> str:
    return f"left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"


def metric(name: str, before: float, after: float, *, line: str, note: str) -> str:
    """Give a card with one number: after, how it changed, a strip and what belongs to it.

    Args:
        name: what is measured.
        before: share before.
        after: share after.
        line: the strip's HTML.
        note: text under it, such as n and the interval.
    """
    change = points(after - before)
    kind, arrow = {"+": ("up", "↑ "), "−": ("down", "↓ ")}.get(change[0], ("same", ""))
    return (
        f'<div class="card metric"><p class="name">{escape(name)}</p>'
        f'<p class="value">{percent(after)}</p>'
        f'<p><span class="delta {kind}">{arrow}{change} points</span> '
        f'<span class="muted">from {percent(before)}</span></p>'
        f'{line}<p class="note">{escape(note)}</p></div>'
    )


def changed(*, fixed: int, broken: int, total: int) -> str:
    """Give a card with how many answers were fixed and broken; harm is as visible as help."""
    net = fixed - broken
    kind = "up" if net > 0 else "down" if net < 0 else "same"
    shares = "".join(
        f'<i class="{name}" style="flex-grow:{number}"></i>'
        for name, number in (("fixed", fixed), ("broken", broken))
        if number
    )
    return (
        '<div class="card metric"><p class="name">Answers that changed</p>'
        f'<p class="value">{count(fixed + broken)}</p>'
        f'<p><span class="delta {kind}">net {points(net / 100).removesuffix(".0")} right</span> '
        f'<span class="muted">of {count(total)}</span></p>'
        f'<div class="shares">{shares}</div>'
        f'<p class="note">{chip("fixed")} {count(fixed)} fixed &emsp; '
        f"{chip('broken')} {count(broken)} broken</p></div>"
    )


def chip(state: AnswerChange) -> str:
    """Give the sign of what became of an answer: shape and letter say it without colour."""
    signs = {"fixed": "✓", "broken": "✕"}
    if state not in signs:
        return ""
    return f'<span class="chip {state}" aria-hidden="true">{signs[state]}</span>'


def figure(drawn: go.Figure) -> str:
    """Give a figure as data; the page's script draws it with the Plotly it carries."""
    spec = json.loads(drawn.to_json())
    spec["layout"].pop("template", None)  # the page has its own colours
    # The file may hold class names, and "</script>" in one would end the element.
    data = json.dumps({**spec, "config": CONFIG}, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<div class="figure" style="height:{drawn.layout.height}px" role="img" '
        f'aria-label="{escape(drawn.layout.meta)}">'
        f'<script type="application/json">{data}</script></div>'
    )


def picture_sheet(
    rows: Rows, captions: Sequence[str], *, photos: bool = False, across: int = 8
) -> str:
    """Give rows of tiles with captions under them, from one sprite for each band.

    Args:
        rows: tiles by row name, as many in each row as there are captions.
        captions: HTML, one a picture; names in it are escaped already.
        photos: whether to encode with a little loss, many times smaller.
        across: pictures side by side; more begin a new band.
    """
    bands = []
    for start in range(0, len(captions), across):
        part = {name: tiles[start : start + across] for name, tiles in rows.items()}
        bands.append(_band(part, captions[start : start + across], photos, across))
    return "".join(bands)


def _band(rows: Rows, captions: Sequence[str], photos: bool, across: int) -> str:
    tiles = [tile for row in rows.values() for tile in row]
    height, width = (side / 2 for side in tiles[0].shape[:2])  # two pixels for each one shown
    cells = []
    for row, name in enumerate(rows):
        cells.append(f'<span class="row">{escape(name)}</span>')
        for column in range(len(captions)):
            place = f"{-column * width:g}px {-row * height:g}px"
            cells.append(
                f'<i class="tile" role="img" aria-label="{escape(name)}, picture {column + 1}" '
                f'style="background-position:{place}"></i>'
            )
        cells.append("<i></i>" * (across - len(captions)))
    cells.append('<span class="row"></span>')
    cells += [f"<p>{caption}</p>" for caption in captions]
    sprite = sheet(tiles, len(captions))
    uri = data_uri(jpeg_bytes(sprite) if photos else png_bytes(sprite))
    style = (
        f"--sprite:url({uri});--width:{width:g}px;--height:{height:g}px;"
        f"--sheet:{width * len(captions):g}px;--across:{across}"
    )
    return f'<div class="sheet" style="{style}">{"".join(cells)}</div>'
