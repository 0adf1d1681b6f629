"""Which k? A quick look at every threshold, drawn with a suggestion that needs no group label."""

from collections.abc import Sequence
from dataclasses import replace

import plotly.graph_objects as go
import streamlit as st

from app import cached, jobs
from app.components.finetune_plan import settings
from app.components.problems import explained_errors, plain
from app.components.progressing import shown_progress
from app.components.sheets import show
from app.jobs import Job
from app.state import choose_masking, choose_run, session
from app.subject import Subject
from masktune.advice import FEW_MORE, LEAST_LOST, Advice, Trial, suggest
from masktune.answers import csv_bytes
from masktune.config import MaskingConfig, RunConfig
from masktune.drawing import (
    BEFORE,
    CONFIG,
    DASHES,
    HIDDEN,
    SERIES,
    WIDTH,
    empty,
    legend_below,
    told,
)
from masktune.sweep import KS, SAMPLE
from masktune.wording import count, percent

RULE = (
    "The rule: the largest k, so the smallest masks, that still hide something in nearly every "
    f"picture (at most {FEW_MORE:.1%} more left whole than at any other k) and cost the model at "
    f"least {100 * LEAST_LOST:.0f} points of accuracy. It uses no group label and no "
    "test picture. A rule of thumb, found on the bundled demos; two clues need more rounds "
    "whatever k is."
)


def draw_advice(subject: Subject, past: Sequence[Job], *, busy: bool) -> None:
    """Draw the card.

    Args:
        subject: pictures and a trained model.
        past: all runs, to know which thresholds were finetuned already.
        busy: whether the run on the page is under way.
    """
    st.header("Which k?", anchor=False, help=RULE)
    masking = session().masking
    with explained_errors():
        if not cached.has_thresholds(subject, masking):
            _draw_offer(subject, masking)
            return
        trials = cached.thresholds(subject, masking)
        words, chart, table = st.columns([1, 1.15, 0.95], gap="medium")
        with words:
            _draw_words(subject, trials)
            _draw_runs(subject, past, busy=busy)
        with chart:
            drawn = trials_figure(trials, k=masking.k)
            st.plotly_chart(drawn, config=CONFIG, alt=str(drawn.layout.meta), key="advice")
        with table:
            show(table_html(trials, suggest(trials)))


def _draw_offer(subject: Subject, masking: MaskingConfig) -> None:
    """Offer the look: with a large model it takes a while, so nobody gets it unasked."""
    pictures = min(SAMPLE, len(cached.bundle(subject).train))
    show(
        f'<p class="muted">Hide {count(pictures)} training pictures at {len(KS)} thresholds and '
        "see where the model's own answers break down. Nothing is finetuned.</p>"
    )
    if st.button("Suggest a k", icon=":material/tune:", key="advice_look"):
        with shown_progress("Trying the thresholds", unit="hundredths") as watcher:
            cached.thresholds(subject, masking, watcher=watcher)
        st.rerun()


def _draw_words(subject: Subject, trials: Sequence[Trial]) -> None:
    advice = suggest(trials)
    head = "No k stands out." if advice.k is None else f"Suggested: k = {advice.k:g}"
    st.markdown(f"**{head}**\n\n{plain(advice.reason)}")
    st.caption(look_words(trials, len(cached.bundle(subject).train)))
    with st.container(horizontal=True):
        if advice.k is not None:
            st.button(
                "Use this k",
                icon=":material/check:",
                key="advice_use",
                on_click=_use,
                args=(advice.k,),
                disabled=advice.k == session().masking.k,
            )
        st.download_button(
            "CSV",
            trials_csv(trials),
            file_name=f"{subject.dataset}-k.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="advice_csv",
        )


def _use(k: float) -> None:
    """Take a threshold; the slider of the plan is not drawn yet when this is called."""
    choose_masking(replace(session().masking, k=k))
    st.session_state["finetune_k"] = k


def look_words(trials: Sequence[Trial], pictures: int) -> str:
    """Say what a quick look is and is not."""
    looked = trials[0].pictures
    which = (
        f"all {count(looked)}" if looked == pictures else f"{count(looked)} of {count(pictures)}"
    )
    return (
        f"A quick look at {which} training pictures: nothing was finetuned, and groups were not "
        "looked at. It can be wrong; finetunes at several k settle it."
    )


