"""The Load page's first card: where pictures come from, and what the check of their files found."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from app import loaded as cached
from app.shared.pieces import download
from app.shared.problems import explained_errors, plain
from app.shared.progress import shown_progress
from app.shared.sheets import show
from app.state import keep, look_at, subject
from app.uploads import keep_upload, uploads_home
from masktune.cache import Cache
from masktune.checkpoints.settings import settings
from masktune.config import RunConfig, Value, names_listed
from masktune.data.card import DatasetCard
from masktune.data.fingerprint import stamp
from masktune.data.folders import innermost
from masktune.data.types import DatasetBundle
from masktune.datasets.catalogue import CATALOGUE, OWN, title
from masktune.datasets.own import pictures_of
from masktune.datasets.recognise import recognised
from masktune.errors import DataError
from masktune.files import csv_bytes, is_file, written_path
from masktune.show.markup import piece
from masktune.show.wording import count

DEMO, CATALOGUED, FOLDER, UPLOAD = "Demo", "Catalogue", "Folder", "Upload"
TAKEN, NAMES = "pictures", "class_names"
"""What may be taken by a click elsewhere, see ``anew``."""

NAMED = 8
"""Unusable files that are named on the page; the file has all."""

CHOICES = {
    "exceptions": (
        "Exceptions",
        {"random": "Any, by chance", "authors": "Only 4s and 5s"},
        "Which digits go without the clue of their class. In the authors' code all of them are 4s, "
        "and 5s on the other side, so a model can learn the exceptions by their shape.",
    ),
    "stamp": (
        "Stamp",
        {"two-sided": "One a class", "one-sided": "On one class only", "none": "None"},
        "What is planted in a corner of the photographs: stripes on one class and a disc on the "
        "other, a stamp on one class only, or nothing, to see what the cats alone give.",
    ),
}
"""What some datasets heed: its name on the page, words for each choice, and what it does."""
READ_HELP = "The pictures are read where they are. Nothing is moved, changed or uploaded."


Chosen = dict[str, Value]
"""What was chosen of a run's options; empty until something is."""

_UNPACKED = Cache(most=16)  # folders of zips, which are hashed for it


class Check(NamedTuple):
    """One line of a verdict: whether it is fine, what it says, and a smaller second line."""

    fine: bool
    text: str
    more: str = ""


def choose_pictures() -> Chosen:
    """Let somebody choose pictures."""
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
        key=f"load_source{turn(TAKEN)}",
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
    return UPLOAD if Path(loaded.root or "").is_relative_to(uploads_home()) else FOLDER


def _own_folder() -> Chosen:
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
    if not root.strip():
        return {}
    return _own(written_path(root.strip()))


def _own(place: Path) -> Chosen:
    """Ask what own pictures are called; offer to take them as a dataset that they look like."""
    for folder in _folders(place):
        if keys := recognised(folder):
            _offer(keys, str(folder))
            break
    return _named(str(place))


def _folders(place: Path) -> tuple[Path, ...]:
    """Return where pictures may lie: of a zip its folder, unpacked, and the only one in that.

    There is none of a zip that cannot be unpacked: who reads the pictures says why.
    """
    if place.suffix.lower() != ".zip" or not is_file(place):
        return (place,)

    def unpacked() -> Path:
        with shown_progress("Unpacking the pictures", unit="files") as watcher:
            return pictures_of(place, watcher=watcher)[0]

    try:
        folder = _UNPACKED.get((place, stamp(place)), unpacked)
    except DataError:
        return ()
    return folder, innermost(folder)


def _offer(keys: Sequence[str], root: str) -> None:
    """Say that a folder is a dataset of the catalogue, and take it as one by a click."""
    known = " or ".join(CATALOGUE[key].title for key in keys)
    st.info(
        plain(f"This looks like {known}, which has parts and groups of its own."),
        icon=":material/lightbulb:",
    )
    with st.container(horizontal=True):
        for key in keys:
            st.button(
                f"Take it as {CATALOGUE[key].title}",
                key=f"take_as_{key}",
                on_click=_take_as,
                args=(key, root),
            )


def _take_as(key: str, root: str) -> None:
    look_at(settings({"dataset": key, "root": root}))
    anew(TAKEN)


def anew(what: str) -> None:
    """Let a widget begin again from what is loaded: that was taken by a click elsewhere."""
    st.session_state[f"turn_{what}"] = st.session_state.get(f"turn_{what}", 0) + 1


def turn(what: str) -> str:
    """Return the end of the key of a widget that may have to begin again."""
    turns: int = st.session_state.get(f"turn_{what}", 0)
    return f"_{turns}" if turns else ""


def _named(root: str) -> Chosen:
    """Ask what own pictures and their classes are called, and for their attributes."""
    now = subject()
    same = now if now is not None and (now.dataset, now.root) == (OWN, root) else None
    name = st.text_input(
        "Name",
        value=(same.title or "") if same is not None else "",
        placeholder=title(OWN, root),
        key=f"title_{root}",
        help="What these pictures are called on every page, in the list of runs and in reports.",
    )
    names = st.text_input(
        "Class names",
        value=(same.class_names or "") if same is not None else "",
        placeholder="as the folders or the list call them",
        key=f"class_names_{root}{turn(NAMES)}",
        help="Names for the classes in their order, with commas between, such as: landbird, "
        "waterbird. Useful where the classes are called 0 and 1.",
    ).strip()
    chosen: Chosen = {"dataset": OWN, "root": root, "title": name.strip()}
    if names:
        with explained_errors():
            chosen["class_names"] = ",".join(names_listed(names))
    return chosen | _attributes(OWN, root, now)


