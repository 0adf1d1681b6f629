"""Mask: scrub the threshold and see which pixels are taken away."""

from typing import get_args

import streamlit as st

from app import loaded as cached
from app.kept import once
from app.mask.sheet import (
    ALIKE,
    SIZES,
    TRAINING,
    Choice,
    answers_after,
    chosen_positions,
    group_names,
    hiding_words,
    how_chosen,
    sheet_blob,
)
from app.mask.verdict import draw_sheet, draw_whole, of_sheet
from app.mask.whole import KS, areas_csv, at_k, whole
from app.shared.pages import heading, page_file
from app.shared.pieces import chart, download, empty
from app.shared.problems import explained_errors, plain
from app.shared.progress import shown_progress
from app.shared.scrubber import scrubber
from app.shared.sheets import show
from app.shared.training import draw_option
from app.state import USUAL, keep, open_demo, subject
from masktune.config import Method, RunConfig
from masktune.heat.explainers import SLOW
from masktune.heat.strategies import STRATEGIES
from masktune.show.clues import clues_html, means_html
from masktune.show.curves import empty_against_k, hidden_against_k
from masktune.show.hiding import MANY_EMPTY
from masktune.show.markup import piece
from masktune.show.wording import count, duration, percent

AT_ONCE = 60.0
"""Seconds that the heat of all pictures may take without being asked for."""


def render() -> None:
    """Draw the page."""
    heading(
        "Mask",
        "Drag the threshold and watch which pixels are taken away. Aim to cover the clue and leave "
        "the thing itself.",
    )
    loaded = subject()
    if loaded is not None and loaded.model is not None:
        with explained_errors():
            _masking(loaded)
            return
        st.page_link(page_file("load"), label="Choose pictures and a model")
        return
    if loaded is None:
        demo = "The demo opens in a few seconds. It needs no download."
        empty("No pictures and no model yet", demo)
    else:
        trained = "A run trains it first. Then its heat can be looked at here."
        empty("This model is not trained yet", trained)
    with st.container(horizontal=True, horizontal_alignment="center"):
        if loaded is None:
            icon = ":material/play_arrow:"
            st.button("Open the demo", type="primary", icon=icon, on_click=open_demo)
            st.page_link(page_file("load"), label="Choose pictures and a model")
        elif st.button("Go to Finetune", type="primary", icon=":material/arrow_forward:"):
            st.switch_page(page_file("finetune"))


def _masking(subject: RunConfig) -> None:
    choice, data = _options(subject), cached.bundle(subject)
    positions = tuple(chosen_positions(choice, data))
    st.caption(plain(how_chosen(choice, data)))
    if words := hiding_words(choice, st.session_state.strategy):
        st.caption(words)
    with st.spinner("Finding where the model looks", show_time=True):
        store, seconds = cached.some_heat(
            subject, positions, method=choice.method, layer=choice.layer
        )
        blob = sheet_blob(choice, positions, store)
    state = scrubber(
        blob,
        k=st.session_state.k,
        key="scrubber",
        after=lambda k: answers_after(choice, positions, k, store),
        # The component's own value is gone when the page is left: k is the one mirrored setting.
        on_move=lambda k: st.session_state.update(k=k),
    )
    draw_sheet(of_sheet(choice, positions, state.k, store))
    _whole_set(choice, state.k, seconds=seconds / len(positions), positions=positions)


