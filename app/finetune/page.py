"""Finetune: one epoch on the covered pictures; watch it, and see what earlier runs came to."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import loaded as cached
from app.finetune.advice_card import draw_advice
from app.finetune.history import draw_history
from app.finetune.jobcard import follow
from app.finetune.plan import draw_plan, effort_words
from app.finetune.time import Pace, seconds_of, usual
from app.finetune.tournament import draw_tournament
from app.shared.pages import heading, page_file
from app.shared.pieces import empty
from app.shared.problems import explained_errors, show_problem
from app.shared.run_menu import draw_undo
from app.shared.run_rows import about, demo_takes, missing
from app.shared.training import freezable
from app.shared.untrained import draw_under_way, under_way
from app.state import open_demo, start, subject, usable
from masktune.config import AUTO, MASKTUNE, RunConfig
from masktune.datasets.catalogue import card
from masktune.errors import MaskTuneError
from masktune.heat.strategies import STRATEGIES, check
from masktune.runs import jobs
from masktune.runs.folder import BEFORE
from masktune.runs.jobs import Job
from masktune.runs.load import same_pictures
from masktune.training.by_recipe import check_best
from masktune.training.freeze import with_statistics
from masktune.training.methods import RIVALS


def render() -> None:
    """Draw the page."""
    heading(
        "Finetune",
        "One epoch on the covered pictures, or another method. The model before is kept.",
    )
    with explained_errors():
        _draw(jobs.history())


def _draw(past: Sequence[Job]) -> None:
    shown = jobs.find(st.session_state.run or "")
    loaded = subject()
    if loaded is None:
        _draw_empty()
        return
    mine = [job for job in past if same_pictures(job.config, loaded) and not job.archived]
    left, right = st.columns([1, 2.1], gap="medium")
    with left, st.container(key="card_plan", height="stretch"):
        pace = _draw_plan(loaded, past, shown)
    with right, st.container(key="card_job", height="stretch"):
        _draw_job(shown, pace, listed=bool(mine))
    state = st.session_state
    advised = state.rival == MASKTUNE and STRATEGIES[state.strategy].advised
    if loaded.model is not None and advised and usable():
        with st.container(key="card_advice"):
            draw_advice(loaded, jobs.every(), busy=shown is not None and shown.active)
    with st.container():  # the list keeps its place when this comes and goes
        draw_undo()
    of_studies = sum(
        job.of_study and not job.archived and same_pictures(job.config, loaded)
        for job in jobs.every()
    )
    if mine or of_studies:
        with st.container(key="card_runs"):
            draw_history(mine, of_studies=of_studies)
    with st.container(key="card_tournament"), explained_errors():
        draw_tournament(loaded, past)


def _draw_empty() -> None:
    empty(
        "There is nothing to finetune yet",
        f"A finetune needs pictures and a model that was trained on them. {demo_takes()}",
    )
    with st.container(horizontal=True, horizontal_alignment="center"):
        st.button("Open the demo", type="primary", icon=":material/play_arrow:", on_click=open_demo)
        if st.button("Choose pictures and model", icon=":material/folder_open:"):
            st.switch_page(page_file("load"))


def _draw_plan(subject: RunConfig, past: Sequence[Job], shown: Job | None) -> Pace:
    """Draw the plan and its button; give how long such a run usually takes."""
    st.header("Plan", anchor=False)
    try:
        rate, pictures, layers = _usual_rate(subject), _pictures(subject), _layers(subject)
        batch_norm = _has_batch_norm(subject)
    except MaskTuneError as error:
        show_problem(error.problem, error.remedy)
        _draw_button(None, (), reason="Choose other pictures or another model on the Load page.")
        return {}
    config = draw_plan(usual_rate=rate, layers=layers, batch_norm=batch_norm)
    if config is not None and config.model is None and pictures is not None:
        checked, config = config, None
        with explained_errors():
            check_best(checked.training, cached.bundle(subject))
            config = checked
    if config is not None and pictures is not None:
        try:
            RIVALS[config.rival].check(cached.bundle(subject), config)
            check(config.masking, cached.bundle(subject).train)
        except MaskTuneError as error:
            show_problem(error.problem, error.remedy)
            config = None
    if config is None:
        _draw_button(None, (), reason="Put the setting above right first.")
        return {}
    if config.model is None and (training := under_way()) is not None:
        draw_under_way(training, here="Then it can be finetuned here.")
        _draw_button(config, (), reason="Until then a run would train the model a second time.")
        return {}
    wanted = jobs.control_settings(config) if st.session_state.controls else ()
    controls = missing(wanted, past)
    pace, same = usual(config, past, pictures=pictures)
    words = [_time_words(config, controls, pace, same=same)]
    words.append(effort_words(config, 1 + len(controls), pictures))
    if len(controls) < len(wanted):
        words.append("Controls that are here already are not run again.")
    st.markdown(" ".join(filter(None, words)))
    busy = sum(job.active for job in jobs.alone())
    running = shown is not None and shown.active
    reason = _busy_words(busy - 1) if running else ""
    _draw_button(config, controls, reason=reason, busy=busy)
    return pace


def _busy_words(others: int) -> str:
    """Say why no run can be started beside the one on the page, with how many others."""
    if others == 0:
        return "One run at a time. The next can start when this one ends."
    more = "1 more is" if others == 1 else f"{others} more are"
    return f"One run at a time, and {more} under way. You can start another when this one ends."


def _time_words(config: RunConfig, controls: Sequence[RunConfig], pace: Pace, *, same: bool) -> str:
    # Controls start from the model that the first run trains.
    later = [replace(control, model="trained") for control in controls]
    known = [seconds_of(one, pace) for one in (config, *later)]
    total = sum(sum(seconds.values()) for seconds in known if seconds is not None)
    if None in known:
        return f"**How long is unknown until the first run{' has shown it' if total else ''}.**"
    number = ("", " for two runs", " for three runs")[len(controls)]
    if same:
        return f"**About {about(total)}** on this computer{number}."
    return f"**Roughly {about(total)}**{number}, judged by runs on other pictures."


def _label(config: RunConfig | None) -> str:
    if config is not None and config.rival != MASKTUNE:
        title = RIVALS[config.rival].title
        return f"Train, then {title}" if config.model is None else f"Start {title}"
    rounds = 1 if config is None else config.masking.rounds
    if config is not None and config.model is None:
        return "Train, then finetune" + (f" in {rounds} rounds" if rounds > 1 else "")
    return f"Finetune in {rounds} rounds" if rounds > 1 else "Finetune for one epoch"


def _draw_button(
    config: RunConfig | None, controls: Sequence[RunConfig], *, reason: str, busy: int = 0
) -> None:
    pressed = st.button(
        _label(config),
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        disabled=bool(reason),
        key="finetune_start",
    )
    if reason:
        st.caption(reason)
    elif busy:
        runs = "run is" if busy == 1 else "runs are"
        st.caption(f"{busy} other {runs} under way. Yours waits its turn.")
    if pressed and config is not None:
        with explained_errors():
            _start(config, controls)
            st.rerun()


def _start(config: RunConfig, controls: Sequence[RunConfig]) -> None:
    path = jobs.start(config)
    st.session_state.run = path.name
    # The queue keeps its order: when a control starts, the first run has trained its model.
    trained = str(path / BEFORE)
    for control in controls:
        jobs.start(control if control.model else replace(control, model=trained, arch=AUTO))


def _draw_job(shown: Job | None, pace: Pace, *, listed: bool) -> None:
    if shown is not None:
        with explained_errors():
            follow(shown, pace)
        return
    if (run := st.session_state.run) is not None:
        remedy = "Choose one of the runs below, or start one." if listed else "Start one."
        show_problem(f"There is no run {run} here.", remedy)
    empty(
        "No run is open",
        "The button on the left starts one. Its progress, loss and accuracy appear here, and you "
        f"may leave the page meanwhile.{' Earlier runs are listed below.' if listed else ''}",
    )


def _usual_rate(subject: RunConfig) -> float:
    """Return the rate a finetune takes unless told otherwise: that of the ERM's last epoch."""
    training = (start() or subject).training
    given = None if subject.model is None else cached.checkpoint(subject).lr
    return given or training.last_lr


def _layers(subject: RunConfig) -> list[str]:
    """Name the parts of a model that has learnt already, up to which it may be frozen."""
    return [] if subject.model is None else freezable(cached.checkpoint(subject).model)


def _has_batch_norm(subject: RunConfig) -> bool:
    """Tell whether a model has batch norm; one that is yet to be trained may."""
    if subject.model is None:
        return True
    return bool(with_statistics(cached.checkpoint(subject).model.modules()))


def _pictures(subject: RunConfig) -> int | None:
    """Count the training pictures; not of a dataset that would have to be fetched for it."""
    if not card(subject.dataset).bundled and subject.root is None:
        return None
    return len(cached.bundle(subject).train)


render()
