"""Which k? What every threshold does, and a suggestion that needs no group label.

A quick look asks the model before only; finished runs at the same other settings add what a
finetune at their k came to.
"""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import loaded as cached
from app.finetune.advice_numbers import look_words, table_words, trials_figure, trials_table
from app.kept import COMPUTED, once
from app.opened import result_of
from app.shared.pages import page_file
from app.shared.pieces import chart, download
from app.shared.problems import explained_errors, plain
from app.shared.progress import shown_progress
from app.shared.sheets import say, show
from app.shared.studies import draw_study
from app.state import open_run, planned
from masktune.checkpoints.settings import settings
from masktune.config import MaskingConfig, RunConfig
from masktune.errors import ConfigError
from masktune.runs.jobs import Job
from masktune.scores.hiding import RULE as HIDING_RULE
from masktune.show.hiding import verdict_html
from masktune.show.tables import csv, html
from masktune.show.wording import count
from masktune.studies import jobs as studies
from masktune.studies.advice import RULE, Trial, TunedScores, suggest
from masktune.studies.grid import KIND, Grid, at_thresholds
from masktune.studies.jobs import StudyJob
from masktune.studies.sweep import KS, SAMPLE, with_rate
from masktune.training.rates import RATE_RULE


def draw_advice(subject: RunConfig, past: Sequence[Job], *, busy: bool) -> None:
    """Draw the card.

    Args:
        subject: pictures and a trained model.
        past: all runs, the newest first, to know which thresholds were finetuned already.
        busy: whether the run on the page is under way.
    """
    st.header("Which k?", anchor=False, help=RULE)
    plan = planned()
    chosen = plan.masking
    with explained_errors():
        if not cached.has_thresholds(subject, chosen):
            _draw_offer(subject, chosen)
            return
        # Batch size and optimiser are the plan's; its rate is what advice is asked about.
        trials = with_rate(
            with_runs(cached.thresholds(subject, chosen), past),
            replace(plan, finetune_lr=None),
            cached.checkpoint(subject),
            pictures=len(cached.bundle(subject).train),
        )
        words, figure = st.columns([1, 1.4], gap="medium")
        with words:
            _draw_words(subject, trials)
            sweep = _newest_sweep()
            _draw_runs(past, trials, sweep, busy=busy)
        with figure:
            chart(once(trials_figure, trials, k=chosen.k), key="advice")
        if sweep is not None:
            draw_study(sweep, act=_draw_compare)
        _draw_verdict(trials, chosen.k)
        show(html(trials_table(trials)))
        st.caption(table_words(trials))


def _draw_offer(subject: RunConfig, masking: MaskingConfig) -> None:
    # With a large model the look takes a while, so nobody gets it unasked.
    pictures = min(SAMPLE, len(cached.bundle(subject).train))
    say(
        f"Hide {count(pictures)} training pictures at {len(KS)} thresholds and see where the "
        "model's own answers break down. Nothing is finetuned.",
        kind="muted",
    )
    if st.button("Suggest a k", icon=":material/tune:", key="advice_look"):
        with shown_progress("Trying the thresholds", unit="") as watcher:
            cached.thresholds(subject, masking, watcher=watcher)
        st.rerun()


def _draw_verdict(trials: Sequence[Trial], k: float) -> None:
    """Say what hiding takes away at the threshold that was tried nearest to the plan's."""
    nearest = min(trials, key=lambda trial: abs(trial.k - k))
    if nearest.hiding is None:
        return
    with st.container(key="card_taken"):
        st.markdown(f"**Before the epoch, at k = {nearest.k:g}**", help=HIDING_RULE)
        show(verdict_html(nearest.hiding))


def _draw_words(subject: RunConfig, trials: Sequence[Trial]) -> None:
    advice = suggest(trials)
    head = "No k stands out." if advice.k is None else f"Suggested: k = {advice.k:g}"
    st.markdown(f"**{head}**\n\n{plain(advice.reason)}")
    if advice.lr_reason:
        st.markdown(plain(advice.lr_reason), help=RATE_RULE)
    pictures = len(cached.bundle(subject).train)
    st.caption(look_words(trials, pictures, rounds=st.session_state.rounds))
    with st.container(horizontal=True):
        if advice.k is not None:
            st.button(
                "Use this k",
                icon=":material/check:",
                key="advice_use",
                on_click=lambda: st.session_state.update(k=advice.k),
                disabled=advice.k == st.session_state.k,
            )
        if advice.lr is not None:
            st.button(
                "Use this rate",
                icon=":material/speed:",
                key="advice_rate",
                on_click=lambda: st.session_state.update(finetune_lr=advice.lr),
                disabled=advice.lr == st.session_state.finetune_lr,
            )
        download(
            "CSV", lambda: csv(trials_table(trials)), f"{subject.dataset}-k.csv", prominent=True
        )


