"""Load: choose pictures and a trained model, see at once how it does in each group."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import streamlit as st
from markupsafe import Markup
from streamlit.delta_generator import DeltaGenerator

from app import loaded as cached
from app.load.cards import (
    correlation_sentence,
    groups_of,
    groups_table,
    sample_positions,
    samples_html,
    scores_of,
    worst_sentence,
)
from app.load.model import choose_model, explained_class_count, file_checks, model_checks
from app.load.pictures import checks_html, choose_pictures, show_pictures_check
from app.load.sees import Input, choose_input, show_input
from app.shared.pages import heading, page_file
from app.shared.pieces import download, empty
from app.shared.problems import explained_errors, here, plain, show_problem
from app.shared.progress import shown_progress
from app.shared.sheets import show
from app.state import look_at, start, subject
from masktune.checkpoints.inspect import Diagnosis
from masktune.checkpoints.settings import given_by, settings
from masktune.config import BUNDLED, RunConfig, Value
from masktune.data.types import DatasetBundle
from masktune.datasets.catalogue import CATALOGUE, OWN, title
from masktune.scores.groups import GroupScore
from masktune.scores.predictions import Predictions
from masktune.show.markup import piece
from masktune.show.tables import csv, html
from masktune.show.wording import count, duration

PHOTO = 64
"""Pictures at least this wide are encoded as photographs."""

AT_ONCE = 30.0
"""Seconds that asking the model may take without being asked for."""

MOST_GROUPS = 8
"""Groups of which samples are shown."""


def render() -> None:
    """Draw the page."""
    heading("Load", "Choose pictures and a trained classifier. You see at once how it does.")
    choices, consequences = st.columns([1, 1.7], gap="medium")
    with choices:
        with st.container(key="card_pictures"):
            dataset, root = choose_pictures()
            pictures_verdict = st.container()
        with st.container(key="card_model"):
            given = choose_model(dataset, root)
            model = given.get("model")
            found = _diagnosis(given)
            if found is not None and not found.ok:
                show_problem(found.problem, here(found.remedy, found.choices))
            model_verdict = st.container()
        with st.container(key="card_sees"):
            st.header("What the model sees", anchor=False)
            chosen = _input(dataset, given, found)
            seen = st.container()
    wanted = alone = None
    if dataset is not None and given and (found is None or found.ok):
        with explained_errors():
            wanted = _wanted({"dataset": dataset, "root": root, **chosen._asdict(), **given})
    elif dataset is not None:
        with pictures_verdict, explained_errors():
            pictures = settings({"dataset": dataset, "root": root, "frame": chosen.frame})
            show_pictures_check(_read(pictures))
            alone = pictures
    with consequences:
        _take(wanted, pictures_verdict, model_verdict)
        loaded = subject()
        if alone is not None and (loaded is None or not _same_pictures(alone, loaded)):
            st.info("Now choose a model for these pictures.", icon=":material/arrow_back:")
            if loaded is not None:
                st.caption(f"Still loaded: {plain(_title(loaded))}.")
            with explained_errors():
                _consequences(alone)
            return
        unusable = found is not None and not found.ok
        # An address may name a file that cannot be used, and then nothing was loaded before.
        if loaded is None or (unusable and loaded.model == model):
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
            _consequences(loaded)
            if same:
                _verdicts(loaded, found, pictures_verdict, model_verdict, seen)


def _wanted(given: Mapping[str, Value]) -> RunConfig:
    """Return what was chosen; what this page does not ask stays as it is for the same pictures."""
    now = start()
    unasked: dict[str, Value] = {}
    if now is not None and now.dataset == given["dataset"]:
        unasked = given_by(now, "training") | {"recipe": now.recipe}
        if now.model == given["model"]:
            unasked |= {"seed": now.seed, "validation": now.validation}
    asked = {name: value for name, value in given.items() if value is not None}
    return settings({**unasked, **asked}, without_effect="left out")


def _same_pictures(one: RunConfig, other: RunConfig) -> bool:
    return (one.dataset, one.root) == (other.dataset, other.root)


def _title(subject: RunConfig) -> str:
    pictures = title(subject.dataset, subject.root)
    if subject.model in (BUNDLED, None):
        return pictures
    return f"{pictures} with {Path(subject.model).name}"


def _diagnosis(given: Mapping[str, Value]) -> Diagnosis | None:
    """Ask the doctor about a checkpoint file; None where there is no file to be asked about."""
    if (model := given.get("model")) in (None, BUNDLED):
        return None
    arch = given.get("arch")
    with st.spinner("Reading the file"):
        return cached.diagnosis(str(model), None if arch is None else str(arch))


def _input(dataset: str | None, given: Mapping[str, Value], found: Diagnosis | None) -> Input:
    if dataset is None:
        st.caption("First choose pictures.")
        return Input(None, None)
    return choose_input(
        CATALOGUE[dataset],
        model=str(given["model"]) if given.get("model") else None,
        stored=None if found is None else found.normalisation,
    )


def _take(wanted: RunConfig | None, pictures: DeltaGenerator, model: DeltaGenerator) -> None:
    """Load what was chosen; what was loaded before stays when it cannot be read."""
    if wanted is None or wanted == start():
        return
    with pictures, explained_errors():
        _read(wanted)
        with model, explained_errors(), explained_class_count():
            if wanted.model is not None:
                cached.checkpoint(wanted)
                cached.heat_layer(wanted, None)
            look_at(wanted)
            st.rerun()  # the stepper above names the pictures


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
        show_input(subject)
    with model:
        if subject.model is None:
            if st.button("Go to Finetune", type="primary", icon=":material/arrow_forward:"):
                st.switch_page(page_file("finetune"))
            return
        show(checks_html([*([] if found is None else file_checks(found)), *model_checks(subject)]))
        if st.button(
            "Look at the heat", type="primary", icon=":material/arrow_forward:", width="stretch"
        ):
            st.switch_page(page_file("mask"))


def _consequences(subject: RunConfig) -> None:
    data = _read(subject)
    asked = subject.model is not None
    groups = groups_of(data)
    with st.container(key="card_groups"):
        st.header("Groups", anchor=False)
        part = st.segmented_control(
            "Accuracy on",
            [*data.tests, "validation"],
            default=next(iter(data.tests)),
            required=True,
            key=f"load_part_{subject.dataset}",
            help="Which pictures the model is asked about."
            + (" It was trained on none of them." if subject.model in (BUNDLED, None) else ""),
        )
        scores = _scores(subject, data, part) if asked else None
        table = groups_table(groups, scores)
        show(html(table))
        sentences = [correlation_sentence(groups)]
        if scores:
            sentences.append(worst_sentence(scores, f"'{part}'"))
        st.caption(plain(" ".join(sentences)))
        name = f"{subject.dataset}-groups.csv"
        download("Groups (CSV)", lambda: csv(table, end="\r\n"), name, prominent=True)
    with st.container(key="card_samples"):
        _samples(subject, data, asked=asked)


def _scores(subject: RunConfig, data: DatasetBundle, part: str) -> list[GroupScore] | None:
    """Ask the model about a part; where that takes long, only when somebody wants it."""
    pictures = len(cached.split(data, part))
    seconds = cached.seconds_a_picture(subject) * pictures
    if not cached.has_answers(subject, part) and seconds > AT_ONCE:
        pressed = st.button(
            f"Ask about all {count(pictures)} pictures (about {duration(seconds)})",
            icon=":material/quiz:",
        )
        if not pressed:
            return None
    with shown_progress("Asking the model") as watcher:
        return scores_of(data, cached.answers(subject, part, watcher=watcher))


def _samples(subject: RunConfig, data: DatasetBundle, *, asked: bool) -> None:
    st.header("Training pictures", anchor=False)
    groups = groups_of(data)
    if len(groups) > MOST_GROUPS:
        st.caption(f"The first {MOST_GROUPS} of {len(groups)} groups.")
    groups = groups[:MOST_GROUPS]
    chosen = sample_positions(data.train, groups)
    answers = cached.sample_answers(subject, tuple(chain.from_iterable(chosen))) if asked else None
    places = st.columns(2, gap="medium")
    start = 0
    for number, (group, positions) in enumerate(zip(groups, chosen, strict=True)):
        with places[number % 2]:
            st.markdown(f"**{plain(group.name[0])}** {plain(group.name[1])}")
            if positions:
                rows = range(start, start + len(positions))
                make = partial(_sample, data, positions, answers, rows)
                show(cached.drawn(subject, ("sample", *positions), make))
            else:
                st.caption("No training picture.")
        start += len(positions)
    if asked:
        st.caption("Captions: the model's answer and how sure it is. A cross marks a wrong answer.")


def _sample(
    data: DatasetBundle, positions: Sequence[int], answers: Predictions | None, rows: range
) -> Markup:
    part = answers and cached.some(answers, rows)
    return samples_html(data, positions, part, photos=data.card.size[0] >= PHOTO)


render()
