"""The pictures of the Compare page: where both models look, and which answers changed."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import streamlit as st
import torch
from markupsafe import Markup
from streamlit.delta_generator import DeltaGenerator

from app.opened import drawn, looks_of
from app.shared.pages import write_address_again
from app.shared.pieces import card, download, pager
from app.shared.problems import explained_errors
from app.shared.run_picker import choose_group, own_key
from app.shared.sheets import picture_links, say, show
from app.state import hold, keep
from masktune.heat.keep import keep_masks
from masktune.runs.open import OpenSplit
from masktune.scores.flips import AnswerChange, answer_changes
from masktune.scores.marks import ALL, FlipMark
from masktune.show.answers import answers_at
from masktune.show.contact_sheets import (
    NO_MAPS,
    STATES,
    TILE,
    looks_html,
    most_changed,
    photos,
    picture_tiles,
    telling,
)
from masktune.show.marks import mark_link
from masktune.show.markup import piece, sheet_html
from masktune.show.painting import Picture, enlarged, heat_over, hidden_over, png_bytes, sheet
from masktune.show.wording import count

ACROSS = 6
"""Pictures side by side in "Where it looks"."""

MOST, MIX, ANY = "Most changed", "A mix", "From a position"
KINDS: dict[str, AnswerChange | None] = {
    MOST: None,
    MIX: None,
    **{state.capitalize(): state for state in STATES},
    ANY: None,
}
CHOSEN = {
    MOST: "Pictures whose right class gained or lost most, the groups in turn.",
    MIX: "Every group, and fixed, broken and unchanged answers, each the first of its kind.",
}
"""How pictures are chosen, where it is not by their order in the test set."""

View = Literal["Picture", "Hidden", "Heat before", "Heat after"]
PAGES: dict[AnswerChange, tuple[str, int]] = {
    "fixed": ("wrong before, right after", 16),
    "broken": ("right before, wrong after", 8),
}
"""What each gallery holds and how many pictures a page of it shows."""

CAPTIONS = "captions: answer before → after, confidence, group"


@st.fragment
def show_looks(test: OpenSplit) -> None:
    """Draw rows of pictures with both heats and their difference."""
    if test.run.layer is None:
        say(NO_MAPS, kind="muted")
        return
    method = f"{test.run.config.masking.method} at layer {test.run.layer}"
    with card(
        "compare_looks",
        "Where it looks",
        hint=f"Heat ({method}) for the answer each model gives. Both models share one scale; "
        "the difference is after minus before.",
    ) as tools:
        with explained_errors():
            _draw_looks(test, _choose_pictures(test), tools)
        write_address_again("looks")


def _draw_looks(test: OpenSplit, positions: Sequence[int], tools: DeltaGenerator) -> None:
    if not positions:
        say("There is no such picture in this group.", kind="muted")
        return
    download("PNG", lambda: looks_png(test, positions), "where-it-looks.png", place=tools)
    rows = drawn(
        test,
        ("looks", *positions),
        lambda: looks_html(
            test,
            looks_of(test, positions),
            positions,
            most=ACROSS,
            links=picture_links(test.name, positions),
        ),
    )
    show(rows + piece("key", heat=True, change=True, words=CAPTIONS))


def looks_png(test: OpenSplit, positions: Sequence[int]) -> bytes:
    """Return the same rows as a PNG file."""
    rows = looks_of(test, positions).rows()
    return png_bytes(sheet([tile for row in rows.values() for tile in row], len(positions)))


def _choose_pictures(test: OpenSplit) -> list[int]:
    """Let people choose the pictures: a kind and a group page by page, or a position."""
    left, middle, right = st.columns([1.1, 1.3, 1.4], vertical_alignment="bottom")
    kind = left.selectbox("Pictures", KINDS, **keep("compare_looks_kind", KINDS))
    st.caption(CHOSEN.get(kind, "In the order of the test set."))
    if kind == ANY:
        hold("compare_looks_position", own_key("compare_looks_position", test))
        start = middle.number_input(
            "Position in the test set",
            0,
            len(test) - 1,
            help="Counted from 0, as in the file of answers.",
            **keep("compare_looks_position", range(len(test))),
        )
        return list(range(int(start), min(int(start) + ACROSS, len(test))))
    if kind == MIX:
        return mixed(test)
    group = choose_group(test, name="compare_looks_group", place=middle)
    found = pictures_of(test, state=KINDS[kind], group=group)
    if kind == MOST:
        wanted = set(found)
        found = [p for p in most_changed(test.pair) if p in wanted]
    with right:
        key = own_key(f"compare_looks_{kind}_{group}", test)
        return pager(found, ACROSS, key=key, name="compare_looks_page")


def mixed(test: OpenSplit) -> list[int]:
    """Choose as many pictures as a row holds, of all groups and states."""
    return telling(test.pair, count=ACROSS, most=ACROSS)[:ACROSS]


def pictures_of(
    test: OpenSplit, *, state: AnswerChange | None = None, group: int | None = None
) -> list[int]:
    """Give the pictures of a state and a group, in the order of the test set; None is any."""
    chosen = np.ones(len(test), dtype=np.bool_)
    if state is not None:
        chosen &= np.array(answer_changes(test.pair.before, test.pair.after)) == state
    if group is not None:
        chosen &= test.groups == group
    found: list[int] = np.flatnonzero(chosen).tolist()
    return found


@st.fragment
def show_flips(test: OpenSplit) -> None:
    """Draw the answers that were fixed beside those that were broken."""
    with card(
        "compare_flips",
        "Answers that changed",
        hint="In the order of the test set. Harm stands beside help.",
    ) as tools:
        group = choose_group(test, name="compare_flips_group", place=tools)
        views = get_args(View)
        held = keep("compare_flips_view", views)
        view: View = tools.segmented_control("View", views, required=True, **held)
        left, right = st.columns([2, 1])
        with left, explained_errors():
            _gallery(test, "fixed", group=group, view=view)
        with right, explained_errors():
            _gallery(test, "broken", group=group, view=view)
        k = test.run.config.masking.k
        leaned = f"what the model before leaned on: hotter than mean + {k:g} sigma"
        hidden, heat = leaned if view == "Hidden" else "", view.startswith("Heat")
        show(piece("key", hidden=hidden, heat=heat, words=CAPTIONS))
        write_address_again("flips")


def _gallery(test: OpenSplit, state: AnswerChange, *, group: int | None, view: View) -> None:
    meaning, size = PAGES[state]
    found = pictures_of(test, state=state, group=group)
    head = st.container(horizontal=True, vertical_alignment="center")
    mark = FlipMark(test.name, state, ALL if group is None else group)
    link = mark_link(mark, f"{count(len(found))} {state}") if found else ""
    with head:
        show(piece("gallery", state=state, number=len(found), meaning=meaning, link=link))
    if not found:
        say(f"No answer was {state} here.", kind="muted")
        return
    # Page numbers go below, so that the pictures of both galleries begin at one height.
    body = st.container()
    key = own_key(f"compare_flips_{state}_{group}", test)
    positions = pager(found, size, key=key, name=f"compare_flips_{state}_page")
    across = size // 2

    def make() -> Markup:
        answers = answers_at(test, positions)
        return sheet_html(
            view_tiles(test, positions, view),
            [answer.html(with_state=False) for answer in answers],
            labels=[answer.words() for answer in answers],
            across=across,
            photos=photos(test.run.bundle),
            links=picture_links(test.name, positions),
        )

    with body:
        show(drawn(test, (view, across, *positions), make))
    download(
        "PNG",
        lambda: png_bytes(sheet(view_tiles(test, positions, view), across)),
        f"{state}.png",
        place=head,
    )


def view_tiles(test: OpenSplit, positions: Sequence[int], view: View) -> list[Picture]:
    """Paint pictures of a test set as a view shows them."""
    if view == "Picture":
        return picture_tiles(test.split, positions)
    found = looks_of(test, positions)
    if view == "Hidden":
        masking = test.run.config.masking
        keep = keep_masks(torch.from_numpy(found.before), masking.k, statistics=masking.statistics)
        return [
            hidden_over(enlarged(picture, TILE), enlarged(kept, TILE))
            for picture, kept in zip(found.pictures, keep.numpy(), strict=True)
        ]
    heat = found.before if view == "Heat before" else found.after
    return [
        enlarged(heat_over(picture, one), TILE)
        for picture, one in zip(found.pictures, heat, strict=True)
    ]