def _draw_runs(subject: Subject, past: Sequence[Job], *, busy: bool) -> None:
    """Offer the thorough way: one ordinary run for each threshold."""
    wanted = missing_runs(subject, past)
    if st.button(
        f"Finetune at {len(wanted)} thresholds" if wanted else "Finetuned at every k here",
        icon=":material/playlist_play:",
        key="advice_runs",
        disabled=busy or not wanted,
        help="One run for each k in the table that has none yet, with the other settings of the "
        "plan. They queue below and can be cancelled one by one; Compare then draws accuracy "
        "against k.",
    ):
        paths = [jobs.start(config) for config in wanted]
        choose_run(paths[0].name)
        st.rerun()


def missing_runs(subject: Subject, past: Sequence[Job]) -> list[RunConfig]:
    """Give the settings of one run for each threshold, without those done or under way."""
    chosen = session()
    here = [job.config for job in past if job.active or job.state == "done"]
    planned = [
        settings(subject, masking=replace(chosen.masking, k=k), finetune_lr=chosen.finetune_lr)
        for k in KS
    ]
    return [config for config in planned if config not in here]


def trials_figure(trials: Sequence[Trial], *, k: float) -> go.Figure:
    """Draw right answers, hidden area and empty pictures against k.

    Args:
        trials: ascending in k, at least one.
        k: the threshold in use, marked.
    """
    lines = {
        "right answers when hidden": ([t.hidden for t in trials], BEFORE, "dash"),
        "pixels hidden": ([t.hidden_fraction for t in trials], HIDDEN, "solid"),
        "pictures with nothing hidden": ([t.empty_fraction for t in trials], SERIES[0], DASHES[2]),
    }
    figure = empty(height=320)
    for name, (values, colour, dash) in lines.items():
        figure.add_scatter(
            x=[trial.k for trial in trials],
            y=values,
            name=name,
            mode="lines+markers",
            line={"color": colour, "width": WIDTH, "dash": dash},
            marker={"size": 7},
            hovertemplate=f"k = %{{x}}: %{{y:.1%}} {name}<extra></extra>",
        )
    figure.add_vline(x=k, line={"color": BEFORE, "width": 1.5, "dash": "dot"})
    figure.update_xaxes(title_text="k: sigmas above the mean heat", showgrid=False)
    figure.update_yaxes(range=[-0.03, 1.04], tickformat=".0%")
    legend_below(figure)
    words = [
        f"k = {t.k:g}: {percent(t.hidden_fraction)} of the pixels hidden, nothing hidden in "
        f"{percent(t.empty_fraction)} of the pictures, {percent(t.hidden)} answered right."
        for t in trials
    ]
    return told(figure, "What each threshold does. " + " ".join(words))


def table_html(trials: Sequence[Trial], advice: Advice) -> str:
    """Give one row for each threshold, the suggested one strong."""
    rows = []
    for trial in trials:
        cells = (
            f"{trial.k:g}",
            percent(trial.hidden_fraction),
            percent(trial.empty_fraction),
            percent(trial.hidden),
        )
        strong = trial.k == advice.k
        rows.append("".join(f"<td>{f'<b>{c}</b>' if strong else c}</td>" for c in cells))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        '<div style="overflow-x:auto"><table><thead><tr><th>k</th>'
        "<th>pixels hidden</th><th>nothing hidden</th>"
        f"<th>answered right</th></tr></thead><tbody>{body}</tbody></table></div>"
        f'<p class="note">Answered right by the model before, on {count(trials[0].pictures)} '
        f"pictures; {percent(trials[0].seen)} when nothing is hidden.</p>"
    )


def trials_csv(trials: Sequence[Trial]) -> bytes:
    """Give the trials as CSV, fractions in [0, 1]."""
    heads = (
        "k", "n", "hidden_fraction", "empty_fraction", "accuracy_whole", "accuracy_hidden",
        "suggested",
    )  # fmt: skip
    best = suggest(trials).k
    rows = [
        (t.k, t.pictures, t.hidden_fraction, t.empty_fraction, t.seen, t.hidden, int(t.k == best))
        for t in trials
    ]
    return csv_bytes(heads, rows)
