"""Mask: scrub the threshold and see which pixels are taken away."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

import streamlit as st
from torch import Tensor

from app import loaded as cached
from app.joined import Work
from app.kept import once
from app.mask.columns import EXPLAINER, LAYER, MODEL, column, first_title, offered, same_classes
from app.mask.files import MOST_BYTES, has_whole, largest, sheet_zip, whole_zip
from app.mask.order import DROP, first_words, orders, passes, scoring
from app.mask.order import TRAINING as DRAWN
from app.mask.sheet import (
    ALIKE,
    SIZES,
    TRAINING,
    Beside,
    Choice,
    answers_after,
    chosen_positions,
    group_names,
    hiding_words,
    how_chosen,
    sheet_blob,
    ways,
)
from app.mask.verdict import draw_sheet, draw_whole, of_sheet
from app.mask.whole import KS, areas_csv, at_k, whole
from app.shared.drawer import of_loaded, show_drawer
from app.shared.pages import heading, open_picture, page_file
from app.shared.pieces import chart, download
from app.shared.problems import explained_errors, plain
from app.shared.progress import shown_progress
from app.shared.run_rows import few_of_studies, finished_runs
from app.shared.scrubber import COLUMNS, LEAST, MOST, PRINTS, Way, scrubber
from app.shared.sheets import show
from app.shared.training import draw_option
from app.shared.untrained import draw_without_model
from app.shared.wanted import want, when_wanted
from app.state import SHOWN, USUAL, keep, show_pictures, subject
from masktune.config import Method, RunConfig
from masktune.heat.explainers import SLOW
from masktune.heat.store import HeatStore
from masktune.heat.strategies import STRATEGIES
from masktune.progress import Steps, Watcher, unwatched
from masktune.scores.marks import ClueMark, GroupMark
from masktune.show.clues import clue_captions, clues_html, means_html
from masktune.show.curves import empty_against_k, hidden_against_k
from masktune.show.hiding import LEFT_WHOLE, MANY_EMPTY
from masktune.show.markup import piece
from masktune.show.wording import count, duration, percent

ORDERED_AT_ONCE = 10.0
"""Seconds that ordering all pictures may take without being asked for."""

CARRIED_VIEW = ("view", "selected", "column", "every", "group", "order")
"""What of the scrubber's state the address carries beside k, by its fields."""

AT_ONCE = 60.0
"""Seconds that the heat of all pictures may take without being asked for."""

LOOKING = "looking"
"""What somebody wants who asks for it, see ``app.shared.wanted``."""


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
    draw_without_model(loaded)


def _masking(subject: RunConfig) -> None:
    choice, data = _options(subject), cached.bundle(subject)
    names = _chosen_columns(choice)
    room = PRINTS // (1 + len(names))
    if choice.count > room:
        st.caption(f"{room} pictures: with {1 + len(names)} columns no more are moved at once.")
        choice = replace(choice, count=room)
    order = st.session_state.mask_order
    scores = _scores(choice, order)
    positions = tuple(chosen_positions(choice, data, scores))
    at = st.session_state.mask_order_k
    first = "" if scores is None else first_words(order, data, k=at)
    st.caption(plain(how_chosen(choice, data, first=first)))
    if words := hiding_words(choice, st.session_state.strategy):
        st.caption(words)
    columns, seconds = _columns(choice, names, positions)
    with st.spinner("Finding where the model looks", show_time=True):
        blob = sheet_blob(columns, positions)
    state = scrubber(
        blob,
        k=st.session_state.k,
        key="scrubber",
        first={name: st.session_state[f"scrub_{name}"] for name in CARRIED_VIEW},
        after=lambda k: [answers_after(one.choice, positions, k, one.store) for one in columns],
        ways=lambda place: _ways(choice, positions[place]),
        # The component's own value is gone when the page is left, and k is an option of a run.
        on_move=lambda k: st.session_state.update(k=k),
        on_open=lambda place: open_picture("train", positions[place]),
    )
    st.session_state.update({f"scrub_{name}": getattr(state, name) for name in CARRIED_VIEW})
    if order == DROP and scores is not None and state.k != at:
        st.button(
            f"Order by the drop at k = {state.k:g}",
            icon=":material/sort:",
            on_click=lambda: st.session_state.update(mask_order_k=state.k),
        )
    download(
        f"Keep maps and masked pictures of this sheet at k = {state.k:g} (ZIP)",
        lambda: sheet_zip(columns, positions, state.k),
        f"{subject.dataset}-sheet-k{state.k:g}.zip",
        prominent=True,
    )
    draw_sheet(of_sheet(choice, positions, state.k, columns[0].store), columns=len(columns))
    _whole_set(choice, state.k, seconds=seconds / len(positions), positions=positions)


