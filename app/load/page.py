"""Load: choose pictures and a trained model, see at once how it does in each group."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import loaded as cached
from app.load.cards import (
    Group,
    correlation_sentence,
    groups_of,
    groups_table,
    sample_positions,
    samples_html,
    worst_sentence,
)
from app.load.does import show_how_it_does
from app.load.model import choose_model, file_checks, for_these_classes, model_checks
from app.load.pictures import Chosen, choose_pictures, show_checks, show_pictures_check
from app.load.sees import choose_input, show_input
from app.load.train import PRESSED, draw_start, offer_new_head
from app.shared.drawer import of_loaded, show_drawer
from app.shared.pages import heading, page_file
from app.shared.pieces import download, empty
from app.shared.problems import explained_errors, here, plain, show_problem
from app.shared.progress import shown_progress
from app.shared.sheets import show
from app.state import keep, look_at, sensible, start, subject
from masktune.checkpoints.checkpoint import ClassCountError
from masktune.checkpoints.inspect import Diagnosis
from masktune.checkpoints.settings import given_by, settings
from masktune.config import BUNDLED, RunConfig
from masktune.data.types import DatasetBundle
from masktune.datasets.catalogue import OWN
from masktune.runs.load import title_of
from masktune.scores.groups import GroupScore, group_scores
from masktune.show.markup import piece
from masktune.show.tables import csv, html

MOST_GROUPS = 8
"""Groups of which samples are shown."""


def render() -> None:
    """Draw the page."""
    heading("Load", "Choose pictures and a trained classifier. You see at once how it does.")
    choices, consequences = st.columns([1, 1.7], gap="medium")
    with choices:
        with st.container(key="card_pictures"):
            pictures = choose_pictures()
            pictures_verdict = st.container()
        with st.container(key="card_model"):
            model = choose_model(pictures)
            found = _diagnosis(model)
            unusable = found is not None and not found.ok
            if found is not None and unusable:
                show_problem(found.problem, here(found.remedy, found.choices))
            model_verdict = st.container()
        with st.container(key="card_sees"):
            seen = choose_input(pictures, model, found)
            seen_verdict = st.container()
    wanted = alone = None
    without_model = bool(pictures)
    if model and not unusable:
        with model_verdict, explained_errors():
            _wanted({**pictures, **model})  # what is wrong with a choice is said under it
            with seen_verdict, explained_errors():
                wanted = _wanted({**pictures, **seen, **model})
        with consequences:
            without_model = _refused(wanted, pictures_verdict, model_verdict)
    if without_model:
        with pictures_verdict, explained_errors():
            chosen = settings({**pictures, "frame": seen["frame"]})
            show_pictures_check(_read(chosen))
            alone = chosen
    with consequences:
        loaded = subject()
        if alone is not None and (loaded is None or _pictures(loaded) != _pictures(alone)):
            still = f" Until then {plain(_title(loaded))} stays loaded." if loaded else ""
            words = f"Now choose a model for these pictures.{still}"
            st.info(words, icon=":material/arrow_back:")
            with explained_errors():
                st.session_state.aside = True  # the address is that of what stays loaded
                _consequences(alone)
            return
        # An address may name a file that cannot be used, and then nothing was loaded before.
        if loaded is None or (unusable and loaded.model == model["model"]):
            empty(
                "Nothing to show yet",
                "Choose pictures and a model at the left. The demos need neither download nor "
                "folder.",
            )
            return
        same = wanted is not None and start() == wanted
        if not same:
            st.caption(f"Still loaded: {plain(_title(loaded))}.")
        with explained_errors():
            places = (pictures_verdict, model_verdict, seen_verdict)
            verdicts = partial(_verdicts, loaded, found, *places) if same else None
            _consequences(loaded, verdicts)


def _wanted(given: Chosen) -> RunConfig:
    """Return what was chosen; what this page does not ask stays as it is for the same pictures."""
    now = start()
    unasked: Chosen = {}
    if now is not None and now.dataset == given["dataset"]:
        told = given_by(now, "training") | {"recipe": now.recipe}
        if given.get("arch") not in (None, now.arch):
            told.pop("freeze")  # a layer of another network
        unasked = {name: value for name, value in told.items() if name not in given}
        same_pictures, same_model = now.root == given["root"], now.model == given["model"]
        if same_pictures:
            unasked["title"] = now.title
        if same_model:
            unasked |= {"seed": now.seed, "validation": now.validation}
        if same_pictures and same_model:  # classes of another folder are others
            unasked["class_order"] = now.class_order
    asked = {name: value for name, value in given.items() if value is not None}
    return sensible({**unasked, **asked})


def _pictures(subject: RunConfig) -> tuple[str | None, ...]:
    """Return what tells one's pictures, their groups and their names apart."""
    return subject.dataset, subject.root, subject.attributes, subject.class_names


def _title(subject: RunConfig) -> str:
    if subject.model in (BUNDLED, None):
        return title_of(subject)
    return f"{title_of(subject)} with {Path(subject.model).name}"


def _diagnosis(chosen: Chosen) -> Diagnosis | None:
    """Ask the doctor about a checkpoint file; None where there is no file to be asked about."""
    model, arch = chosen.get("model"), chosen.get("arch")
    if model in (None, BUNDLED):
        return None
    with st.spinner("Reading the file"):
        return cached.diagnosis(str(model), None if arch is None else str(arch))


