"""Several settings and seeds at once: a grid is a study, queued, paused and cancelled whole."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.kept import COMPUTED
from app.runs.actions import tick
from app.runs.table import UNTOLD, setting_title, value_words
from app.shared.pages import page_file
from app.shared.pieces import card, download, pager
from app.shared.problems import explained_errors, plain
from app.shared.run_rows import runs_words
from app.shared.sheets import say, show
from app.shared.studies import draw_study, numbers
from app.state import keep, sensible, subject
from masktune.checkpoints.settings import OPTIONS
from masktune.config import BUNDLED, Value
from masktune.errors import ConfigError
from masktune.heat.strategies import STRATEGIES
from masktune.runs import jobs
from masktune.runs.load import title_of
from masktune.show.tables import csv, html

if TYPE_CHECKING:  # with PyTorch, which the list of runs does not need
    from masktune.studies.grid import Grid
    from masktune.studies.jobs import StudyJob

AT_ONCE = 3
"""Grids that are shown at a time."""

FIRST = ("running", "queued", "interrupted")
"""States of grids that come before all others."""

HINT = (
    "Every combination of the settings below, as runs of one study that wait their turn. All runs "
    "of a seed start from one model before; each setting has its mean over seeds."
)
KS_HELP = "Thresholds from 0 to 3, with commas between, such as 1,2,3. Left empty, the usual one."
RATES_HELP = "Learning rates of the finetune, with commas between. Left empty, the usual one."
SEEDS_HELP = "Whole numbers with commas between: each is another split, order and start."


def draw() -> None:
    """Draw the form, and the grids of this home."""
    with card("runs_grid", "Queue a grid", hint=HINT), explained_errors():
        loaded = subject()
        if loaded is None:
            say("A grid takes the pictures and the model of Load.", kind="muted")
            st.page_link(
                page_file("load"), label="Choose pictures and model", icon=":material/folder_open:"
            )
        else:
            st.markdown(f"On **{plain(title_of(loaded))}**.")
            _draw_form()
        _draw_grids()


def _draw_form() -> None:
    from masktune.studies import jobs as studies
    from masktune.studies.grid import plan
    from masktune.studies.tournament.plan import caution

    known = [name for name in st.session_state.grid_strategies if name in STRATEGIES]
    st.session_state.grid_strategies = list(dict.fromkeys(known))
    st.multiselect(
        "What to hide",
        list(STRATEGIES),
        format_func=lambda name: STRATEGIES[name].short,
        placeholder="Choose one or several",
        **keep("grid_strategies"),
    )
    with st.grid(3, min_column_width=200):
        st.text_input("Thresholds k", placeholder="the usual one", help=KS_HELP, **keep("grid_ks"))
        st.text_input(
            "Learning rates", placeholder="the usual one", help=RATES_HELP, **keep("grid_rates")
        )
        st.text_input("Seeds", help=SEEDS_HELP, **keep("grid_seeds"))
    wanted = None
    with explained_errors():
        wanted = asked()
        runs = sum(1 for _ in plan(wanted, out=jobs.studies_home()))
        if not wanted.trains:
            words = "All start from the model chosen on Load."
        elif st.session_state.model == BUNDLED:
            words = (
                "The bundled model was trained on the split of seed 0, so the first run of every "
                "seed trains one."
            )
        else:
            words = "The first run of every seed trains the model, as chosen on Load."
        words = " ".join([words, *caution(wanted.given, wanted.seeds)])
        st.markdown(f"**{runs_words(runs)}**. {words}")
        if shared := shared_words(wanted.given):
            say(shared, kind="muted")
    if st.button(
        "Queue the grid",
        type="primary",
        icon=":material/playlist_add:",
        disabled=wanted is None,
        key="grid_start",
    ):
        with explained_errors():
            studies.start(wanted)
            st.rerun()


def shared_words(given: Mapping[str, Value]) -> str:
    """Say what all runs of a grid have that is not as usual, beside their pictures and model.

    >>> shared_words({"dataset": "biased-mnist-5k", "rounds": 2, "accumulate": False})
    'All of them as chosen on Load and Finetune: rounds 2, accumulate no.'
    """
    told = {name: value for name, value in given.items() if name not in (*UNTOLD, "model")}
    said = (f"{setting_title(name).lower()} {value_words(name, v)}" for name, v in told.items())
    return f"All of them as chosen on Load and Finetune: {', '.join(said)}." if told else ""


def asked() -> "Grid":
    """Return what the fields ask for.

    Raises:
        ConfigError: it cannot be done.
    """
    from masktune.studies.grid import VARIED, Grid, heeded

    state = st.session_state
    strategies = tuple(state.grid_strategies)
    given = {name: state[name] for name in OPTIONS if name not in VARIED}
    sensible(given)
    seeds = tuple(map(_whole, numbers(state.grid_seeds, "seeds")))
    if given["model"] == BUNDLED and seeds != (0,):
        given["model"] = None  # it was trained on the split of seed 0
    uses_k = any(STRATEGIES[name].uses_k for name in strategies)
    return Grid(
        given=COMPUTED.get(
            ("heeded by a grid", *given.items(), *strategies), partial(heeded, given, strategies)
        ),
        strategies=strategies,
        ks=numbers(state.grid_ks, "thresholds k") if uses_k else (),
        rates=numbers(state.grid_rates, "learning rates"),
        seeds=seeds,
    )


def _whole(number: float) -> int:
    if not number.is_integer() or number < 0:
        raise ConfigError(f"The seed is {number:g}.", "Give whole numbers from 0 up, such as 0,1.")
    return int(number)


def _draw_grids() -> None:
    if not jobs.studies_home().is_dir():
        return
    from masktune.studies import jobs as studies
    from masktune.studies.grid import KIND

    for study in pager(ordered(studies.history(KIND)), AT_ONCE, key="runs_grids"):
        draw_study(study, act=_draw_tick)
        if study.table:
            _draw_table(study)


def ordered(grids: Sequence["StudyJob"]) -> list["StudyJob"]:
    """Put grids that work, wait or are paused before the others, which stay in their order."""
    return sorted(
        grids,
        key=lambda grid: (*(grid.state != state for state in FIRST), grid.ahead),
    )


def _draw_table(study: "StudyJob") -> None:
    from masktune.studies.grid import table_of

    tests: Sequence[str] = study.table["tests"]
    chosen = st.session_state.runs_test
    test = chosen if chosen in tests else tests[0]
    table = table_of(study.table, test)
    download("CSV", lambda: csv(table), f"{study.id}-means.csv")
    say(f"Means over seeds of the model after on “{test}”.", kind="muted")
    show(html(table))


def _draw_tick(study: "StudyJob", runs: Sequence[jobs.Job]) -> None:
    st.button(
        "Tick its runs",
        key=f"tick_grid_{study.id}",
        disabled=not runs,
        on_click=partial(tick, *(job.id for job in runs), on=True),
    )
