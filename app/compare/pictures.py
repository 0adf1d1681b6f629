"""The pictures of the Compare page: where both models look, and which answers changed."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import streamlit as st
import torch
from markupsafe import Markup
from streamlit.delta_generator import DeltaGenerator

from app.compare.files import sheet_png
from app.compare.outcome import Outcome
from app.opened import drawn, looks_of
from app.shared.pieces import card, download, pager
from app.shared.problems import explained_errors
from app.shared.sheets import show
from app.state import keep
from masktune.heat.keep import keep_masks
from masktune.scores.flips import AnswerChange
from masktune.show.answers import answers_at
from masktune.show.contact_sheets import NO_MAPS, STATES, TILE, most_changed, telling
from masktune.show.markup import chip, piece, rows_html, sheet_html
from masktune.show.painting import Picture, enlarged, heat_over, hidden_over, picture_of
from masktune.show.wording import count

ACROSS = 6
"""Pictures side by side in "Where it looks"."""

ALL = -1
"""Stands for all groups in a list of them."""

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
def show_looks(outcome: Outcome) -> None:
    """Draw rows of pictures with both heats and their difference."""
    if outcome.view.layer is None:
        show(f'<p class="muted">{NO_MAPS}</p>')
        return
    method = f"{outcome.view.config.masking.method} at layer {outcome.view.layer}"
    with (
        card(
            "compare_looks",
            "Where it looks",
            hint=f"Heat ({method}) for the answer each model gives. Both models share one scale; "
            "the difference is after minus before.",
        ) as tools,
        explained_errors(),
    ):
        positions = _choose_pictures(outcome)
        if not positions:
            show('<p class="muted">There is no such picture in this group.</p>')
            return
        download("PNG", lambda: looks_png(outcome, positions), "where-it-looks.png", place=tools)
        what = ("looks", *positions)
        sheet = drawn(outcome.test, what, lambda: looks_html(outcome, positions))
        # A short page leaves places free; its pictures do not grow to fill them.
        width = f"calc(94px + (100% - 94px) * {len(positions) / ACROSS:.4f})"
        key = piece("key", heat=True, change=True, words=CAPTIONS)
        show(f'<div style="max-width:{width}">{sheet}</div>{key}')


def looks_html(outcome: Outcome, positions: Sequence[int]) -> Markup:
    """Return rows of pictures with both heats and their difference."""
    answers = answers_at(outcome.test, positions)
    return rows_html(
        looks_of(outcome.test, positions).rows(),
        [answer.html() for answer in answers],
        labels=[answer.words() for answer in answers],
        photos=outcome.photos,
    )


def looks_png(outcome: Outcome, positions: Sequence[int]) -> bytes:
    """Return the same rows as a PNG file."""
    rows = looks_of(outcome.test, positions).rows()
    return sheet_png([tile for row in rows.values() for tile in row], len(positions))


def _choose_pictures(outcome: Outcome) -> list[int]:
    """Let people choose the pictures: a kind and a group page by page, or a position."""
    left, middle, right = st.columns([1.1, 1.3, 1.4], vertical_alignment="bottom")
    kind = left.selectbox(
        "Pictures",
        KINDS,
        **keep("compare_looks_kind"),
    )
    st.caption(CHOSEN.get(kind, "In the order of the test set."))
    if kind == ANY:
        start = middle.number_input(
            "Position in the test set",
            0,
            len(outcome.test) - 1,
            key=f"compare_looks_position_{_place(outcome)}",
            help="Counted from 0, as in the file of answers.",
        )
        return list(range(int(start), min(int(start) + ACROSS, len(outcome.test))))
    if kind == MIX:
        return mixed(outcome)
    group = _choose_group(middle, outcome, key="compare_looks_group")
    found = outcome.positions(state=KINDS[kind], group=group)
    if kind == MOST:
        wanted = set(found)
        found = [p for p in most_changed(outcome.test.pair) if p in wanted]
    with right:
        return pager(found, ACROSS, key=f"compare_looks_{kind}_{group}_{_place(outcome)}")


def _choose_group(place: DeltaGenerator, outcome: Outcome, *, key: str) -> int | None:
    """Let people choose a group; None is all of them."""
    names = {ALL: "All groups", **outcome.group_names()}
    chosen: int = place.selectbox(
        "Group",
        list(names),
        format_func=names.__getitem__,
        key=f"{key}_{_place(outcome)}",
        width=230,
    )
    return None if chosen == ALL else chosen


def _place(outcome: Outcome) -> str:
    """Tell widgets of different pictures apart: a group or page of one may be none of another."""
    return f"{outcome.run}_{outcome.test.name}"


def mixed(outcome: Outcome) -> list[int]:
    """Choose as many pictures as a row holds, of all groups and states."""
    return telling(outcome.test.pair, count=ACROSS, most=ACROSS)[:ACROSS]


@st.fragment
def show_flips(outcome: Outcome) -> None:
    """Draw the answers that were fixed beside those that were broken."""
    with card(
        "compare_flips",
        "Answers that changed",
        hint="In the order of the test set. Harm stands beside help.",
    ) as tools:
        group = _choose_group(tools, outcome, key="compare_flips_group")
        view: View = tools.segmented_control(
            "View",
            get_args(View),
            default="Hidden",
            required=True,
            **keep("compare_flips_view"),
        )
        left, right = st.columns([2, 1])
        with left, explained_errors():
            _gallery(outcome, "fixed", group=group, view=view)
        with right, explained_errors():
            _gallery(outcome, "broken", group=group, view=view)
        show(flips_key(outcome, view))


def flips_key(outcome: Outcome, view: View) -> Markup:
    """Say what is painted on the pictures."""
    k = outcome.view.config.masking.k
    leaned = f"what the model before leaned on: hotter than mean + {k:g} sigma"
    return piece(
        "key",
        hidden=leaned if view == "Hidden" else "",
        heat=view in ("Heat before", "Heat after"),
        words=CAPTIONS,
    )


def _gallery(outcome: Outcome, state: AnswerChange, *, group: int | None, view: View) -> None:
    meaning, size = PAGES[state]
    found = outcome.positions(state=state, group=group)
    head = st.container(horizontal=True, vertical_alignment="center")
    with head:
        show(f"<p>{chip(state)} <b>{count(len(found))} {state}</b> {meaning}</p>")
    if not found:
        show(f'<p class="muted">No answer was {state} here.</p>')
        return
    # Page numbers go below, so that the pictures of both galleries begin at one height.
    body = st.container()
    positions = pager(found, size, key=f"compare_flips_{state}_{group}_{_place(outcome)}")
    across = size // 2
    with body:
        what = (view, across, *positions)
        show(drawn(outcome.test, what, lambda: view_html(outcome, positions, view, across=across)))
    download(
        "PNG",
        lambda: sheet_png(view_tiles(outcome, positions, view), across),
        f"{state}.png",
        place=head,
    )


def view_html(outcome: Outcome, positions: Sequence[int], view: View, *, across: int) -> Markup:
    """Return pictures of a test set as a view shows them, with both answers under each."""
    answers = answers_at(outcome.test, positions)
    return sheet_html(
        view_tiles(outcome, positions, view),
        [answer.html(with_state=False) for answer in answers],
        labels=[answer.words() for answer in answers],
        across=across,
        photos=outcome.photos,
    )


def view_tiles(outcome: Outcome, positions: Sequence[int], view: View) -> list[Picture]:
    """Paint pictures of a test set as a view shows them."""
    if view == "Picture":
        images = outcome.test.split.images.batch(positions)
        return [enlarged(picture_of(image), TILE) for image in images]
    found = looks_of(outcome.test, positions)
    if view == "Hidden":
        masking = outcome.view.config.masking
        keep = keep_masks(torch.from_numpy(found.before), masking.k, statistics=masking.statistics)
        return [
            hidden_over(enlarged(picture, TILE), enlarged(kept, TILE))
            for picture, kept in zip(found.pictures, np.asarray(keep), strict=True)
        ]
    heat = found.before if view == "Heat before" else found.after
    return [
        enlarged(heat_over(picture, one), TILE)
        for picture, one in zip(found.pictures, heat, strict=True)
    ]