def _attributes(dataset: str, root: Value, loaded: RunConfig | None) -> Chosen:
    """Ask for a CSV of attributes, by upload or by path."""
    same = loaded is not None and (loaded.dataset, loaded.root) == (dataset, root)
    now = (loaded.attributes or "") if loaded is not None and same else ""
    with st.expander("Attributes from a CSV", expanded=bool(now)):
        st.caption(
            "A CSV with a header and two columns, file name and attribute, gives groups, and so a "
            "worst group, to any pictures that are files. It must name every picture."
        )
        given = st.file_uploader(
            "CSV of attributes", type=["csv", "tsv", "txt"], key=f"attributes_file_{dataset}_{root}"
        )
        path = st.text_input(
            "or its path on this computer",
            value=now,
            placeholder="attributes.csv",
            disabled=given is not None,
            key=f"attributes_{dataset}_{root}",
        )
        if given is not None:
            with explained_errors():
                path = str(keep_upload(given.name, given, upload=given.file_id))
    return {"attributes": str(written_path(path.strip()))} if path.strip() else {}


def _own_upload(now: RunConfig | None) -> Chosen:
    st.caption(
        "A ZIP of pictures in one folder a class, or with a metadata.csv. For more than 200 MB put "
        "it on this computer's disk and give its path under Folder."
    )
    given = st.file_uploader("ZIP of pictures", type=["zip"], key="own_zip")
    if given is not None:
        with explained_errors():
            return _own(keep_upload(given.name, given, upload=given.file_id))
    if now is not None and now.root is not None and source_of(now) == UPLOAD:
        st.caption(f"Loaded: {plain(Path(now.root).name)}")
        return _own(Path(now.root))
    return {}


def _listed(now: RunConfig | None, *, bundled: bool) -> Chosen:
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
    chosen: Chosen = {"dataset": key, "root": None} if bundled else _rooted(card, now)
    if not chosen:
        return {}
    if card.in_files:
        chosen |= _attributes(key, chosen["root"], now)
    elif not bundled:  # the demos have the groups that they are there for
        st.caption(
            "No attributes from a CSV: these pictures are read into memory together, and it names "
            "pictures by their files."
        )
    return chosen | _heeded(card, now)


def _heeded(card: DatasetCard, now: RunConfig | None) -> Chosen:
    """Ask for the settings that the pictures of a dataset heed."""
    same = now if now is not None and now.dataset == card.key else settings({"dataset": card.key})
    chosen: Chosen = {}
    for name in card.heeds:
        if name in CHOICES:
            label, words, hint = CHOICES[name]
            chosen[name] = st.segmented_control(
                label,
                list(words),
                default=getattr(same, name),
                required=True,
                format_func=words.__getitem__,
                key=f"{name}_{card.key}",
                help=hint,
            )
        elif chosen.get("stamp") != "none":
            chosen["correlation"] = st.slider(
                "Correlation",
                min_value=0.5,
                max_value=1.0,
                value=same.correlation,
                step=0.01,
                format="percent",
                key=f"correlation_{card.key}",
                help="Share of a class that carries its stamp in training. At 50% the stamp says "
                "nothing.",
            )
    return chosen


def _rooted(card: DatasetCard, now: RunConfig | None) -> Chosen:
    """Ask where a dataset of the catalogue lies, or whether to download it."""
    same = now if now is not None and now.dataset == card.key else None
    st.caption(f"The folder must hold {plain(card.layout)}.")
    if card.download and st.checkbox(
        f"I have no copy: download it ({card.download})",
        value=same is not None and same.root is None,
        key=f"download_{card.key}",
    ):
        return {"dataset": card.key, "root": None}
    root = st.text_input(
        "Folder on this computer",
        value=(same.root or "") if same is not None else "",
        placeholder="/data",
        help=READ_HELP,
        key=f"root_{card.key}",
    )
    if not root.strip():
        return {}
    return {"dataset": card.key, "root": str(written_path(root.strip()))}


def show_checks(checks: Sequence[Check]) -> None:
    """Show a verdict line by line: a tick or an exclamation mark, and the words."""
    show(piece("checks", checks=checks))


def show_pictures_check(data: DatasetBundle) -> None:
    """Show the verdict on a dataset's files, and name those that were left out."""
    sizes = (f"{name} {count(len(part))}" for name, part in cached.splits(data).items())
    checks = [
        Check(True, f"Splits: {', '.join(sizes)}"),
        *(Check(True, found) for found in data.findings),
    ]
    if not data.skipped:
        show_checks(checks)
        return
    show_checks([*checks, Check(False, data.left_out, "The rest works.")])
    with st.expander(f"Files left out: {count(len(data.skipped))}"):
        for skipped in data.skipped[:NAMED]:
            st.caption(f"{plain(skipped.path)}: {plain(skipped.reason)}")
        every = csv_bytes(("file", "reason"), data.skipped, end="\r\n")
        name = f"{data.card.key}-left-out.csv"
        download("All of them (CSV)", every, name, prominent=True)