def _options(subject: RunConfig) -> Choice:
    """Let somebody choose pictures, explainer, layer and statistics."""
    usual = cached.heat_layer(subject, None)
    others = [layer for layer in cached.layers(subject) if layer != usual]
    if st.session_state.layer not in others:
        st.session_state.layer = ""
    if st.session_state.mask_pictures not in SIZES:
        st.session_state.mask_pictures = USUAL["mask_pictures"]
    ways = {TRAINING: "as in training", ALIKE: "every group alike"}
    ways |= {n: f"only {name}" for n, name in group_names(cached.bundle(subject)).items()}
    if st.session_state.mask_by not in ways:
        st.session_state.mask_by = TRAINING
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        size = st.selectbox("Pictures", SIZES, width=90, **keep("mask_pictures"))
        way = st.selectbox(
            "Chosen", list(ways), format_func=ways.__getitem__, width=160, **keep("mask_by")
        )
        method = st.selectbox(
            "Explainer",
            get_args(Method),
            format_func=lambda name: f"{name} (slow)" if name in SLOW else name,
            help="How to find where the model looks. MaskTune uses xGradCAM. The slow ones run the "
            "model once for every channel of the layer.",
            width=150,
            **keep("method"),
        )
        layer = st.selectbox(
            "Layer",
            ["", *others],
            format_func=lambda name: name or usual,
            help="Whose feature map is read. Late layers know what, early layers know where.",
            width=150,
            **keep("layer"),
        )
        draw_option(row, "statistics", holder={**keep("statistics"), "width": 250})
        with st.container(horizontal=True, width="content"):  # a narrow page keeps them together
            if st.button("Other pictures", icon=":material/shuffle:"):
                st.session_state.draw += 1
            if st.button("Finetune with this k", type="primary", icon=":material/arrow_forward:"):
                st.switch_page(page_file("finetune"))
    # What has no threshold has nothing to scrub: MaskTune's is shown.
    strategy = STRATEGIES[st.session_state.strategy]
    fill = strategy.fill or st.session_state.fill
    return Choice(
        keeps_hot=strategy.keeps_hot,
        fill=fill if strategy.uses_k else "black",
        subject=subject,
        method=method,
        layer=layer or usual,
        statistics=st.session_state.statistics,
        count=size,
        draw=st.session_state.draw,
        by=way,
    )


def _whole_set(choice: Choice, k: float, *, seconds: float, positions: tuple[int, ...]) -> None:
    """Show what holds for the whole training set; ``seconds`` is what the heat of one takes.

    ``positions`` are the sheet's pictures, on which the model's answers were timed.
    """
    subject, how = choice.subject, {"method": choice.method, "layer": choice.layer}
    pictures = len(cached.bundle(subject).train)
    st.header(f"All {count(pictures)} training pictures", anchor=False)
    long = seconds * pictures > AT_ONCE and not cached.has_heat(subject, **how)
    if long and not _asked_for_all(seconds * pictures):
        return
    with shown_progress("Finding where the model looks") as watcher:
        store = cached.heat(subject, **how, watcher=watcher)
    measured = whole(choice, store)
    now, found = at_k(measured, k), measured.leaning
    empty_ones = round(now.empty_fraction * pictures)
    st.markdown(
        f"At k = {k:g} about **{percent(now.hidden_fraction)}** of all pixels are hidden, and in "
        f"**{count(empty_ones)} of {count(pictures)}** pictures nothing is."
    )
    if now.empty_fraction > MANY_EMPTY:
        st.warning(
            "In many pictures nothing is hidden at this threshold: they teach the model nothing "
            "new. Try a smaller k.",
            icon=":material/info:",
        )
    _, asked = cached.sample_answers(subject, positions)
    draw_whole(choice, k, store, seconds=asked / len(positions))
    area, nothing = st.columns(2, gap="medium")
    with area, st.container(key="card_area"):
        st.markdown("**Hidden area against k**")
        chart(once(hidden_against_k, KS, measured.areas, k=k), key="area")
    with nothing, st.container(key="card_nothing"):
        st.markdown("**Pictures where nothing is hidden**")
        chart(once(empty_against_k, KS, measured.areas, k=k), key="nothing")
    means, clues = st.columns(2, gap="medium")
    with means, st.container(key="card_means"):
        st.markdown("**Mean heat by group**")
        show(once(means_html, found.means, found.sizes) + piece("key", heat=True))
    with clues, st.container(key="card_clues"):
        st.markdown(
            "**Clues: pictures in which it looks at the same place**",
            help="The heat maps of all training pictures, grouped by likeness (k-means). A place "
            "that goes with one group only is a clue worth hiding.",
        )
        show(once(clues_html, found.clues, found.sentences, found.sentences))
    name = f"{subject.dataset}-hidden.csv"
    download("Hidden area by k and group (CSV)", lambda: areas_csv(measured), name, prominent=True)


def _asked_for_all(seconds: float) -> bool:
    """Say how long it takes to look at every picture; tell whether somebody wants to."""
    st.caption(
        "Hidden area, empty pictures and common clues of the whole set need the heat of every "
        "training picture. A finetune works without looking at them here."
    )
    return st.button(
        f"Look at all of them (about {duration(seconds)})", icon=":material/travel_explore:"
    )


render()
