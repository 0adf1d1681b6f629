"""The card that asks both models about pictures that nobody has labelled."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from app.abstain import files
from app.abstain.numbers import Reading
from app.joined import joined
from app.kept import COMPUTED
from app.opened import written
from app.shared.pieces import card, download, pager
from app.shared.problems import explained_errors, plain
from app.shared.progress import shown_progress
from app.shared.sheets import picture_link, show
from app.state import keep
from app.uploads import address_of, keep_upload, uploads_home
from masktune.data.frame import Frame
from masktune.data.listing import SUFFIXES
from masktune.data.types import first_skipped
from masktune.datasets.own import pictures_of
from masktune.files import stamp, written_path
from masktune.progress import Watcher
from masktune.runs.open import OpenSplit
from masktune.runs.pair import (
    SCORES,
    Answers,
    SelectivePair,
    answer_pictures,
    thresholds,
    unlabelled,
)
from masktune.show.contact_sheets import photos, picture_tiles
from masktune.show.markup import piece, sheet_html
from masktune.show.wording import pictures, score_name

ACROSS = 7
SHOWN = 2 * ACROSS
"""Pictures on a sheet."""

NOTHING = (None, "", (), None)
"""What was asked before anybody asked: the run, the path, the uploads, and their files."""

Files = tuple[Path, tuple[Path, ...]]
"""The folder that pictures lie under, and the pictures."""

HINT = (
    "Each picture gets an answer, or none where its score is at most **gamma**, the threshold that "
    "answers the target share of validation pictures. Whether new pictures are like those is "
    "for you to judge: on others the share that is answered may differ."
)


def new_pictures_card(test: OpenSplit, reading: Reading) -> None:
    """Let people ask about pictures of their own, and take the pair of models away."""
    # A method's own score lives in parts of its network that a checkpoint does not keep.
    score = reading.score if reading.score in SCORES else "after"
    with card("abstain_new", "New pictures", hint=HINT) as head:
        download(
            "Both models and gamma (ZIP)",
            lambda: SelectivePair.of(test.run, coverage=reading.target).to_zip(),
            files.name(test, "pair.zip"),
            place=head,
        )
        left, right = st.columns(2)
        path = left.text_input(
            "Folder, ZIP or picture on this computer",
            placeholder="/data/new-pictures",
            help="Labels are not needed. The pictures are read where they are.",
            **keep("new_path"),
        ).strip()
        given = right.file_uploader(
            "Or upload pictures, or a ZIP of them",
            type=[*(suffix[1:] for suffix in SUFFIXES), "zip"],
            accept_multiple_files=True,
            key="new_upload",
        )
        asked = st.button(
            "Answer these pictures", disabled=not (path or given), icon=":material/play_arrow:"
        )
        uploads = tuple(each.file_id for each in given)
        with explained_errors():
            if asked:
                st.session_state.pop("new_files", None)  # no answer to what is asked now
                st.session_state.new_files = test.run.path, path, uploads, _files(path, given)
            run, by_path, by_upload, asked_about = st.session_state.get("new_files", NOTHING)
            # Another run's models answer when somebody asks them, and so about other pictures. Who
            # comes back to this page finds the answers, but no upload in its place.
            if run == test.run.path and by_path == path and uploads in (by_upload, ()):
                folder, paths = asked_about
                _answered(test, reading, score, folder, *paths)


def _files(path: str, given: Sequence[UploadedFile]) -> Files:
    """Return the folder and the files that are asked about: uploads, else a path."""
    if not given:
        folder, paths = pictures_of(written_path(path))
        return folder, tuple(paths)
    uploaded = [keep_upload(each.name, each, upload=each.file_id) for each in given]
    return uploads_home(), tuple(one for kept in uploaded for one in pictures_of(kept)[1])


def _answered(test: OpenSplit, reading: Reading, score: str, folder: Path, *paths: Path) -> None:
    files_now = tuple((path, stamp(str(path))) for path in paths)
    key = ("new", written(test.run.path), folder, files_now)

    def ask(watcher: Watcher) -> tuple[Frame, Answers]:
        pair = SelectivePair.of(test.run, coverage=reading.target)
        return pair.frame, answer_pictures(pair, folder, paths, watcher=watcher)

    with shown_progress("Asking both models") as watcher:
        seen, asked = joined(COMPUTED, key, ask, watcher=watcher)
    found = asked.at(thresholds(test.run, reading.target))
    said = found.said[score]
    st.markdown(
        f"**{said.accepted.sum():,} of {pictures(len(found.files))} answered** by the "
        f"{score_name(score)} score at a target coverage of {reading.target:.0%}."
    )
    if found.skipped:
        st.caption(plain(f"Left out, unusable: {first_skipped(found.skipped)}."))
    with st.container(key="abstain_new_sheet"):
        place = st.empty()
    shown = pager(range(len(found.files)), SHOWN, key="abstain_new_page")
    files_shown = [folder / found.files[each] for each in shown]
    split = unlabelled(files_shown, seen)
    # Only what was brought here has an address: a link opens no other file of this computer.
    addresses = [address_of(path) for path in files_shown]
    told = [_caption(found, score, position) for position in shown]
    with place:
        show(
            sheet_html(
                picture_tiles(split, range(len(shown))),
                [piece("caption", strong=strong, small=small) for strong, small in told],
                labels=[f"{strong}, {small}" for strong, small in told],
                across=ACROSS,
                photos=photos(test.run.bundle),
                links=["" if one is None else picture_link(one) for one in addresses],
            )
        )
    download("Answers (CSV)", found.csv, files.name(test, "new-pictures.csv"), prominent=True)


def _caption(found: Answers, score: str, position: int) -> tuple[str, str]:
    """Return what is said of a picture, and by whom."""
    said, name = found.said[score], Path(found.files[position]).name
    answer = found.classes[int(said.answers[position])]
    before, after = (
        found.classes[int(found.said[model].answers[position])] for model in ("before", "after")
    )
    return (
        answer if said.accepted[position] else "No answer",
        f"{name}: before {before}, after {after}, {score} {said.scores[position]:.3f}",
    )
