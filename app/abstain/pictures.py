"""Which pictures are held back or answered, as contact sheets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from masktune.data.types import Split
from masktune.scores.result import Names, Pair
from masktune.scores.selective import Ranked
from masktune.show.contact_sheets import TILE
from masktune.show.markup import piece, sheet_html
from masktune.show.painting import SMALL, Picture, enlarged, picture_of, png_bytes, sheet

Kind = Literal["Held back", "Answered and wrong", "Answered and right"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ORDER: dict[Kind, str] = {
    "Held back": "least sure first",
    "Answered and wrong": "surest first",
    "Answered and right": "least sure first",
}
CHIPS: dict[Kind, str] = {
    "Held back": "held",
    "Answered and wrong": "broken",
    "Answered and right": "fixed",
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


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one picture: class names of both answers and of the label, its score."""

    before: str
    after: str
    label: str
    score: float

    def caption(self, kind: Kind) -> Markup:
        """Return what stands under the picture."""
        return piece("fact", fact=self, state=CHIPS[kind])

    def words(self, kind: Kind) -> str:
        """Give plain text for those who cannot see the picture."""
        return (
            f"{kind}: {self.label}, before {self.before}, after {self.after}, "
            f"score {self.score:.3f}"
        )


def facts(pair: Pair, ranked: Ranked, positions: Sequence[int], *, names: Names) -> list[Fact]:
    """Give what is known of the pictures at some positions."""
    before, after, label = pair.before.answers(), pair.after.answers(), pair.before.labels
    return [
        Fact(
            names.classes[before[place]],
            names.classes[after[place]],
            names.classes[label[place]],
            float(ranked.confidence[place]),
        )
        for place in positions
    ]


def tiles(split: Split, positions: Sequence[int]) -> list[Picture]:
    """Give the pictures at some positions, enlarged."""
    return [enlarged(picture_of(image), TILE) for image in split.images.batch(list(positions))]


def contact_sheet(
    split: Split, positions: Sequence[int], *, known: Sequence[Fact], kind: Kind
) -> str:
    """Give the HTML of a sheet of at least one picture, with what is known of each."""
    drawn = tiles(split, positions)
    return sheet_html(
        drawn,
        [fact.caption(kind) for fact in known],
        labels=[fact.words(kind) for fact in known],
        across=ACROSS,
        photos=max(split.images.batch([positions[0]]).shape[2:]) > SMALL,
    )


def sheet_png(split: Split, positions: Sequence[int]) -> bytes:
    """Give a sheet as a PNG file."""
    return png_bytes(sheet(tiles(split, positions), ACROSS))