def _ways(choice: Choice, position: int) -> list[Way]:
    with shown_progress("Asking every explainer about this picture", unit="") as watcher:
        return ways(choice, position, watcher=watcher)


def _chosen_columns(choice: Choice) -> list[str]:
    """Let somebody choose further columns; return them by name."""
    # A column of a run is called model:ID/PART.
    named = {name.partition(":")[2].rpartition("/")[0] for name in st.session_state.columns}
    runs = finished_runs(st.session_state.run, named=named, trainings=True)
    alike = [job for job in runs if same_classes(job.config, choice.subject)]
    few = few_of_studies(alike, named=named)
    known = offered(choice, few, layers=cached.layers(choice.subject))
    chosen = [name for name in st.session_state.columns if _there(name, known)]
    gone = [name for name in st.session_state.columns if name.startswith(MODEL)]
    if gone := [name.removeprefix(MODEL) for name in gone if name not in known]:
        said = "the first column itself, of other pictures, or not here"
        st.caption(plain(f"No column beside the first: {', '.join(gone)}. It is {said}."))
    st.session_state.columns = list(dict.fromkeys(chosen))[: COLUMNS - 1]
    return st.multiselect(
        "Side by side with",
        list(known),
        format_func=lambda name: known.get(name, name),
        max_selections=COLUMNS - 1,
        accept_new_options=True,
        placeholder="another explainer, layer or model; or type a model's path",
        help="Up to three further columns on the same pictures at the same threshold. Each differs "
        "from the first in one thing: the explainer, the layer or the model.",
        **keep("columns"),
    )


def _there(name: str, known: Mapping[str, str]) -> bool:
    """Tell whether a column can be had: it may have become the first, or be of other pictures."""
    return name in known or not name.startswith((EXPLAINER, LAYER, MODEL))


def _columns(
    choice: Choice, names: Sequence[str], positions: tuple[int, ...]
) -> tuple[list[Beside], float]:
    """Look at the sheet's pictures in every column; return also the seconds of the first.

    A column that cannot be had is left out, with what to do about it.
    """
    chosen = [(first_title(choice, names), choice)]
    for name in names:
        with explained_errors():
            chosen.append(column(name, choice, run=st.session_state.run))
    found, took = [], 0.0
    with shown_progress("Finding where the model looks", unit="") as watcher:
        steps = Steps(watcher, "heat", total=len(chosen))
        for title, one in chosen:
            if one is choice:
                store, took = _some_heat(one, positions, steps.next())
                found.append(Beside(title=title, choice=one, store=store))
                continue
            with explained_errors():
                store, _ = _some_heat(one, positions, steps.next())
                cached.sample_answers(one.subject, positions)
                found.append(Beside(title=title, choice=one, store=store))
    return found, took


def _some_heat(
    one: Choice, positions: tuple[int, ...], watcher: Watcher
) -> tuple[HeatStore, float]:
    return cached.some_heat(
        one.subject, positions, method=one.method, layer=one.layer, watcher=watcher
    )


