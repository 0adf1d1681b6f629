"""Pieces of a page and of the report as HTML: from Jinja's templates, every text escaped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from masktune.scores.evidence import Direction
from masktune.scores.flips import AnswerChange, Change
from masktune.scores.groups import GroupScore
from masktune.show.contact_sheets import Rows
from masktune.show.painting import Picture, data_uri, jpeg_bytes, png_bytes, sheet
from masktune.show.theme import CONFIG
from masktune.show.wording import count, interval, percent, points, points_interval

Bounds = tuple[float, float] | None


@cache
def templates(folder: Path = Path(__file__).parent / "templates") -> Environment:
    """Return the templates of a folder; these pieces can be imported in all of them."""
    own = Path(__file__).parent / "templates"
    return Environment(
        loader=FileSystemLoader([folder, own]), autoescape=True, undefined=StrictUndefined
    )


def piece(macro: str, /, **values: object) -> Markup:
    """Return a macro of pieces.html, filled in.

    >>> piece("caption", strong="<cow>", small="3 pictures")
    Markup('<b>&lt;cow&gt;</b><small>3 pictures</small>')
    """
    drawn: Markup = getattr(templates().get_template("pieces.html").module, macro)(**values)
    return drawn


def chip(state: AnswerChange) -> Markup:
    """Return the sign of what became of an answer: shape and letter say it without colour."""
    return piece("chip", state=state)


def strip(
    before: float,
    after: float | None,
    *,
    before_interval: Bounds = None,
    after_interval: Bounds = None,
) -> Markup:
    """Return a line from 0 to 100 % with a hollow dot before and a solid one after, if any."""
    words = f"{percent(before)} before, {percent(after)} after"
    return piece(
        "strip",
        words=words if after is not None else percent(before),
        dots={"before": before} if after is None else {"before": before, "after": after},
        bounds={"before": before_interval, "after": after_interval},
        way=None if after is None else sorted((before, after)),
    )


def metric(
    name: str, before: float, after: float, *, line: Markup, note: str, clear: Direction
) -> Markup:
    """Return a card with one number: after, how it changed, a strip and what belongs to it.

    Args:
        name: what is measured.
        before: share before.
        after: share after.
        line: the strip.
        note: text under it, such as n and the interval.
        clear: where it moved by the evidence, which colours the change.
    """
    return piece(
        "metric_card",
        name=name,
        value=percent(after),
        change=points(after - before),
        kind="same" if clear == "unclear" else clear,
        beside=f"from {percent(before)}",
        line=line,
        note=note,
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
) -> Markup:
    """Return a grid of pictures with captions, cut out of one sprite.

    Args:
        tiles: pictures of one size.
        captions: under each; what is not Markup is escaped.
        labels: plain text that stands for each picture where it cannot be seen.
        across: pictures side by side.
        photos: whether to encode with a little loss, many times smaller.
    """
    lines = -(-len(tiles) // across)
    return piece(
        "sheet",
        uri=_sprite(tiles, across, photos),
        across=across,
        lines=lines,
        tiles=_tiles(labels, across, lines),
        captions=captions,
    )


def rows_html(
    rows: Mapping[str, Sequence[Picture]],
    captions: Sequence[str],
    *,
    labels: Sequence[str],
    photos: bool = False,
    most: int | None = None,
) -> Markup:
    """Return named rows of pictures, one column a picture, captions at the foot.

    Args:
        rows: by row name, the same number of pictures in each.
        captions: at the foot of each column; what is not Markup is escaped.
        labels: plain text for each column.
        photos: whether to encode with a little loss.
        most: pictures side by side, where more begin a new band; None is all of them.
    """
    most = most or len(captions)
    bands = []
    for start in range(0, len(captions), most):
        part = slice(start, start + most)
        tiles = [tile for row in rows.values() for tile in row[part]]
        across = len(captions[part])
        told = [f"{name}, {label}" for name in rows for label in labels[part]]
        drawn = _tiles(told, across, len(rows))
        bands.append(
            piece(
                "rows",
                uri=_sprite(tiles, across, photos),
                across=across,
                rows={
                    name: drawn[number * across : (number + 1) * across]
                    for number, name in enumerate(rows)
                },
                captions=captions[part],
                places=most,
            )
        )
    return Markup("").join(bands)


def _sprite(tiles: Sequence[Picture], across: int, photos: bool) -> str:
    sprite = sheet(tiles, across)
    return data_uri(jpeg_bytes(sprite) if photos else png_bytes(sprite))


def _tiles(labels: Sequence[str], across: int, lines: int) -> list[tuple[str, float, float]]:
    """Return label and place of each tile; in percent, so that tiles may have any size."""
    return [
        (
            label,
            100 * (number % across) / max(across - 1, 1),
            100 * (number // across) / max(lines - 1, 1),
        )
        for number, label in enumerate(labels)
    ]


# What follows goes with the report's f-strings.

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


def changed(*, fixed: int, broken: int, total: int, clear: Direction) -> str:
    """Give a card with how many answers were fixed and broken; harm is as visible as help."""
    net = fixed - broken
    kind = "same" if clear == "unclear" else clear
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
