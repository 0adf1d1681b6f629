"""Which class is taken for which, before and after. Pure functions."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from masktune.scores.marks import CellMark
from masktune.scores.predictions import Predictions
from masktune.show.marks import mark_link
from masktune.show.tables import Cell, Column, Table
from masktune.show.wording import count, percent

Matrix = npt.NDArray[np.int64]

FEW_CLASSES = 5
"""Classes whose two matrices fit side by side; those of more have less in a cell."""

MOST_CLASSES = 20
"""Classes of a matrix; of more, only the commonest mistakes are shown."""

MOST_MISTAKES = 12


def confusion(predictions: Predictions) -> Matrix:
    """Count the answers, (K, K) int64: row = the class it is, column = the class answered."""
    classes = predictions.probabilities.shape[1]
    pairs = predictions.labels * classes + predictions.answers()
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def matrix_table(matrix: Matrix, classes: Sequence[str], *, name: str, split: str) -> Table:
    """Show the counts of the model ``name`` with the share of each row; each leads to its pictures.

    Right answers lie on the diagonal. Where there are more than a few classes the share is behind
    the pointer, and in what is heard.
    """
    many = len(classes) > FEW_CLASSES
    totals = matrix.sum(axis=1).tolist()
    return Table(
        name=f"Answers {name}",
        kind="confusion many" if many else "confusion",
        columns=(
            Column(name.capitalize(), small="is ↓ answered →"),
            *(Column(name, hint=name) for name in classes),
        ),
        rows=[
            (
                Cell(truth, f"n = {count(total)}"),
                *(
                    _counted(
                        number,
                        total,
                        mark=CellMark(split, name, row, column),
                        of=f"{truth}, answered {classes[column]} {name}",
                        tint="accent" if row == column else "broken",
                        brief=many,
                    )
                    for column, number in enumerate(matrix[row].tolist())
                ),
            )
            for row, (truth, total) in enumerate(zip(classes, totals, strict=True))
        ],
    )


def _counted(
    number: int,
    total: int,
    *,
    mark: CellMark | None,
    of: str,
    tint: str = "",
    brief: bool = False,
) -> Cell:
    share = number / total if total else None
    text = count(number)
    if mark is not None and number:
        text = mark_link(mark, text, name=f"{of}: {text}, {percent(share)} of the class")
    small = "" if brief else percent(share)
    return Cell(text, small, (number,), tint=(tint, share or 0.0) if tint else None)


def mistakes(before: Matrix, after: Matrix, *, most: int = MOST_MISTAKES) -> list[tuple[int, int]]:
    """Give the commonest mistakes of either model as (is, answered), the commonest first."""
    larger = np.maximum(before, after)
    np.fill_diagonal(larger, 0)
    order = np.argsort(-larger, axis=None, kind="stable")[:most].tolist()
    return [divmod(place, len(larger)) for place in order if larger.flat[place]]


def pairs_table(
    before: Matrix,
    after: Matrix,
    classes: Sequence[str],
    pairs: Iterable[tuple[int, int]],
    *,
    split: str = "",
) -> Table:
    """Show how often one class was taken for another, a row for each of ``pairs``.

    Counts lead to their pictures where the ``split`` is named.
    """

    def counted(matrix: Matrix, model: str, i: int, j: int) -> Cell:
        mark = CellMark(split, model, i, j) if split else None
        of = f"{classes[i]}, answered {classes[j]} {model}"
        return _counted(int(matrix[i, j]), totals[i], mark=mark, of=of)

    totals = before.sum(axis=1).tolist()
    return Table(
        name="Commonest mistakes",
        columns=(
            Column("is → answered", ("is", "answered", "n")),
            Column("Before", ("before",)),
            Column("After", ("after",)),
        ),
        rows=[
            (
                Cell(
                    f"{classes[i]} → {classes[j]}",
                    f"n = {count(totals[i])}",
                    (classes[i], classes[j], totals[i]),
                ),
                counted(before, "before", i, j),
                counted(after, "after", i, j),
            )
            for i, j in pairs
        ],
    )