def _refused(wanted: RunConfig | None, pictures: DeltaGenerator, model: DeltaGenerator) -> bool:
    """Load what was chosen; what was loaded before stays when it cannot be read.

    Returns:
        Whether the pictures can be read, but the model does not go with them.
    """
    now = start()
    if wanted is None or (now is not None and now == wanted and now.title == wanted.title):
        return False
    with pictures, explained_errors():
        _read(wanted)
        with model, explained_errors():
            try:
                if wanted.model is not None:
                    cached.heat_layer(wanted, None)
            except ClassCountError as error:
                show_problem(error.problem, for_these_classes(error))
                if not error.finer:
                    offer_new_head(error, wanted.dataset)
            else:
                look_at(wanted)
                st.rerun()  # the stepper above names the pictures
        return True
    return False


def _read(subject: RunConfig) -> DatasetBundle:
    """Give the pictures; where they are read for the first time, show how far that is."""
    with shown_progress("Checking the pictures", unit="files") as watcher:
        return cached.bundle(subject, watcher=watcher)


def _verdicts(
    subject: RunConfig,
    found: Diagnosis | None,
    pictures: DeltaGenerator,
    model: DeltaGenerator,
    seen: DeltaGenerator,
) -> None:
    """Say under each choice what came of it."""
    data = cached.bundle(subject)
    with pictures:
        show_pictures_check(data)
        if subject.dataset != OWN:
            source = f"{data.card.source}. Licence: {data.card.licence}"
            show(piece("paragraph", text=source, kind="note"))
    with seen:
        show_input(start() or subject)
    with model:
        if subject.model is None:
            draw_start()
            return
        show_checks([*([] if found is None else file_checks(found)), *model_checks(subject)])
        if st.button(
            "Look at the heat", type="primary", icon=":material/arrow_forward:", width="stretch"
        ):
            st.switch_page(page_file("mask"))


def _consequences(subject: RunConfig, verdicts: Callable[[], None] | None = None) -> None:
    """Show how the model does; asking it may take long, so that is what comes last."""
    data = _read(subject)
    groups = groups_of(data)
    does = None
    if subject.model is not None:
        with st.container(key="card_does"):
            st.header("How well it does", anchor=False)
            does = st.container()
    with st.container(key="card_groups"):
        st.header("Groups", anchor=False)
        first, *others = data.tests
        part = first
        if subject.model is not None:
            parts = ["", *others, "validation"]
            chosen = st.segmented_control(
                "Evaluate on",
                parts,
                format_func=lambda name: name or first,
                required=True,
                help="Which pictures the model is asked about."
                + (" It was trained on none of them." if subject.model == BUNDLED else ""),
                **keep("load_part", parts),
            )
            part = chosen or first
        numbers = st.container()
    with st.container(key="card_samples"):
        pace = _samples(subject, data, groups)
    if verdicts is not None:
        with explained_errors():
            verdicts()
    asked: set[str] = set()
    if does is not None and pace is not None:
        with does, explained_errors():
            asked = show_how_it_does(subject, data, pace)
    with numbers:
        scores = _scores(subject, data, part) if part in asked else None
        table = groups_table(groups, scores, part=part)
        show(html(table))
        sentences = [correlation_sentence(groups)]
        if scores:
            sentences.append(worst_sentence(scores, f"'{part}'"))
        st.caption(plain(" ".join(sentences)))
        name = f"{subject.dataset}-groups.csv"
        download("Groups (CSV)", lambda: csv(table, end="\r\n"), name, prominent=True)
    show_drawer(of_loaded(subject, linked=not st.session_state.aside))


def _scores(subject: RunConfig, data: DatasetBundle, part: str) -> list[GroupScore]:
    """Score the groups of a part that the model was asked about."""
    said = cached.answers(subject, part)
    return group_scores(said, classes=data.card.classes, attributes=data.card.attributes)


def _samples(subject: RunConfig, data: DatasetBundle, groups: Sequence[Group]) -> float | None:
    """Show pictures of each group; return the seconds that one answer takes, None without model."""
    st.header("Training pictures", anchor=False)
    if len(groups) > MOST_GROUPS:
        st.caption(f"The first {MOST_GROUPS} of {len(groups)} groups.")
    groups = groups[:MOST_GROUPS]
    chosen = sample_positions(data.train, groups)
    every = tuple(chain.from_iterable(chosen))
    answers, seconds = (
        (None, None) if subject.model is None else cached.sample_answers(subject, every)
    )
    # The page of one picture asks a model about what is loaded.
    linked = subject.model is not None and not st.session_state.aside
    places = st.columns(2, gap="medium")
    start = 0
    for number, (group, positions) in enumerate(zip(groups, chosen, strict=True)):
        with places[number % 2]:
            st.markdown(f"**{plain(group.name[0])}** {plain(group.name[1])}")
            if positions:
                rows = range(start, start + len(positions))
                make = partial(samples_html, data, positions, answers, rows, linked=linked)
                show(cached.drawn(subject, ("sample", linked, *positions), make))
            else:
                st.caption("No training picture.")
        start += len(positions)
    if seconds is None:
        return None
    st.caption("Captions: the model's answer and how sure it is. A cross marks a wrong answer.")
    return seconds / len(every)


render()
st.session_state.pop(PRESSED, None)  # where nothing could be started, nothing starts later
