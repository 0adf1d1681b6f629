"""One picture: what both models say about it, where they look, and what changes their minds."""

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from app import loaded as cached
from app.picture import models, sources
from app.picture.cards import TITLES, flip_words, show_answer
from app.picture.easel import (
    As,
    Board,
    File,
    Painted,
    changed,
    easel,
    encode,
    identity,
    tell_answers,
)
from app.picture.files import picture_zip
from app.shared.pages import heading, page_file
from app.shared.pieces import card, download
from app.shared.problems import explained_errors, show_problem
from app.shared.sheets import say
from app.shared.untrained import draw_without_model
from app.state import keep, subject
from masktune.config import RunConfig
from masktune.data.fills import FILLS, FillName, blurred
from masktune.errors import DataError
from masktune.heat.one_picture import PictureAnswer, hide_hot
from masktune.show.painting import Picture, picture_of
from masktune.show.wording import percent

ALONE: tuple[FillName, ...] = ("black", "mean", "blur")
"""Fills that need nothing but the picture."""

NOT_KEPT = (
    "What you painted is in no link and is gone after a reload. To keep it, save the picture with "
    "its figures."
)


def render() -> None:
    """Draw the page."""
    heading(
        "One picture",
        "Paint over it, move its parts, and ask again: it is answered anew when you let go.",
    )
    loaded = subject()
    if loaded is None or loaded.model is None:
        draw_without_model(loaded)
        return
    with explained_errors():
        _picture(loaded)


def _picture(subject: RunConfig) -> None:
    state, data = st.session_state, cached.bundle(subject)
    if (problem := state.pop("picture_problem", None)) is not None:
        show_problem(*problem)
    where, source = _source(subject, state.picture or sources.FIRST)
    opened = picture_of(source.image)
    painted: Painted | None = state.get("picture_painted")
    if painted is None or painted.id != identity(opened):
        painted = state.picture_painted = Painted(id=identity(opened), picture=opened)
    left, right = st.columns([1.15, 1], gap="medium")
    with left, st.container(key="card_picture_easel"):
        _choose(subject, where)
        _easel(subject, source, painted)
        if share_changed(painted.picture, opened):
            say(NOT_KEPT, kind="muted")
    image = _image(painted.picture)
    with right, st.spinner("Asking the models"):
        asked = models.asked(subject)
        answers = {one.name: (one.answer(image), one.answer(source.image)) for one in asked}
    told = (
        f"{TITLES[name]}: {data.card.classes[now.answer]}, {percent(now.confidence)}."
        for name, (now, _) in answers.items()
    )
    tell_answers(painted, " ".join(told), key="easel")
    with right:
        for model in asked:
            now, first = answers[model.name]
            show_answer(
                model, painted.picture, now, first, classes=data.card.classes, label=source.label
            )
        if len(asked) == 1:
            _only_before()
        _hide_and_flip(subject, asked, painted, image, answers)
        facts = {
            "dataset": subject.dataset,
            "model": subject.model,
            "run": None if models.finished(subject) is None else state.run,
            "picture": where,
            "label": source.label or None,
            "changed": share_changed(painted.picture, opened),
            "heat": {one.name: {"method": one.method, "layer": one.layer} for one in asked},
        }
        download(
            "Picture and figures (ZIP)",
            lambda: picture_zip(
                painted.picture, opened, answers, classes=data.card.classes, facts=facts
            ),
            f"picture-{painted.id}.zip",
            prominent=True,
        )


def _source(subject: RunConfig, where: str) -> tuple[str, sources.Source]:
    """Return the picture that is chosen; where there is none, say so and show the first."""
    try:
        return where, sources.source(subject, where)
    except DataError as error:
        show_problem(error.problem, error.remedy)
        return sources.FIRST, sources.source(subject, sources.FIRST)


def _choose(subject: RunConfig, where: str) -> None:
    """Let somebody choose a picture of the dataset by split and number."""
    state, splits = st.session_state, cached.splits(cached.bundle(subject))
    name, _, number = where.rpartition("/")
    if name in splits:
        state.picture_split, state.picture_number = name, int(number)
    else:  # a file: no row of any split
        state.picture_number = None
        if state.get("picture_split") not in splits:
            state.picture_split = "validation"

    def choose() -> None:
        last = len(splits[state.picture_split]) - 1
        state.picture = f"{state.picture_split}/{min(state.picture_number or 0, last)}"

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox("From", list(splits), key="picture_split", on_change=choose, width=170)
        most = len(splits[state.picture_split]) - 1
        st.number_input(
            "Number",
            0,
            most,
            value=None,
            key="picture_number",
            on_change=choose,
            width=150,
            help=f"Counted from 0 to {most:,}, as in the files of answers.",
        )


