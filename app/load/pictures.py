"""The Load page's first card: where pictures come from, and what the check of their files found."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from markupsafe import Markup

from app.shared.pieces import download
from app.shared.problems import explained_errors, plain
from app.shared.sheets import show
from app.state import keep, subject
from app.uploads import keep_upload, uploads_home
from masktune.config import RunConfig
from masktune.data.card import DatasetCard, Skipped
from masktune.data.types import DatasetBundle
from masktune.datasets.catalogue import CATALOGUE, OWN
from masktune.files import csv_bytes, written_path
from masktune.show.markup import piece
from masktune.show.wording import count

DEMO, CATALOGUED, FOLDER, UPLOAD = "Demo", "Catalogue", "Folder", "Upload"
NAMED = 8
"""Unusable files that are named on the page; the file has all."""

READ_HELP = "The pictures are read where they are. Nothing is moved, changed or uploaded."


class Check(NamedTuple):
    """One line of a verdict: whether it is fine, what it says, and a smaller second line."""

    fine: bool
    text: str
    more: str = ""


def choose_pictures() -> tuple[str | None, str | None]:
    """Let somebody choose pictures; give dataset key and root."""
    st.header("Pictures", anchor=False)
    now = subject()
    _follow(now)
    source = st.segmented_control(
        "Where from",
        [DEMO, CATALOGUED, FOLDER, UPLOAD],
        default=source_of(now),
        required=True,
        label_visibility="collapsed",
        width="stretch",
        key="load_source",
    )
    if source == FOLDER:
        return _own_folder()
    if source == UPLOAD:
        return _own_upload(now)
    return _listed(now, bundled=source == DEMO)


def _follow(now: RunConfig | None) -> None:
    """Write a folder that was loaded elsewhere into its field; else the field keeps its path."""
    state, root = st.session_state, now.root if source_of(now) == FOLDER and now else None
    if "own_root" not in state or state.own_root_loaded != root:
        state.update({"own_root": root or state.get("own_root", ""), "own_root_loaded": root})


def source_of(loaded: RunConfig | None) -> str:
    """Tell which switch pictures belong to."""
    if loaded is None or CATALOGUE[loaded.dataset].bundled:
        return DEMO
    if loaded.dataset != OWN:
        return CATALOGUED
    return UPLOAD if _uploaded(loaded.root) else FOLDER


def _uploaded(root: str | None) -> bool:
    return root is not None and Path(root).is_relative_to(uploads_home())


def _own_folder() -> tuple[str | None, str | None]:
    st.caption(
        "One folder a class, with or without train, val and test around them; a folder for each "
        "attribute inside a class gives groups. Or a metadata.csv with columns for file, label, "
        "and, if there are any, attribute and split."
    )
    root = st.text_input(
        "Folder, CSV or ZIP on this computer",
        placeholder="/data/my-pictures",
        help=READ_HELP,
        **keep("own_root"),
    )
    return (OWN, str(written_path(root.strip()))) if root.strip() else (None, None)


def _own_upload(now: RunConfig | None) -> tuple[str | None, str | None]:
    st.caption(
        "A ZIP of pictures in one folder a class, or with a metadata.csv. For more than 200 MB put "
        "it on this computer's disk and give its path under Folder."
    )
    given = st.file_uploader("ZIP of pictures", type=["zip"], key="own_zip")
    if given is not None:
        with explained_errors():
            return OWN, str(keep_upload(given.name, given, upload=given.file_id))
    if now is not None and source_of(now) == UPLOAD:
        st.caption(f"Loaded: {plain(Path(now.root or '').name)}")
        return OWN, now.root
    return None, None


def _listed(now: RunConfig | None, *, bundled: bool) -> tuple[str | None, str | None]:
    cards = [c for c in CATALOGUE.values() if c.bundled == bundled and c.key != OWN]
    keys = [card.key for card in cards]
    key = st.selectbox(
        "Dataset",
        keys,
        index=keys.index(now.dataset) if now is not None and now.dataset in keys else 0,
        format_func=lambda k: CATALOGUE[k].title,
        key=f"load_dataset_{'demo' if bundled else 'catalogue'}",
    )
    card = CATALOGUE[key]
    st.caption(plain(card.summary))
    return (key, None) if bundled else _rooted(card, now)


def _rooted(card: DatasetCard, now: RunConfig | None) -> tuple[str | None, str | None]:
    """Ask where a dataset of the catalogue lies, or whether to download it."""
    same = now if now is not None and now.dataset == card.key else None
    st.caption(f"The folder must hold {plain(card.layout)}.")
    if card.download and st.checkbox(
        f"I have no copy: download it ({card.download})",
        value=same is not None and same.root is None,
        key=f"download_{card.key}",
    ):
        return card.key, None
    root = st.text_input(
        "Folder on this computer",
        value=(same.root or "") if same is not None else "",
        placeholder="/data",
        help=READ_HELP,
        key=f"root_{card.key}",
    )
    return (card.key, str(written_path(root.strip()))) if root.strip() else (None, None)


def picture_checks(data: DatasetBundle) -> list[Check]:
    """Say what was found in a dataset's files."""
    sizes = {"train": data.train, "validation": data.validation, **data.tests}
    splits = ", ".join(f"{name} {count(len(part))}" for name, part in sizes.items())
    checks = [Check(True, f"Splits: {splits}"), *(Check(True, found) for found in data.findings)]
    if data.skipped:
        checks.append(Check(False, data.left_out, "The rest works."))
    return checks


def checks_html(checks: Sequence[Check]) -> Markup:
    """Return a verdict line by line: a tick or an exclamation mark, and the words."""
    return piece("checks", checks=checks)


def show_pictures_check(data: DatasetBundle) -> None:
    """Show the verdict on a dataset's files, and name those that were left out."""
    show(checks_html(picture_checks(data)))
    if data.skipped:
        with st.expander(f"Files left out: {count(len(data.skipped))}"):
            for skipped in data.skipped[:NAMED]:
                st.caption(f"{plain(skipped.path)}: {plain(skipped.reason)}")
            name = f"{data.card.key}-left-out.csv"
            download("All of them (CSV)", skipped_csv(data.skipped), name, prominent=True)


def skipped_csv(skipped: Sequence[Skipped]) -> bytes:
    """Give the files that were left out with the reason for each."""
    return csv_bytes(("file", "reason"), skipped, end="\r\n")
