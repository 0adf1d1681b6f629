"""The card with the pictures that are held back, or answered."""

import streamlit as st

from app.abstain import files, pictures
from app.abstain.numbers import Reading
from app.abstain.pictures import Kind, contact_sheet
from app.abstain.tested import Tested
from app.kept import DRAWN
from app.shared.pieces import download, pager
from app.shared.problems import explained_errors
from app.shared.sheets import show
from app.state import keep
from masktune.scores.groups import ANY, group_examples
from masktune.show.wording import count

ALL = -1
"""Stands for all groups where one can be chosen."""


def pictures_card(test: Tested, reading: Reading) -> None:
    """Show the pictures that are held back, or answered."""
    with st.container(key="card_abstain_pictures", height="stretch"):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
        ):
            st.header("Which pictures", anchor=False, width="content")
            kind: Kind = (
                st.segmented_control(
                    "Which pictures",
                    pictures.KINDS,
                    default="Held back",
                    required=True,
                    **keep("abstain_kind"),
                    label_visibility="collapsed",
                )
                or "Held back"
            )
        with explained_errors():
            _sheet(test, reading, kind)


def _sheet(test: Tested, reading: Reading, kind: Kind) -> None:
    known, split = test.split, test.split.split
    ranked = test.rankings.test[reading.score]
    grouping = group_examples(test.pair.before, classes=known.classes, attributes=known.attributes)
    found = pictures.choose(ranked, reading.point.gamma, kind=kind)
    names = {ALL: "All groups"} | {
        number: label if attribute == ANY else f"{label}, {attribute}"
        for number, (label, attribute) in enumerate(grouping.names())
        if number in grouping.ids
    }
    group = st.selectbox(
        "Group",
        list(names),
        format_func=names.__getitem__,
        key=f"abstain_group_{test.name}",
        label_visibility="collapsed",
        width=280,
    )
    if group != ALL:
        found = found[grouping.ids[found] == group]
    if not len(found):
        st.caption(f"No picture is {kind.lower()} at this target.")
        return
    with st.container(key="abstain_sheet"):
        place = st.empty()
    shown = pager(found.tolist(), pictures.SHOWN, key=f"abstain_page_{kind}_{group}")
    facts = pictures.facts(test.pair, ranked, shown, names=known)
    with place:
        key = (test.run, test.name, *shown, *facts, kind)
        show(DRAWN.get(key, lambda: contact_sheet(split, shown, known=facts, kind=kind)))
    st.caption(
        f"Captions: answer before / after, what it is, {reading.score} score. "
        f"{count(len(found))} pictures, {pictures.ORDER[kind]}."
    )
    with st.container(horizontal=True):
        download(
            "This sheet (PNG)",
            lambda: pictures.sheet_png(split, shown),
            test.file_name("pictures.png"),
        )
        download(
            "All pictures (CSV)",
            lambda: files.pictures_csv(test.pair, test.rankings, reading, names=known),
            test.file_name("pictures.csv"),
        )
