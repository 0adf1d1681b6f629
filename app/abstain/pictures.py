"""The card with the pictures that get no answer, or one."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import streamlit as st
from markupsafe import Markup

from app.abstain import files
from app.abstain.numbers import Reading
from app.opened import drawn
from app.shared.pieces import download, pager
from app.shared.problems import explained_errors
from app.shared.run_picker import choose_group, own_key
from app.shared.sheets import picture_links, show
from app.state import keep
from masktune.runs.open import OpenSplit
from masktune.scores.result import Names, Pair
from masktune.scores.selective import Ranked
from masktune.show.contact_sheets import photos, picture_tiles
from masktune.show.markup import piece, sheet_html
from masktune.show.painting import png_bytes, sheet
from masktune.show.wording import pictures

Kind = Literal["Abstained", "Answered and wrong", "Answered and right"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ORDER: dict[Kind, str] = {
    "Abstained": "least sure first",
    "Answered and wrong": "surest first",
    "Answered and right": "least sure first",
}
CHIPS: dict[Kind, str] = {
    "Abstained": "abstained",
    "Answered and wrong": "broken",
    "Answered and right": "fixed",
}
ACROSS = 7
SHOWN = 2 * ACROSS
"""Pictures on a sheet."""


def pictures_card(test: OpenSplit, ranked: Ranked, reading: Reading) -> None:
    """Show the pictures that get no answer, or one."""
    with st.container(key="card_abstain_pictures", height="stretch"):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
        ):
            st.header("Which pictures", anchor=False, width="content")
            kind: Kind = st.segmented_control(
                "Which pictures",
                KINDS,
                required=True,
                **keep("abstain_kind", KINDS),
                label_visibility="collapsed",
            )
        with explained_errors():
            _sheet(test, ranked, reading, kind)


def _sheet(test: OpenSplit, ranked: Ranked, reading: Reading, kind: Kind) -> None:
    found = choose(ranked, reading.point.gamma, kind=kind)
    group = choose_group(test, name="abstain_group", width=280, label="collapsed")
    if group is not None:
        found = found[test.groups[found] == group]
    if not len(found):
        st.caption(f"No picture here: {kind.lower()} at this target.")
        return
    with st.container(key="abstain_sheet"):
        place = st.empty()
    shown = pager(
        found.tolist(),
        SHOWN,
        key=own_key(f"abstain_page_{kind}_{group}", test),
        name="abstain_page",
    )

    def make() -> Markup:
        said = captions(test.pair, ranked, shown, kind=kind, names=test)
        return sheet_html(
            picture_tiles(test.split, shown),
            [caption for caption, _ in said],
            labels=[words for _, words in said],
            across=ACROSS,
            photos=photos(test.run.bundle),
            links=picture_links(test.name, shown),
        )

    with place:
        show(drawn(test, (reading.score, kind, *shown), make))
    st.caption(
        f"Captions: answer before / after, what it is, {reading.score} score. "
        f"{pictures(len(found))}, {ORDER[kind]}."
    )
    with st.container(horizontal=True):
        download(
            "This sheet (PNG)",
            lambda: png_bytes(sheet(picture_tiles(test.split, shown), ACROSS)),
            files.name(test, "pictures.png"),
        )
        download(
            "Predictions (CSV)",
            lambda: files.pictures_csv(test.pair, ranked, reading, names=test),
            files.name(test, "pictures.csv"),
        )


def choose(ranked: Ranked, gamma: float, *, kind: Kind) -> npt.NDArray[np.int64]:
    """Give the positions of all pictures of a kind.

    The least sure come first; of wrong answers the surest, which no threshold would stop. Equally
    sure ones stay in the order of their split.
    """
    answered = ranked.confidence > gamma
    chosen = {
        "Abstained": ~answered,
        "Answered and wrong": answered & ~ranked.correct,
        "Answered and right": answered & ranked.correct,
    }[kind]
    positions = np.flatnonzero(chosen)
    sureness = ranked.confidence[positions]
    order = np.argsort(-sureness if ORDER[kind] == "surest first" else sureness, kind="stable")
    found: npt.NDArray[np.int64] = positions[order]
    return found


def score_words(score: float) -> str:
    """Say how sure an answer is; a score that is a cost is below 0, and may be close to it.

    >>> score_words(0.12345), score_words(-0.25), score_words(-0.00048), score_words(0.0)
    ('0.123', '−0.250', '−0.00048', '0.000')
    """
    if 0 < -score < 0.1:
        return f"−{-score:.2g}" if -score >= 1e-4 else f"−{-score:.1e}"
    return f"{score:.3f}".replace("-", "−")


def captions(
    pair: Pair, ranked: Ranked, positions: Sequence[int], *, kind: Kind, names: Names
) -> list[tuple[Markup, str]]:
    """Give what stands under some pictures, each with plain text for those who cannot see it."""
    numbers = pair.before.answers(), pair.after.answers(), pair.before.labels
    told = []
    for place in positions:
        before, after, label = (names.classes[each[place]] for each in numbers)
        score = score_words(float(ranked.confidence[place]))
        drawn = {"before": before, "after": after, "label": label, "score": score}
        words = f"{kind}: {label}, before {before}, after {after}, score {score}"
        told.append((piece("fact", **drawn, state=CHIPS[kind]), words))
    return told