def _easel(subject: RunConfig, source: sources.Source, painted: Painted) -> None:
    state = st.session_state
    other: sources.Source | None = None
    where, state.picture_other = state.picture_other, ""  # gone for good if it cannot be shown
    if where:
        with explained_errors():
            other = sources.source(subject, where)
            state.picture_other = where

    def board() -> bytes:
        soft = (blurred(source.image[None] / 255) * 255).round().to(torch.uint8)[0]
        return encode(
            Board(
                picture=picture_of(source.image),
                blurred=picture_of(soft),
                name=source.name,
                other=None if other is None else picture_of(other.image),
                other_name="" if other is None else other.name,
                examples=sources.examples(subject),
            )
        )

    def paint(now: Painted) -> None:
        state.picture_painted = now

    def open_source(where: str, becomes: As) -> None:
        state["picture" if becomes == "picture" else "picture_other"] = where

    def take(file: File) -> None:
        try:
            open_source(sources.take(subject, file), file.becomes)
        except DataError as error:
            state.picture_problem = (error.problem, error.remedy)

    what = ("easel", source.name, painted.id, None if other is None else where)
    easel(
        cached.drawn(subject, what, board),
        painted,
        key="easel",
        on_paint=paint,
        on_open=open_source,
        on_file=take,
    )


def _only_before() -> None:
    with card("picture_after", TITLES["after"]):
        words = "No finished run on these pictures is open, so only the model before answers."
        say(words, kind="muted")
        st.page_link(
            page_file("finetune"), label="Finetune, or open a run", icon=":material/arrow_forward:"
        )


def _hide_and_flip(
    subject: RunConfig,
    asked: list[models.Asked],
    painted: Painted,
    image: Tensor,
    answers: dict[str, tuple[PictureAnswer, PictureAnswer]],
) -> None:
    """Offer to hide what a model looks at, and to find what would change its answer."""
    state, classes = st.session_state, cached.bundle(subject).card.classes
    fill: FillName = state.fill if state.fill in ALONE else "black"
    heats = {name: now.heat for name, (now, _) in answers.items() if now.heat is not None}
    if not heats:
        return

    how = {"k": state.k, "statistics": state.statistics, "fill": fill}
    hidden = {name: hide_hot(image, heat, **how) for name, heat in heats.items()}

    def paint(picture: Tensor) -> None:
        state.picture_painted = changed(painted, picture_of(picture))

    def ask_for_flips() -> None:
        state.picture_flips = identity(painted.picture)

    with card(
        "picture_hide",
        "Hide what is hot",
        hint="Hides what is hotter than the mean plus k sigma, as MaskTune does in training. What "
        "would flip an answer is the smallest share of hottest pixels whose hiding changes it. "
        f"Hidden pixels show: {FILLS[fill].hint}.",
    ):
        st.slider("Threshold k", 0.0, 3.0, step=0.01, **keep("k"))
        shares = (f"{percent(share)} by the heat of {name}" for name, (_, share) in hidden.items())
        st.caption(f"Hides {', '.join(shares)}.")
        with st.container(horizontal=True):
            for name, (picture, _) in hidden.items():
                st.button(
                    f"Hide what {name} looks at",
                    key=f"hide_{name}",
                    icon=":material/visibility_off:",
                    on_click=paint,
                    args=(picture,),
                )
            st.button("What would flip it", icon=":material/swap_horiz:", on_click=ask_for_flips)
        if state.picture_flips != identity(painted.picture):
            return
        for model in asked:
            if model.name not in heats:
                continue
            with st.spinner(f"Hiding more and more of what {model.name} looks at"):
                flip = model.flip(image, fill=fill)
            say(f"{TITLES[model.name]}: {flip_words(flip, answers[model.name][0], classes)}")
            if flip is not None:
                st.button(
                    f"Hide these {percent(flip.share)}",
                    key=f"flip_{model.name}",
                    on_click=paint,
                    args=(flip.image,),
                )


def share_changed(now: Picture, opened: Picture) -> float:
    """Return the share of pixels that are not as they were, in [0, 1]."""
    return float(np.any(now != opened, axis=2).mean())


def _image(picture: Picture) -> Tensor:
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()


render()
