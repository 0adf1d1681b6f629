"""Which class is taken for which, before and after. Pure functions."""

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from masktune.scores.predictions import Predictions
from masktune.show.wording import count, percent

Matrix = npt.NDArray[np.int64]

MOST_CLASSES = 5
"""Classes whose two matrices fit side by side; of more, the commonest mistakes are shown."""

MOST_MISTAKES = 12


def confusion(predictions: Predictions) -> Matrix:
    """Count the answers, (K, K) int64: row = the class it is, column = the class answered."""
    classes = predictions.probabilities.shape[1]
    pairs = predictions.labels * classes + predictions.answers()
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def matrix_html(matrix: Matrix, classes: Sequence[str], *, name: str) -> str:
    """Show a matrix of counts with the share of each row; right answers lie on the diagonal."""
    heads = "".join(f'<th scope="col">{escape(said)}</th>' for said in classes)
    rows = "".join(
        f'<tr><th scope="row">{escape(truth)}<small>n = {count(int(row.sum()))}</small></th>'
        f"{''.join(_cell(int(n), int(row.sum()), right=i == j) for j, n in enumerate(row))}</tr>"
        for i, (truth, row) in enumerate(zip(classes, matrix, strict=True))
    )
    return (
        f'<div class="wide"><table class="confusion" aria-label="Answers {escape(name)}">'
        f'<thead><tr><th scope="col"><b>{escape(name.capitalize())}</b><br>is ↓ answered →</th>'
        f"{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cell(number: int, total: int, *, right: bool) -> str:
    share = number / total if total else None
    # At most 40 % of the colour, so that the text on it keeps its contrast.
    tint = f"{40 * (share or 0.0):.1f}%"
    colour = "var(--accent)" if right else "var(--broken)"
    return (
        f'<td style="background:color-mix(in srgb, {colour} {tint}, transparent)">{count(number)}'
        f"<small>{percent(share)}</small></td>"
    )


def mistakes(before: Matrix, after: Matrix, *, most: int = MOST_MISTAKES) -> list[tuple[int, int]]:
    """Give the commonest mistakes of either model as (is, answered), the commonest first."""
    larger = np.maximum(before, after)
    np.fill_diagonal(larger, 0)
    order = np.argsort(-larger, axis=None, kind="stable")[:most]
    places = zip(*np.unravel_index(order, larger.shape), strict=True)
    return [(int(i), int(j)) for i, j in places if larger[i, j]]


def mistakes_html(before: Matrix, after: Matrix, classes: Sequence[str]) -> str:
    """Show the commonest mistakes of either model with counts and shares of their class."""
    rows = []
    for i, j in mistakes(before, after):
        total = int(before[i].sum())
        cells = "".join(
            f"<td>{count(int(matrix[i, j]))}<small>{percent(matrix[i, j] / total)}</small></td>"
            for matrix in (before, after)
        )
        rows.append(
            f'<tr><th scope="row">{escape(classes[i])} → {escape(classes[j])}'
            f"<small>n = {count(total)}</small></th>{cells}</tr>"
        )
    if not rows:
        return "<p>Neither model makes a mistake here.</p>"
    return (
        '<div class="wide"><table aria-label="Commonest mistakes"><thead><tr>'
        '<th scope="col">is → answered</th><th scope="col">Before</th><th scope="col">After</th>'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
