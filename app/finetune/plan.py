"""The plan of a finetune: what to hide and how to learn, as widgets and as settings of a run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import streamlit as st

from app.shared.problems import plain, show_problem
from app.state import session
from masktune.config import AUTO, MaskingConfig, RunConfig, Statistics, Strategy
from masktune.datasets.catalogue import card
from masktune.errors import MaskTuneError
from masktune.heat.strategies import CONTROLS, STRATEGIES
from masktune.recipes import recipe
from masktune.runs.subject import Subject
from masktune.show.wording import count

Switch = Literal["heat", "random", "none", "other"]
SWITCH: dict[Switch, str] = {
    **{name: STRATEGIES[name].short for name in ("heat", "random", "none")},
    "other": "Other",
}
"""What to hide, as on the switch."""

OTHERS: dict[Strategy, str] = {
    name: strategy.short for name, strategy in STRATEGIES.items() if name not in SWITCH
}

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was chosen.

    Attributes:
        config: the run; None when a setting cannot be used.
        controls: the control runs wanted beside it.
    """

    config: RunConfig | None
    controls: tuple[RunConfig, ...] = ()


def settings(
    subject: Subject, *, masking: MaskingConfig, finetune_lr: float | None = None
) -> RunConfig:
    """Give the settings of a run: the dataset's recipe with what was chosen."""
    base = recipe(card(subject.dataset).recipe)
    return RunConfig(
        dataset=subject.dataset,
        recipe=base.name,
        arch=subject.arch or (base.arch if subject.model in ("train", "bundled") else AUTO),
        training=replace(base.training, epochs=subject.epochs or base.training.epochs),
        masking=masking,
        # As the command line will read it: without a slash at the end.
        root=None if subject.root is None else str(Path(subject.root)),
        frame=subject.frame,
        normalise=subject.normalise,
        validation=subject.validation,
        model=None if subject.model == "train" else subject.model,
        finetune_lr=finetune_lr,
        seed=subject.seed,
    )


def control_settings(config: RunConfig) -> tuple[RunConfig, ...]:
    """Give the controls of a run: they differ in nothing but what is hidden.

    What only the threshold needs is left at its usual value, so that runs at several k share
    their controls.
    """
    rounds = MaskingConfig(rounds=config.masking.rounds, accumulate=config.masking.accumulate)
    return tuple(
        replace(config, masking=replace(rounds, strategy=strategy))
        for strategy in CONTROLS
        if strategy != config.masking.strategy
    )


def draw_plan(subject: Subject, *, usual_rate: float) -> Plan:
    """Draw the fields; give what they say, and remember it if it can be used.

    Args:
        subject: pictures and model.
        usual_rate: of the finetune, unless another one is given.
    """
    chosen = session()
    now = chosen.masking
    strategy = _draw_strategy(now.strategy)
    k = st.slider(
        "Threshold k",
        0.0,
        3.0,
        value=float(now.k),
        step=0.01,
        key="finetune_k",
        disabled=not STRATEGIES[strategy].uses_k,
        help="In sigmas above the mean heat of each picture. A larger k hides less.",
    )
    share = 100 * now.top_fraction
    if "top_fraction" in STRATEGIES[strategy].settings:
        share = _number("Share hidden, %", share, step=1.0, key="finetune_share")
    left, right = st.columns(2)
    with left:
        rate = st.number_input(
            "Learning rate",
            value=chosen.finetune_lr,
            step=0.001,
            format="%g",
            placeholder=f"{usual_rate:g}, usual",
            key="finetune_rate",
            help=RATE_HELP,
        )
    with right:
        rounds = st.number_input(
            "Rounds", value=now.rounds, step=1, key="finetune_rounds", help=ROUNDS_HELP
        )
    statistics, accumulate = _draw_more(now, rounds, strategy)
    wanted = st.checkbox(
        "Also run both controls",
        value=chosen.controls,
        key="finetune_controls",
        help=CONTROLS_HELP,
    )
    chosen.controls = wanted
    try:
        masking = replace(
            now,
            strategy=strategy,
            k=round(k, 2),
            statistics=statistics,
            rounds=int(rounds),
            accumulate=accumulate,
            top_fraction=share / 100,
        )
        config = settings(subject, masking=masking, finetune_lr=rate)
    except MaskTuneError as error:
        show_problem(error.problem, error.remedy)
        return Plan(config=None)
    chosen.masking, chosen.finetune_lr = masking, rate
    return Plan(config=config, controls=control_settings(config) if wanted else ())


def _draw_strategy(now: Strategy) -> Strategy:
    main = st.segmented_control(
        "What to hide",
        list(SWITCH),
        default=_switched(now),
        required=True,
        format_func=SWITCH.__getitem__,
        key="finetune_what",
        help=WHAT_HELP,
        width="stretch",
    )
    if main != "other":
        return main
    others = list(OTHERS)
    return st.selectbox(
        "Rule",
        others,
        index=others.index(now) if now in OTHERS else 0,
        format_func=OTHERS.__getitem__,
        key="finetune_other",
        help=OTHER_HELP,
    )


def _switched(strategy: Strategy) -> Switch:
    match strategy:
        case "heat" | "random" | "none":
            return strategy
        case _:
            return "other"


def _draw_more(now: MaskingConfig, rounds: int, strategy: Strategy) -> tuple[Statistics, bool]:
    with st.expander("More settings"):
        statistics = st.selectbox(
            "Mean and sigma over",
            get_args(Statistics),
            index=get_args(Statistics).index(now.statistics),
            format_func=STATISTICS.__getitem__,
            key="finetune_statistics",
            disabled="statistics" not in STRATEGIES[strategy].settings,
        )
        accumulate = st.checkbox(
            "Later rounds hide in addition",
            value=now.accumulate,
            key="finetune_accumulate",
            disabled=rounds <= 1,
            help="Otherwise every round hides only what its own heat says.",
        )
        layer = f"layer {now.layer}" if now.layer else "the last feature map"
        if STRATEGIES[strategy].needs_heat:
            st.caption(plain(f"Heat by {now.method} at {layer}, as chosen on the Mask page."))
    return statistics, accumulate


def _number(label: str, value: float, *, step: float, key: str) -> float:
    return float(st.number_input(label, value=value, step=step, format="%g", key=key))


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
