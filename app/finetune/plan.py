"""The plan of a finetune: what to hide and how to learn, as widgets and as settings of a run."""

from typing import Literal, get_args

import streamlit as st

from app.shared.problems import explained_errors, plain
from app.state import keep, planned
from masktune.checkpoints.settings import OPTIONS
from masktune.config import RunConfig, Statistics
from masktune.heat.strategies import STRATEGIES
from masktune.show.wording import count

Switch = Literal["heat", "random", "none", "other"]
SWITCH: dict[Switch, str] = {
    **{name: STRATEGIES[name].short for name in ("heat", "random", "none")},
    "other": "Other",
}
"""What to hide, as on the switch."""

OTHERS = {name: rule.short for name, rule in STRATEGIES.items() if name not in SWITCH}

STATISTICS: dict[Statistics, str] = {
    "positive": "positive heat (the authors' code)",
    "all": "all pixels (the paper's text)",
}

WHAT_HELP = (
    "**Heat**: the pixels hotter than mean + k sigma, as MaskTune does. **Random**: one random "
    "window, the RandMask control. **Nothing**: one more epoch on the pictures as they are, the "
    "other control. **Other**: the paper's three variants."
)
OTHER_HELP = (
    "Darken by heat: a pixel keeps 1 − heat of its brightness. One threshold: the mean heat of the "
    "training set decides for every picture. Hottest share: the same number of pixels everywhere."
)
CONTROLS_HELP = (
    "Two runs beside this one: a random window hidden (RandMask), and nothing hidden. If they help "
    "as much, it was not the heat."
)
ROUNDS_HELP = (
    "How often to look, hide and finetune. One round is MaskTune as published; two clues take two."
)
RATE_HELP = (
    "Step size of the finetune. Left empty, it is the rate of the model's last epoch, or the "
    "recipe's where the weights file does not say it."
)


def draw_plan(*, usual_rate: float) -> RunConfig | None:
    """Draw the fields; return the run they describe, None when a setting cannot be used.

    Args:
        usual_rate: of the finetune, unless another one is given.
    """
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
    left, right = st.columns(2)
    left.number_input(
        "Learning rate",
        value=None,
        step=0.001,
        format="%g",
        placeholder=f"{usual_rate:g}, usual",
        help=RATE_HELP,
        **keep("finetune_lr"),
    )
    right.number_input("Rounds", step=1, help=ROUNDS_HELP, **keep("rounds"))
    _draw_more()
    st.checkbox("Also run both controls", help=CONTROLS_HELP, **keep("controls"))
    with explained_errors():
        return planned()
    return None


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


def _draw_more() -> None:
    from masktune.compute import devices  # by now the model is read, and PyTorch imported

    state = st.session_state
    with st.expander("More settings"):
        st.selectbox(
            "Mean and sigma over",
            get_args(Statistics),
            format_func=STATISTICS.__getitem__,
            disabled=not _used("statistics"),
            **keep("statistics"),
        )
        st.checkbox(
            "Later rounds hide in addition",
            disabled=state.rounds <= 1,
            help="Otherwise every round hides only what its own heat says.",
            **keep("accumulate"),
        )
        left, right = st.columns(2)
        left.number_input("Batch size", 1, step=1, help="Pictures a step.", **keep("batch_size"))
        right.selectbox(
            "Device",
            [name for name in OPTIONS["device"].choices if name in {*devices(), state.device}],
            help="Where it is computed; auto takes a GPU where there is one.",
            **keep("device"),
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
        parts.append(f"The model is trained first: {times}.")
    if pictures is not None:
        steps = -(-pictures // config.training.batch_size)
        each = "each" if runs > 1 or config.masking.rounds > 1 else "an epoch"
        parts.append(f"{count(pictures)} pictures, {count(steps)} steps {each}.")
    return " ".join(parts)
