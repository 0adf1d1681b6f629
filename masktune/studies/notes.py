"""Words about the results whose numbers come from the tables, so that none is ever typed.

A reference such as ``{mnist-square-short | MaskTune | accuracy | biased}`` names a table, then the
model, the measure and the test set as they stand in it, and becomes the mean in percent.
"""

import re
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from masktune.errors import DataError

Names = Mapping[tuple[str, ...], float]
"""From (table, model, measure, test set) to the mean over seeds, a share."""

WIDTH = 118

_REFERENCE = re.compile(r"\{([^{}]+)\}")


def filled(notes: str, means: Names) -> str:
    """Put numbers in the place of references.

    Args:
        notes: Markdown with references.
        means: every number of the tables.

    Raises:
        DataError: a reference names nothing that was measured.
    """

    def number(found: re.Match[str]) -> str:
        names = tuple(part.strip() for part in re.sub(r"\s+", " ", found[1]).split("|"))
        if names not in means:
            raise DataError(
                f"The notes on the results speak of '{found[1]}', which no table has.",
                f"Name a table, a model, a measure and a test set: {_nearest(names, means)}.",
            )
        return f"{100 * means[names]:.1f}"

    return _REFERENCE.sub(number, notes)


def wrapped(notes: str) -> str:
    r"""Break the lines of paragraphs anew: references are longer than the numbers they become.

    >>> print(wrapped("## Head\n\nOne\ntwo."))
    ## Head
    <BLANKLINE>
    One two.
    <BLANKLINE>
    """
    paragraphs = (
        fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
        for text in notes.strip().split("\n\n")
    )
    return "\n\n".join(paragraphs) + "\n"


def _nearest(names: Sequence[str], means: Names) -> str:
    """Name what a wrong reference may have meant: the one that shares most of its words."""
    shared = sorted(means, key=lambda known: -sum(name in known for name in names))
    return " | ".join(shared[0]) if shared else "there is no table yet"


def means_of(name: str, rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> Names:
    """Give the numbers of one table.

    Args:
        name: of the table, recipe and scale.
        rows: (model, measure, row) as the page heads them.
    """
    return {
        (name, model, measure, row["test"]): row["mean"]
        for model, measure, row in rows
        if row["mean"] is not None  # no seed measured it, as after an early stop
    }