def _grid(ks: Sequence[float]) -> Grid:
    """Return the study of the plan at some thresholds.

    Raises:
        ConfigError: the plan's model cannot be set in one, as the bundled one with another seed.
    """
    config = planned()
    return COMPUTED.get(("at thresholds", config, *ks), lambda: at_thresholds(config, ks))


def _newest_sweep() -> StudyJob | None:
    """Return the newest grid of thresholds at the plan's other settings, if there is one."""

    def is_one(study: StudyJob) -> bool:
        asked = study.request or {}
        if not asked.get("ks") or asked.get("strategies") != [planned().masking.strategy]:
            return False
        try:
            own = _grid(asked["ks"])
        except ConfigError:  # no grid is of this plan
            return False
        alike = (asked["rates"], asked["seeds"]) == ([*own.rates], [*own.seeds])
        return alike and study.config == settings(own.given, without_effect="left out")

    return next((study for study in studies.history(KIND) if is_one(study)), None)


def _draw_compare(study: StudyJob, runs: Sequence[Job]) -> None:
    if st.button(
        "Compare its runs",
        icon=":material/stacked_line_chart:",
        key=f"compare_{study.id}",
        disabled=len(runs) < 2,
        on_click=_compare,
        args=(runs,),
    ):
        st.switch_page(page_file("compare"))


def _compare(runs: Sequence[Job]) -> None:
    # The page shows the one whose k is nearest to the plan's.
    k = st.session_state.k
    open_run(min(runs, key=lambda job: abs(job.config.masking.k - k)))
    st.session_state.compared = [job.id for job in runs]


def _draw_runs(
    past: Sequence[Job], trials: Sequence[Trial], sweep: StudyJob | None, *, busy: bool
) -> None:
    """Offer the thorough way: a run for each threshold neither finetuned nor under way."""
    active = [job.config for job in past if job.active]
    at = _runs_at(trials)
    waiting = () if sweep is None or not sweep.active else [one["k"] for one in sweep.plan]
    wanted = [
        trial.k
        for trial in trials
        if trial.tuned is None and trial.k not in waiting and at[trial.k] not in active
    ]
    refused = ""
    try:
        _grid(wanted or KS)
    except ConfigError as error:
        refused = str(error)
    st.button(
        runs_words(len(wanted), trials),
        icon=":material/playlist_play:",
        key="advice_runs",
        disabled=busy or not wanted or bool(refused),
        help="One run for each k in the table that has none yet, with the other settings of the "
        "plan. They are one study, paused and cancelled as a whole, which Runs lists too. Their "
        "numbers then fill the table, and Compare draws accuracy against k.",
        on_click=_start,
        args=(wanted,),
    )
    if refused:
        st.caption(plain(refused))


def _start(wanted: Sequence[float]) -> None:
    with explained_errors():
        studies.start(_grid(wanted))


def runs_words(wanted: int, trials: Sequence[Trial]) -> str:
    """Give the label of the button that starts the runs that are missing."""
    if wanted:
        return f"Finetune at {wanted} threshold{'' if wanted == 1 else 's'}"
    if all(trial.tuned for trial in trials):
        return "Finetuned at every k here"
    return "Finetunes under way"


def with_runs(trials: Sequence[Trial], past: Sequence[Job]) -> tuple[Trial, ...]:
    """Fill in what finished runs at the plan's other settings came to; the newest at each k."""
    at = {config: k for k, config in _runs_at(trials).items()}
    tuned: dict[float, TunedScores] = {}
    for job in past:
        result = result_of(job) if job.config in at else None
        found = None if result is None else TunedScores.from_result(result)
        if found is not None:
            tuned.setdefault(at[job.config], found)
    return tuple(replace(trial, tuned=tuned.get(trial.k)) for trial in trials)


def _runs_at(trials: Sequence[Trial]) -> dict[float, RunConfig]:
    """Return the plan at every threshold that was tried; it is read once for all of them."""
    config = planned()
    masking = config.masking
    return {t.k: replace(config, masking=replace(masking, k=t.k)) for t in trials}
