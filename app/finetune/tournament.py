"""Set methods side by side: ask for a tournament, watch its table fill, and take it along."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import streamlit as st

from app import loaded as cached
from app.finetune.time import seconds_of, usual
from app.kept import COMPUTED
from app.shared.pages import page_file
from app.shared.pieces import download
from app.shared.problems import explained_errors, plain
from app.shared.run_rows import about, runs_words
from app.shared.sheets import show
from app.shared.studies import draw_study, numbers
from app.state import MOST_SEEDS, START, keep, open_run, sensible
from masktune.checkpoints.settings import OPTIONS, settings
from masktune.config import BUNDLED, LAST_LAYER, MASKTUNE, RunConfig
from masktune.data.types import DatasetBundle
from masktune.datasets.catalogue import card
from masktune.errors import ConfigError
from masktune.runs import jobs
from masktune.runs.load import same_pictures
from masktune.show.tables import html
from masktune.studies import jobs as studies
from masktune.studies.jobs import StudyJob
from masktune.studies.tournament.abstaining import NOTES, tables_of
from masktune.studies.tournament.page import ABSTAINING
from masktune.studies.tournament.plan import (
    METHODS,
    NONE,
    RANDOM,
    Planned,
    Request,
    caution,
    check_needs,
    heeded,
    plan,
    title,
)
from masktune.studies.tournament.rates import learning
from masktune.studies.tournament.table import notes, rates_of, table_of, tried_table, verdicts
from masktune.studies.tournament.tries import TRIABLE, called, tries_of
from masktune.training.methods import RIVALS

BESIDE = ("groupdro", "jtt", "dfr")
"""Rivals that stand beside MaskTune and its controls at first, where the pictures allow them."""

EXAMPLES = ("rounds=1,2", "start=scratch,erm", "focus=1,10", "easy-share=0.4,0.8")
"""Settings to try, of MaskTune, of methods that train by the recipe, and of two others."""

HINT = (
    "Methods on the same pictures, from the same model before, in one table. Of the settings that "
    "are tried for a method one is chosen on validation pictures; test pictures are looked at for "
    "what was chosen only."
)
KS_HELP = (
    "Thresholds from 0 to 3 that MaskTune is tried at, with commas between, such as 1,2. Left "
    "empty, its usual one."
)
RATES_HELP = (
    "Factors on the usual learning rate that every method is tried at, with commas between, such "
    "as 1,3. Methods that retrain the last layer only have none."
)
TRIES_HELP = (
    "Values that settings of methods are tried at, each by the methods that look at it: the "
    "setting, =, and its values with commas between; a space before the next setting. Settings: "
    f"{', '.join(map(called, TRIABLE))}."
)
SEEDS_HELP = (
    f"How often all of it is done, 1 to {MOST_SEEDS} times, each with another split, order and "
    "start."
)
FILES = {"CSV": "table.csv", "Markdown": "table.md", "LaTeX": "table.tex", "Report": "report.html"}


def draw_tournament(loaded: RunConfig, past: Sequence[jobs.Job]) -> None:
    """Draw the card.

    Args:
        loaded: pictures and model.
        past: all runs, the newest first: they tell how long one takes.
    """
    every = studies.history()
    mine = [
        study
        for study in every
        if study.kind == "tournament" and same_pictures(study.config, loaded)
    ]
    st.header("Set methods side by side", anchor=False, help=HINT)
    shown = next((study for study in mine if study.id == st.session_state.tournament), None)
    shown = shown or next(iter(mine), None)
    told = [job for study in mine for job in studies.finished_runs(study).values()]
    request = _draw_form(loaded, [*told, *past])
    waits = any(job.active for job in past) or any(study.active for study in every)
    _draw_start(request, waits=waits, busy=shown is not None and shown.active)
    if shown is not None:
        _draw_picker(shown, mine)
        draw_study(shown)
        if shown.table:
            _draw_table(shown)


def _draw_form(loaded: RunConfig, past: Sequence[jobs.Job]) -> Request | None:
    """Draw the fields; return what they ask for, None when it cannot be done."""
    state, data = st.session_state, _pictures(loaded)
    chosen = state.tournament_methods
    known = [name for name in chosen or () if name in METHODS]  # an address may say anything
    state.tournament_pick = usual_methods(data) if chosen is None else known
    methods: list[str] = st.multiselect(
        "Methods",
        METHODS,
        format_func=title,
        key="tournament_pick",
        on_change=lambda: state.update(tournament_methods=state.tournament_pick),
        placeholder="Choose methods",
    )
    with st.grid(3, min_column_width=200):
        has_k = MASKTUNE in methods
        has_rate = any(name not in LAST_LAYER for name in methods)
        st.text_input(
            "Thresholds k",
            placeholder="MaskTune's usual one",
            disabled=not has_k,
            help=KS_HELP,
            **keep("tournament_ks"),
        )
        st.text_input("Rates", disabled=not has_rate, help=RATES_HELP, **keep("tournament_rates"))
        # Without bounds, beyond which a browser would keep to itself what somebody typed.
        st.number_input("Seeds", step=1, help=SEEDS_HELP, **keep("tournament_seeds"))
    st.text_input(
        "Settings to try",
        placeholder=tries_example(methods) or "none of these methods has any",
        help=TRIES_HELP,
        **keep("tournament_tries"),
    )
    with explained_errors():
        request = asked(methods)
        runs = [*plan(request, out=jobs.studies_home())]
        if data is not None:
            check_needs(request, data)
        pictures = None if data is None else len(data.train)
        words = [f"**{runs_words(len(runs))}**{_time_words(runs, past, pictures=pictures)}."]
        if request.trains and state.model == BUNDLED:
            words.append(
                "The bundled model was trained on the split of seed 0, so a model is trained for "
                "every seed."
            )
        elif request.trains:
            words.append("The first run of every seed trains the model.")
        words += caution(request.given, request.all_seeds)
        words.append("Pictures and training are those of Load; all else is as usual.")
        st.markdown(" ".join(words))
        if data is not None:
            _draw_rates(request, loaded, pictures=len(data.train))
        return request
    return None


def tries_example(methods: Sequence[str]) -> str:
    """Return what some methods could be tried at, as it is typed; empty if they have no settings.

    >>> tries_example(["masktune", "jtt", "dfr"]), tries_example(["dfr"])
    ('rounds=1,2 start=scratch,erm', '')
    """
    rivals = {name if name in RIVALS else MASKTUNE for name in methods}
    return " ".join(
        said for said in EXAMPLES if any(rivals & OPTIONS[name].rivals for name in tries_of(said))
    )


def _draw_rates(request: Request, loaded: RunConfig, *, pictures: int) -> None:
    """Say at which rates methods would learn, and warn of one that can hardly move the model."""
    before = None if request.trains else cached.checkpoint(loaded)
    sentence, *warnings = learning(request, before, pictures=pictures)["words"]
    st.caption(plain(sentence))
    for words in warnings:
        st.warning(plain(words), icon=":material/speed:")


def _pictures(loaded: RunConfig) -> DatasetBundle | None:
    """Read the pictures; None of a dataset that would have to be fetched for it."""
    there = card(loaded.dataset).bundled or loaded.root is not None
    return cached.bundle(loaded) if there else None


def usual_methods(data: DatasetBundle | None) -> list[str]:
    """Return what is set side by side unless somebody chooses.

    Rivals whose needs are not met by the pictures are left out, and all that have needs where
    nobody knows the pictures yet.
    """
    return [MASKTUNE, RANDOM, NONE, *(name for name in BESIDE if _allowed(name, data))]


def _allowed(name: str, data: DatasetBundle | None) -> bool:
    rival = RIVALS[name]  # type: ignore[index]
    if data is None:
        return not rival.needs
    try:
        rival.check(data, settings({"dataset": data.card.key, "rival": name}))
    except ConfigError:
        return False
    return True


def asked(methods: Sequence[str]) -> Request:
    """Return what the fields ask for.

    Raises:
        ConfigError: it cannot be done.
    """
    state = st.session_state
    if not methods:
        raise ConfigError("No method is chosen.", "Choose some of those above.")
    if not 1 <= state.tournament_seeds <= MOST_SEEDS:
        raise ConfigError(
            f"There are {state.tournament_seeds:,} seeds.",
            f"Give a whole number from 1 to {MOST_SEEDS}.",
        )
    given = {
        name: state[name]
        for name, option in OPTIONS.items()
        if option.part in START or name == "device"
    }
    sensible(given)
    if given["model"] == BUNDLED and (state.tournament_seeds > 1 or given["seed"]):
        given["model"] = None
    ks, rates = state.tournament_ks, state.tournament_rates
    has_rate = any(name not in LAST_LAYER for name in methods)
    weigh = partial(heeded, given, methods)
    return Request(
        given=COMPUTED.get(("heeded", *given.items(), *methods), weigh),
        methods=tuple(methods),
        ks=numbers(ks, "thresholds k") if MASKTUNE in methods else (),
        rates=numbers(rates, "rates") or (1.0,) if has_rate else (1.0,),
        tries=tries_of(state.tournament_tries),
        seeds=state.tournament_seeds,
    )


def _time_words(runs: Sequence[Planned], past: Sequence[jobs.Job], *, pictures: int | None) -> str:
    """Say how long the runs of a tournament take, if earlier ones tell it of every method."""
    known: dict[tuple[str, bool], float | None] = {}
    total = 0.0
    for one in runs:
        kind = one.method, one.config.model is None
        if kind not in known:
            parts = seconds_of(one.config, usual(one.config, past, pictures=pictures)[0])
            known[kind] = None if parts is None else sum(parts.values())
        seconds = known[kind]
        if seconds is None:
            return "; how long is unknown until some have shown it"
        total += seconds
    return f", roughly {about(total)} on this computer"


def _draw_start(request: Request | None, *, waits: bool, busy: bool) -> None:
    reason = ""
    if busy:
        reason = "One tournament at a time. The next can start when this one ends."
    elif request is None:
        reason = "Put the setting above right first."
    pressed = st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        disabled=bool(reason),
        key="tournament_start",
    )
    if reason:
        st.caption(reason)
    elif waits:
        st.caption("Other runs are under way. The tournament waits its turn.")
    if pressed and request is not None:
        with explained_errors():
            st.session_state.tournament = studies.start(request).name
            st.rerun()


def _draw_picker(shown: StudyJob, mine: Sequence[StudyJob]) -> None:
    if len(mine) < 2:
        return
    state = st.session_state
    state.tournament_shown = shown.id
    labels = {study.id: _label(study) for study in mine}
    st.selectbox(
        "Tournaments on these pictures",
        list(labels),
        format_func=labels.__getitem__,
        key="tournament_shown",
        on_change=lambda: state.update(tournament=state.tournament_shown),
    )


def _label(study: StudyJob) -> str:
    names = dict.fromkeys(str(one["title"]) for one in study.plan)
    moment = datetime.fromtimestamp(study.created)
    return f"{moment:%d %b %H:%M:%S}, {study.state}: {', '.join(names)}"


def _draw_table(study: StudyJob) -> None:
    for words in verdicts(study.table):
        st.markdown(plain(words))
    for words in rates_of(study.table):
        st.caption(plain(words))
    with st.container(key="tournament_table"):
        show(html(table_of(study.table)))
    _draw_words(study)
    _draw_abstaining(study)


def _draw_abstaining(study: StudyJob) -> None:
    """Show what methods come to when they may abstain; tables of older versions have nothing."""
    tables = tables_of(study.table)
    if not tables:
        return
    with st.container(key="tournament_abstaining"):
        for table in tables:
            show(html(table))
    with st.expander("How to read what stands under abstaining"):
        for words in NOTES:
            st.caption(plain(words))
    if (study.path / ABSTAINING).is_file():
        content = partial((study.path / ABSTAINING).read_bytes)
        download("CSV, abstaining", content, f"{study.id}-{ABSTAINING}", prominent=True)


def _chosen(study: StudyJob) -> list[jobs.Job]:
    """Return the chosen runs of the first seed, MaskTune's first."""
    told = study.table
    first = [one for one in told["runs"] if one.get("chosen") and one["seed"] == told["seeds"][0]]
    runs = studies.finished_runs(study)
    first.sort(key=lambda one: one["method"] != MASKTUNE)
    return [runs[one["run"]] for one in first if one["run"] in runs]


def _open(chosen: Sequence[jobs.Job]) -> None:
    open_run(chosen[0])
    st.session_state.compared = [job.id for job in chosen]


def _draw_words(study: StudyJob) -> None:
    """Say by which rule was chosen and how to read the table; offer it as files."""
    told = study.table
    st.markdown(plain(told["rule"]))
    with st.expander("How to read the table, and what was tried"):
        for words in notes(told):
            if words not in (told["rule"], *rates_of(told)):
                st.caption(plain(words))
        show(html(tried_table(told)))
    if study.state != "done":
        return
    with st.container(horizontal=True):
        chosen = _chosen(study)
        if st.button(
            "Compare these methods",
            icon=":material/stacked_line_chart:",
            key=f"compare_{study.id}",
            disabled=not chosen,
            help="Opens Compare with the chosen run of every method, of the first seed.",
            on_click=_open,
            args=(chosen,),
        ):
            st.switch_page(page_file("compare"))
        for label, name in FILES.items():
            content = partial((study.path / name).read_bytes)
            download(label, content, f"{study.id}-{name}", prominent=True)
        document = json.dumps(told, indent=2, ensure_ascii=False).encode()
        download("JSON", document, f"{study.id}-table.json", prominent=True)
