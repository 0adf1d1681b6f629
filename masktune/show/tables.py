"""A table is a value: HTML on pages and in the report, CSV behind its button, Markdown, LaTeX."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from masktune.files import Value, csv_bytes
from masktune.scores.groups import GroupScore
from masktune.show.markup import piece
from masktune.show.wording import count, difference, interval, percent, points, points_interval


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows in one place, and the values a CSV file gets instead.

    Attributes:
        text: shown; what is drawn (a strip, a chip) is Markup.
        small: shown below it.
        values: one for each name of the column; None is the text.
        strong: in bold.
        tint: a colour's name and how much of it, in [0, 1], lies behind the text.
    """

    text: str = ""
    small: str = ""
    values: tuple[Value, ...] | None = None
    strong: bool = False
    tint: tuple[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, and the names of its values in a CSV file.

    Attributes:
        title: of the column.
        names: in the file; None is the title, none at all leaves the column out of the file.
        small: shown below the title.
        hint: what the title means, behind the pointer.
        left: whether its text begins at the left.
        shown: whether it is seen; one that is not is in the file only.
        roomy: whether it is left out where the window is narrow.
    """

    title: str
    names: tuple[str, ...] | None = None
    small: str = ""
    hint: str = ""
    left: bool = False
    shown: bool = True
    roomy: bool = False

    @property
    def kind(self) -> str:
        """CSS classes of its cells."""
        return " ".join(name for name in ("left", "roomy") if getattr(self, name))

    @property
    def heads(self) -> tuple[str, ...]:
        """The names in a file."""
        return (self.title,) if self.names is None else self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns and rows.

    Attributes:
        name: read aloud as the table's name, and of the report's file.
        columns: heads.
        rows: a cell for each column; the first one shown heads its row.
        spans: titles over several columns after the first, and how many.
        kind: CSS class.
        caption: whether the name stands over the table.
    """

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    spans: Sequence[tuple[str, int]] = ()
    kind: str = ""
    caption: bool = False


def html(table: Table, *, saved: bool = False) -> Markup:
    """Return a table as HTML; ``saved`` with its CSV file, for a page without a server."""
    return piece(
        "table",
        name=table.name,
        columns=[column for column in table.columns if column.shown],
        rows=[
            [both for both in zip(table.columns, row, strict=True) if both[0].shown]
            for row in table.rows
        ],
        spans=table.spans,
        kind=table.kind,
        caption=table.caption,
        csv=csv(table).decode() if saved else None,
    )


def csv(*tables: Table, end: str = "\n") -> bytes:
    """Return tables with the same columns as the content of one CSV file."""
    columns = tables[0].columns
    heads = [name for column in columns for name in column.heads]
    rows = (
        [
            value
            for column, cell in zip(columns, row, strict=True)
            if column.heads
            for value in ((cell.text,) if cell.values is None else cell.values)
        ]
        for table in tables
        for row in table.rows
    )
    return csv_bytes(heads, rows, end=end)


def markdown(table: Table) -> str:
    """Return what is seen of a table as Markdown; small text stands behind the text."""
    heads = [f"{over}: {title.lower()}" if over else title for over, title in _heads(table)]
    return markdown_table(heads, _seen(table))


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return texts as a table of Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (heads, *rows)]
    return "\n".join([lines[0], "|" + " --- |" * len(heads), *lines[1:]])


_TEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "≈": r"$\approx$",
        "×": r"$\times$",
        "−": "$-$",
        "–": "--",
    }
)
"""What LaTeX would read otherwise."""


def latex(table: Table) -> str:
    """Return what is seen of a table as LaTeX, for the package booktabs."""
    seen = [column for column in table.columns if column.shown]
    lines = [r"\begin{tabular}{" + "".join("l" if c.left else "r" for c in seen) + "}", r"\toprule"]
    if table.spans:
        at, over, rules = 2, [""], []
        for title, across in table.spans:
            over.append(rf"\multicolumn{{{across}}}{{c}}{{{title.translate(_TEX)}}}")
            if title:
                rules.append(rf"\cmidrule(lr){{{at}-{at + across - 1}}}")
            at += across
        lines += [" & ".join(over) + r" \\", "".join(rules)]
    lines += [_tex_row(column.title for column in seen), r"\midrule"]
    lines += [_tex_row(row) for row in _seen(table)]
    return "\n".join([*filter(None, lines), r"\bottomrule", r"\end{tabular}"]) + "\n"


def _tex_row(texts: Iterable[str]) -> str:
    return " & ".join(text.translate(_TEX) for text in texts) + r" \\"


def _heads(table: Table) -> list[tuple[str, str]]:
    """Return the title of every column that is seen, after what stands over it, if anything."""
    over = ["", *(title for title, across in table.spans for _ in range(across))]
    titles = [column.title for column in table.columns if column.shown]
    over += [""] * (len(titles) - len(over))
    return list(zip(over, titles, strict=True))


def _seen(table: Table) -> Iterator[list[str]]:
    for row in table.rows:
        both = [cell for column, cell in zip(table.columns, row, strict=True) if column.shown]
        yield [
            " ".join(filter(None, (str(c.text), c.small and f"({c.small})"))).replace("|", "/")
            for c in both
        ]


def share_cell(share: float | None, *, small: str = "") -> Cell:
    """Return a cell with a share."""
    return Cell(percent(share), small, (share,))


def count_cell(number: int) -> Cell:
    """Return a cell with a number of things."""
    return Cell(count(number), values=(number,))


def points_cell(before: float | None, after: float | None) -> Cell:
    """Return a cell with the difference of two shares in points; a file gets the difference."""
    change = difference(before, after)
    return Cell(points(change), values=(change,))


def change_cell(change: float | None, bounds: tuple[float, float] | None) -> Cell:
    """Return a cell with a change and its interval."""
    small = points_interval(bounds) if bounds else ""
    return Cell(points(change), small, (change, *(bounds or (None, None))))


def accuracy_cell(score: GroupScore) -> Cell:
    """Return a cell with an accuracy and its interval."""
    small = interval(score.interval) if score.interval else ""
    return Cell(percent(score.accuracy), small, (score.accuracy, *(score.interval or (None, None))))
