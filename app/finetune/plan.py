"""The plan of a finetune: what to hide and how to learn, as widgets and as settings of a run."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count as count_from
from typing import Literal

import streamlit as st

from app.shared.problems import explained_errors, plain
from app.shared.training import LEARNS, STEP, draw_option, in_use
from app.state import keep, planned
from app.uploads import keep_upload
from masktune.checkpoints.settings import OPTIONS, settings
from masktune.config import MASKTUNE, RivalConfig, RunConfig, Strategy, Value, options
from masktune.data.fills import FILLS
from masktune.heat.strategies import STRATEGIES
from masktune.show.wording import count
from masktune.training.methods import RIVALS, Rival

Switch = Literal["heat", "random", "none", "other"]
SWITCH: dict[Switch, str] = {
    **{name: STRATEGIES[name].short for name in ("heat", "random", "none")},
    "other": "Other",
}
"""What to hide, as on the switch."""

OTHERS = {name: rule.short for name, rule in STRATEGIES.items() if name not in SWITCH}

FILL_TITLES = {name: fill.title for name, fill in FILLS.items()}


def _hints(names: Iterable[Strategy]) -> str:
    return " ".join(f"**{STRATEGIES[name].short}**: {STRATEGIES[name].hint}" for name in names)


WHAT_HELP = (
    f"{_hints(name for name in STRATEGIES if name in SWITCH)} **Other**: the paper's three "
    "variants, hiding all but the hot part, and hiding a known clue."
)
OTHER_HELP = _hints(OTHERS)
FILL_HELP = " ".join(f"**{fill.title}**: {fill.hint}." for fill in FILLS.values())
REGIONS_HELP = (
    "One box a row: the columns file, left, top, right and bottom, in pixels of the file. A "
    "picture may have several, or none: then nothing is hidden in it. Without a file the regions "
    "are the dataset's own; the demos and Waterbirds beside CUB's boxes have some."
)
CONTROLS_HELP = (
    "Two runs beside this one: a random window hidden (RandMask), and nothing hidden. If they help "
    "as much, it was not the heat."
)
METHOD_HELP = (
    "What makes the model after: MaskTune, or one of the methods that the paper and others compare "
    "it with. Some need to know the groups of pictures."
)
ROUNDS_HELP = (
    "How often to look, hide and finetune. One round is MaskTune as published; two clues take two."
)
RATE_HELP = (
    "Step size of the finetune. Left empty, it is the rate of the model's last epoch, or the "
    "recipe's where the weights file does not say it."
)


def draw_plan(
    *, usual_rate: float, layers: Sequence[str] = (), batch_norm: bool = True
) -> RunConfig | None:
    """Draw the fields; return the run they describe, None when a setting cannot be used.

    Args:
        usual_rate: of the finetune, unless another one is given.
        layers: of the model, that it may be frozen up to.
        batch_norm: whether the model has, or may have, any.
    """
    state = st.session_state
    st.selectbox(
        "Method",
        list(RIVALS),
        format_func=lambda name: RIVALS[name].title,
        on_change=_choose_method,
        help=METHOD_HELP,
        **keep("rival"),
    )
    if state.rival == MASKTUNE:
        _draw_masking(usual_rate=usual_rate)
    else:
        _draw_rival(RIVALS[state.rival])
    _draw_more(layers, batch_norm=batch_norm)
    if state.rival == MASKTUNE:
        st.checkbox("Also run both controls", help=CONTROLS_HELP, **keep("controls"))
    with explained_errors():
        return planned()
    return None


def _choose_method() -> None:
    # A rival's run hides nothing; MaskTune taken up again hides by heat.
    state = st.session_state
    if state.rival == MASKTUNE and state.strategy == "none":
        state.strategy = "heat"
    state.penalty = None  # that of one method means nothing in another
    if state.model:
        state.update(**_usually_frozen(_now(), state.start))


def _begin() -> None:
    if st.session_state.model:
        st.session_state.update(**frozen_as_begun(_now()))


def _now() -> dict[str, Value]:
    return {name: st.session_state[name] for name in OPTIONS}


def frozen_as_begun(now: Mapping[str, Value]) -> dict[str, Value]:
    """Return what is frozen once a rival begins otherwise: as usual, but where somebody chose."""
    other = next(word for word in OPTIONS["start"].choices if word != now["start"])
    was, becomes = _usually_frozen(now, other), _usually_frozen(now, str(now["start"]))
    return {name: becomes[name] if now[name] == was[name] else now[name] for name in was}


def _usually_frozen(now: Mapping[str, Value], start: str) -> dict[str, Value]:
    # What is frozen in a model has learnt; where a rival begins afresh nothing has.
    of_model = ("dataset", "recipe", "model", "arch", "weights", "rival")
    given = {name: now[name] for name in of_model}
    usual = settings({**given, "start": start}, without_effect="left out")
    return {name: OPTIONS[name].of(usual) for name in ("freeze", "erm_batch_norm")}


def _draw_rival(rival: Rival) -> None:
    said = f"{rival.hint} It needs {' and '.join(rival.needs)}." if rival.needs else rival.hint
    st.caption(plain(said))
    places = (place for _ in count_from() for place in st.columns(2))
    if rival.by_recipe:
        next(places).number_input("Epochs", 1, step=1, **keep("epochs"))
        next(places).number_input("Learning rate", step=0.001, format="%g", **keep("lr"))
        holder = {**keep("start"), "on_change": _begin}
        draw_option(next(places), "start", holder=holder)
    for option in options(RivalConfig):
        if rival.name in option.rivals:
            draw_option(next(places), option.name, holder=keep(option.name))


def _draw_masking(*, usual_rate: float) -> None:
    state = st.session_state
    _draw_strategy()
    st.slider(
        "Threshold k",
        0.0,
        max(3.0, state.k),
        step=0.01,
        disabled=not _used("k"),
        help="In sigmas above the mean heat of each picture. A larger k hides less.",
        **keep("k"),
    )
    if _used("top_fraction"):
        state.share = round(100 * state.top_fraction, 6)
        st.number_input(
            "Share hidden, %",
            step=1.0,
            format="%g",
            key="share",
            on_change=lambda: state.update(top_fraction=state.share / 100),
        )
    if _used("regions"):
        _draw_regions()
    left, right = st.columns(2)
    left.number_input(
        "Learning rate",
        value=None,
        step=0.001,
        format="%g",
        placeholder=f"{usual_rate:g}",
        help=RATE_HELP,
        **keep("finetune_lr"),
    )
    right.number_input("Rounds", step=1, help=ROUNDS_HELP, **keep("rounds"))


def _used(name: str) -> bool:
    used_by = OPTIONS[name].used_by
    return not used_by or st.session_state.strategy in used_by


def _draw_strategy() -> None:
    # The switch and the rule behind its last place both show the one strategy.
    state = st.session_state
    state.strategy_switch = state.strategy if state.strategy in SWITCH else "other"
    st.segmented_control(
        "What to hide",
        list(SWITCH),
        required=True,
        format_func=SWITCH.__getitem__,
        key="strategy_switch",
        on_change=_switch,
        help=WHAT_HELP,
        width="stretch",
    )
    if state.strategy_switch == "other":
        state.strategy_rule = state.strategy
        st.selectbox(
            "Rule",
            list(OTHERS),
            format_func=OTHERS.__getitem__,
            key="strategy_rule",
            on_change=lambda: state.update(strategy=state.strategy_rule),
            help=OTHER_HELP,
        )


def _switch() -> None:
    chosen = st.session_state.strategy_switch
    st.session_state.strategy = next(iter(OTHERS)) if chosen == "other" else chosen


def _draw_regions() -> None:
    state = st.session_state
    st.file_uploader(
        "Boxes round the clue (CSV)",
        type=["csv", "tsv"],
        key="regions_upload",
        on_change=_take_boxes,
        help=REGIONS_HELP,
    )
    st.text_input(
        "or its path on this computer",
        placeholder="as the dataset has it",
        disabled=state.regions_upload is not None,
        **keep("regions"),
    )


def _take_boxes() -> None:
    given = st.session_state.regions_upload
    with explained_errors():
        st.session_state.regions = "" if given is None else str(keep_upload(given.name, given))


def _draw_more(layers: Sequence[str], *, batch_norm: bool) -> None:
    from masktune.compute import devices  # by now the model is read, and PyTorch imported

    state = st.session_state
    # With a key it is the same one, and stays open, when other fields come above it.
    with st.expander("More settings", key="finetune_more"):
        if state.rival == MASKTUNE:
            _draw_more_masking()
        st.markdown("**How it learns**")
        given = {name: state[name] for name in OPTIONS}
        # Row by row: on a telephone, columns stand one below the other.
        places = (place for _ in count_from() for place in st.columns(2))
        if in_use(["batch_size"], given):
            next(places).number_input(
                "Batch size", 1, step=1, help="Pictures a step.", **keep("batch_size")
            )
        for name in in_use(STEP, given):
            draw_option(next(places), name, holder=keep(name))
        for name in in_use([n for n in LEARNS if batch_norm or n != "batch_norm"], given):
            draw_option(st.container(), name, holder=keep(name), more=layers)
        if not state.model:
            st.caption("These count in training too. What only training heeds is on the Load page.")
        st.selectbox(
            "Device",
            [name for name in OPTIONS["device"].choices if name in {*devices(), state.device}],
            help="Where it is computed; auto takes a GPU where there is one.",
            **keep("device"),
        )


def _draw_more_masking() -> None:
    state = st.session_state
    unused = not _used("statistics")
    holder = {**keep("statistics"), "disabled": unused}
    draw_option(st.container(), "statistics", holder=holder)
    st.checkbox(
        "Later rounds hide in addition",
        disabled=state.rounds <= 1,
        help="Otherwise every round hides only what its own heat says.",
        **keep("accumulate"),
    )
    st.selectbox(
        "Hidden pixels show",
        list(FILL_TITLES),
        format_func=FILL_TITLES.__getitem__,
        disabled=not _used("fill"),
        help=FILL_HELP,
        **keep("fill"),
    )
    layer = f"layer {state.layer}" if state.layer else "the last feature map"
    if _used("method"):
        st.caption(plain(f"Heat by {state.method} at {layer}, as chosen on the Mask page."))


def effort_words(config: RunConfig, runs: int, pictures: int | None) -> str:
    """Say how much a plan has to do."""
    parts = []
    if config.model is None:
        epochs = config.training.epochs
        times = "one epoch" if epochs == 1 else f"{count(epochs)} epochs"
        if config.training.best != "last" and config.training.patience is not None:
            times = f"{times} at most"
        parts.append(f"The model is trained first: {times}.")
    rival = RIVALS[config.rival]
    if rival.last_layer:
        return " ".join([*parts, "Only the last layer learns."])
    if rival.by_recipe:
        epochs = config.training.epochs
        if config.rival == "jtt":  # twice
            epochs += config.error_epochs
        parts.append(
            f"{rival.title} trains for {'one epoch' if epochs == 1 else f'{count(epochs)} epochs'}."
        )
    if pictures is not None:
        steps = -(-pictures // config.training.batch_size)
        each = "each" if runs > 1 or config.masking.rounds > 1 else "an epoch"
        parts.append(f"{count(pictures)} pictures, {count(steps)} steps {each}.")
    return " ".join(parts)