def _scores(choice: Choice, order: str) -> Tensor | None:
    """Return what the pictures are ordered by; None where they are drawn.

    Where that takes long it is asked for first, and until then they are drawn.
    """
    k = st.session_state.mask_order_k
    if order == DRAWN:
        return None
    work, seconds = scoring(order, choice, k=k), 0.0
    if not work.done:
        drawn = tuple(chosen_positions(choice, cached.bundle(choice.subject)))
        asked, looked = passes(order, choice)
        if asked:
            seconds += asked * cached.sample_answers(choice.subject, drawn)[1] / len(drawn)
        if looked:
            seconds += looked * _some_heat(choice, drawn, unwatched)[1] / len(drawn)
    return when_wanted(
        "order",
        work,
        f"Ask about all of them (about {duration(seconds)})",
        icon=":material/sort:",
        quick=seconds <= ORDERED_AT_ONCE,
        doing="Ordering the training pictures",
        words=f"To order them by {orders(cached.bundle(choice.subject))[order]}, the model must be "
        "asked about every training picture. Until then the sheet is as in training.",
    )


def _options(subject: RunConfig) -> Choice:
    """Let somebody choose pictures, explainer, layer and statistics."""
    usual = cached.heat_layer(subject, None)
    others = [layer for layer in cached.layers(subject) if layer != usual]
    layer = st.session_state.layer
    if layer not in others:
        st.session_state.layer = ""
        if layer not in ("", usual):  # only the model knows its layers
            st.session_state.unread = [*st.session_state.unread, f"layer={layer[:SHOWN]}"]
            st.rerun()
    pools = {TRAINING: "as in training", ALIKE: "every group alike"}
    pools |= {n: f"only {name}" for n, name in group_names(cached.bundle(subject)).items()}
    firsts = orders(cached.bundle(subject))
    if not LEAST <= st.session_state.mask_order_k <= MOST:
        st.session_state.mask_order_k = USUAL["mask_order_k"]
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        size = st.selectbox("Pictures", SIZES, width=90, **keep("mask_pictures", SIZES))
        way = st.selectbox(
            "Chosen",
            list(pools),
            format_func=pools.__getitem__,
            width=160,
            **keep("mask_by", pools),
        )
        st.selectbox(
            "Shown first",
            list(firsts),
            format_func=firsts.__getitem__,
            width=190,
            on_change=_order_now,
            help="Which of them come on the sheet, out of all training pictures. What is usual in "
            "training shows only as in training: the other orders search for what is not.",
            **keep("mask_order", firsts),
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


def _order_now() -> None:
    """Take the present k for an order by what hiding takes away, and begin with the first sheet."""
    st.session_state.update(mask_order_k=st.session_state.k, draw=0)


def _whole_set(choice: Choice, k: float, *, seconds: float, positions: tuple[int, ...]) -> None:
    """Show what holds for the whole training set; ``seconds`` is what the heat of one takes.

    ``positions`` are the sheet's pictures, on which the model's answers were timed.
    """
    subject = choice.subject
    data = cached.bundle(subject)
    pictures = len(data.train)
    st.header(f"All {count(pictures)} training pictures", anchor=False)
    store = when_wanted(
        LOOKING,
        _looking(choice),
        _look_words(seconds * pictures),
        icon=":material/travel_explore:",
        quick=seconds * pictures <= AT_ONCE,
        doing="Finding where the model looks",
        unit="batches",
        words="Hidden area, empty pictures and common clues of the whole set need the heat of "
        f"every training picture. Here that takes more than {AT_ONCE:.0f} seconds, so it is not "
        "looked for unasked. A finetune works without it.",
    )
    if store is None:
        _drawer_without_heat(choice, seconds * pictures)
        return
    measured = whole(choice, store)
    now, found = at_k(measured, k), measured.leaning
    empty_ones = round(now.empty_fraction * pictures)
    st.markdown(
        f"At k = {k:g} about **{percent(now.hidden_fraction)}** of all pixels are hidden, and in "
        f"**{count(empty_ones)} of {count(pictures)}** pictures nothing is."
    )
    if now.empty_fraction > MANY_EMPTY:
        st.warning(
            f"In many pictures nothing is hidden at this threshold: {LEFT_WHOLE}",
            icon=":material/info:",
        )
    _, asked = cached.sample_answers(subject, positions)
    draw_whole(choice, k, store, seconds=asked / len(positions))
    area, nothing = st.columns(2, gap="medium")
    with area, st.container(key="card_area"):
        st.markdown("**Hidden area against k**")
        chart(once(hidden_against_k, KS, measured.areas, k=k, takes=True), key="area")
    with nothing, st.container(key="card_nothing"):
        st.markdown("**Pictures where nothing is hidden**")
        chart(once(empty_against_k, KS, measured.areas, k=k, takes=True), key="nothing")
    means, clues = st.columns(2, gap="medium")
    with means, st.container(key="card_means"):
        st.markdown("**Mean heat by group**")
        marks = {name: GroupMark("train", n) for n, name in group_names(data).items()}
        show(once(means_html, found.means, found.sizes, marks=marks) + piece("key", heat=True))
    with clues, st.container(key="card_clues"):
        st.markdown(
            "**Clues: pictures in which it looks at the same place**",
            help="The heat maps of all training pictures, grouped by likeness (k-means). A place "
            "that goes with one group only is a clue worth hiding.",
        )
        show(once(clues_html, found.clues, found.sentences, clue_captions(found)))
    name = f"{subject.dataset}-hidden.csv"
    with st.container(horizontal=True, vertical_alignment="center"):
        area_label = "Hidden area by k and group (CSV)"
        download(area_label, lambda: areas_csv(measured), name, prominent=True)
        _whole_files(choice, k, store)
    show_drawer(of_loaded(subject, lambda: [clue.members for clue in found.clues]))


def _whole_files(choice: Choice, k: float, store: HeatStore) -> None:
    """Offer keep maps and masked pictures of the whole set; made when somebody asks for them."""
    pictures, size = len(store), largest(choice)
    what = f"Maps of all {count(pictures)} at k = {k:g} (ZIP)"
    if size > MOST_BYTES:
        st.caption(
            f"Keep maps and masked pictures of all {count(pictures)} would be up to "
            f"{size / 2**30:.0f} GB, too much for a browser. Finetune with this k, then write "
            "them into a folder: `python -m masktune masks RUN --export DIR`."
        )
        return
    if not has_whole(choice, k):
        if not st.button(
            f"Make {what[0].lower()}{what[1:]}",
            icon=":material/folder_zip:",
            help="Keep maps and masked pictures, PNG.",
        ):
            return
        with shown_progress("Writing keep maps and masked pictures", unit="pictures") as watcher:
            whole_zip(choice, k, store, watcher=watcher)
    name = f"{choice.subject.dataset}-k{k:g}.zip"
    download(what, lambda: whole_zip(choice, k, store, watcher=unwatched), name, prominent=True)


def _looking(choice: Choice) -> Work[HeatStore]:
    return cached.heat_work(choice.subject, method=choice.method, layer=choice.layer)


def _look_words(seconds: float) -> str:
    return f"Look at all of them (about {duration(seconds)})"


def _drawer_without_heat(choice: Choice, seconds: float) -> None:
    """Open what was clicked, though not all pictures were looked at; clues need that first."""
    if (st.session_state.shown or "").startswith(f"{ClueMark.kind}:"):
        _offer_clues(choice, seconds)
    else:
        show_drawer(of_loaded(choice.subject))


@st.dialog("Clues are not known yet", on_dismiss=lambda: show_pictures(None))
def _offer_clues(choice: Choice, seconds: float) -> None:
    pictures = len(cached.bundle(choice.subject).train)
    st.write(
        f"Clues are found in the heat of all {count(pictures)} training pictures, and nobody has "
        "looked at all of them yet. The pictures of this one open once that is done."
    )
    if st.button(
        _look_words(seconds),
        type="primary",
        icon=":material/travel_explore:",
        key="look_for_clues",
        on_click=want,
        args=(LOOKING, _looking(choice).key),
    ):
        st.rerun()  # of the page: a click in a dialog runs the dialog alone


render()
