"""Which pictures are held back or answered, as contact sheets."""

from collections.abc import Sequence
from html import escape
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from app.components.sheets import sheet_html
from masktune.data.base import DatasetCard, Split
from masktune.errors import DataError
from masktune.pictures import SMALL, Picture, enlarged, picture_of, png_bytes, sheet
from masktune.results import Pair
from masktune.selective import Ranked
from masktune.sheets import TILE

Kind = Literal["Held back", "Answered and wrong", "Answered and right"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ORDER: dict[Kind, str] = {
    "Held back": "least sure first",
    "Answered and wrong": "surest first",
    "Answered and right": "least sure first",
}
CHIPS: dict[Kind, tuple[str, str]] = {
    "Held back": ("held", "?"),
    "Answered and wrong": ("broken", "✕"),
    "Answered and right": ("fixed", "✓"),
}
ACROSS = 7
SHOWN = 2 * ACROSS
"""Pictures on a sheet."""


def choose(ranked: Ranked, gamma: float, *, kind: Kind) -> npt.NDArray[np.int64]:
    """Give the positions of all pictures of a kind.

    The least sure come first; of wrong answers the surest, which no threshold would stop. Equally
    sure ones stay in the order of their split.
    """
    answered = ranked.confidence > gamma
    chosen = {
        "Held back": ~answered,
        "Answered and wrong": answered & ~ranked.correct,
        "Answered and right": answered & ranked.correct,
    }[kind]
    positions = np.flatnonzero(chosen)
    sureness = ranked.confidence[positions]
    order = np.argsort(-sureness if ORDER[kind] == "surest first" else sureness, kind="stable")
    found: npt.NDArray[np.int64] = positions[order]
    return found


def check_same_pictures(split: Split | None, pair: Pair, *, test: str) -> Split:
    """Give the test set's pictures, if they are still the ones that the models were asked about."""
    asked = pair.before.labels
    if split is None or not np.array_equal(split.labels.numpy(), asked):
        raise DataError(
            f"The pictures of test set '{test}' are not those that this run was tested on.",
            "Put the dataset's files back as they were; the numbers above are not affected.",
        )
    return split


def captions(
    pair: Pair, ranked: Ranked, positions: Sequence[int], *, kind: Kind, card: DatasetCard
) -> list[str]:
    """Give HTML for each picture: answers before / after, what it is, its score."""
    name, sign = CHIPS[kind]
    return [
        f'<span class="chip {name}" aria-hidden="true">{sign}</span> '
        f"<b>{escape(before)} / {escape(after)}</b><br>"
        f'<span class="muted">is {escape(label)}<br>score {score:.3f}</span>'
        for before, after, label, score in _facts(pair, ranked, positions, card=card)
    ]


def labels(
    pair: Pair, ranked: Ranked, positions: Sequence[int], *, kind: Kind, card: DatasetCard
) -> list[str]:
    """Give plain words for each picture, for those who cannot see it."""
    return [
        f"{kind}: {label}, before {before}, after {after}, score {score:.3f}"
        for before, after, label, score in _facts(pair, ranked, positions, card=card)
    ]


def _facts(
    pair: Pair, ranked: Ranked, positions: Sequence[int], *, card: DatasetCard
) -> list[tuple[str, str, str, float]]:
    before, after = pair.before.answers(), pair.after.answers()
    return [
        (
            card.classes[before[place]],
            card.classes[after[place]],
            card.classes[pair.before.labels[place]],
            float(ranked.confidence[place]),
        )
        for place in positions
    ]


def tiles(split: Split, positions: Sequence[int]) -> list[Picture]:
    """Give the pictures at some positions, enlarged."""
    return [enlarged(picture_of(image), TILE) for image in split.images.batch(list(positions))]


def contact_sheet(
    split: Split, positions: Sequence[int], *, captions: Sequence[str], labels: Sequence[str]
) -> str:
    """Give the HTML of a sheet of at least one picture."""
    drawn = tiles(split, positions)
    photos = max(split.images.batch([positions[0]]).shape[2:]) > SMALL
    return sheet_html(drawn, captions, labels=labels, across=ACROSS, photos=photos)


def sheet_png(split: Split, positions: Sequence[int]) -> bytes:
    """Give a sheet as a PNG file."""
    return png_bytes(sheet(tiles(split, positions), ACROSS))
