"""The cards of the Abstain page. No model is asked here: all follows from stored predictions."""

from collections.abc import Sequence

import streamlit as st

from app.abstain import files, words
from app.abstain.numbers import Reading, against, area_intervals, read_off, scores_of
from app.kept import once
from app.opened import computed
from app.shared.pieces import card, chart, download
from app.shared.sheets import say, show
from app.state import keep
from masktune.config import MASKTUNE
from masktune.runs.open import OpenSplit
from masktune.scores.marks import DecileMark, Mark, written
from masktune.scores.selective import DECILES, decile_risks
from masktune.show.abstained import Rankings, least_answered
from masktune.show.figures import coverage_by_group, risk_by_decile, risk_coverage_curves
from masktune.show.marks import marks_line
from masktune.show.tables import csv, html
from masktune.show.wording import count, score_name

AGAINST = {"joint": "after", "after": "joint", "before": "after", "own": "after"}
"""The score that a score's mistakes are set against."""

AREAS = (
    "Risk is the share of wrong answers among the pictures answered. **AURC** is the area under "
    "the risk, **AUGRC** the area under wrong answers per picture, answered or not; **e-AURC** is "
    "AURC minus that of a perfect ranking. Lower is safer. All are plain fractions from 0 to 1; "
    "some tools print them times 1000."
)
SCORING = (
    "How sure is sure? **Joint** is the paper's score: the largest product of both models' "
    "probabilities. **After** and **Before** are the largest probability of one model alone "
    "(softmax response, SR)."
)
OWN = (
    " **Its own score** is what the method learnt to abstain by; the answers are those of the "
    "model after."
)


def curves_card(
    test: OpenSplit, rankings: Rankings, readings: dict[str, Reading], score: str
) -> None:
    """Show what abstaining costs and buys, with the chosen score's threshold marked."""
    reading = readings[score]
    with card("abstain_curves", "Risk against coverage", hint=AREAS):
        figure = once(
            risk_coverage_curves,
            rankings.curves,
            score=score,
            point=reading.point,
            target=reading.target,
            split=(test.name, len(test)),
        )
        chart(figure, key="abstain_curves")
        show(html(words.scores_table(readings, score, split=test.name)))
        intervals = None
        if st.session_state.abstain_intervals:
            with st.spinner("Drawing 1,000 samples of every score"):
                seed = test.run.config.seed
                intervals = computed(
                    test, "intervals", lambda: area_intervals(rankings.test, seed=seed)
                )
        show(html(words.areas_table(rankings, intervals)))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.toggle("95% intervals of AURC", help="1,000 resamples.", **keep("abstain_intervals"))
            st.caption(
                "Areas are plain fractions from 0 to 1, lower is safer; of the coverage higher is "
                "better.",
                width="content",
            )


def own_way(scores: Sequence[str], rival: str) -> str:
    """Name the score that a method goes by unless somebody chooses.

    >>> own_way(["joint", "after", "before"], "masktune")
    'joint'
    >>> own_way(["joint", "after", "before"], "dfr")
    'after'
    >>> own_way(["joint", "after", "before", "own"], "selectivenet")
    'own'
    """
    return "own" if "own" in scores else "joint" if rival == MASKTUNE else "after"


def point_card(test: OpenSplit, rankings: Rankings) -> tuple[dict[str, Reading], str]:
    """Let people choose score and target, and tell what they do.

    Returns:
        The readings of all scores at that target, and the chosen score.
    """
    with card("abstain_point", "Operating point"):
        scores, state = scores_of(rankings), st.session_state
        if state.abstain_score not in scores:
            state.abstain_score = None
        state.abstain_pick = state.abstain_score or own_way(scores, test.run.config.rival)
        st.segmented_control(
            "Score",
            scores,
            required=True,
            format_func=lambda one: score_name(one).capitalize(),
            key="abstain_pick",
            on_change=lambda: state.update(abstain_score=state.abstain_pick),
            help=SCORING + (OWN if "own" in scores else ""),
            width="stretch",
        )
        score: str = state.abstain_pick
        percentage = st.slider(
            "Target coverage",
            min_value=50,
            max_value=100,
            format="%d%%",
            help="The share of pictures that should get an answer.",
            **keep("coverage"),
        )
        readings = {one: read_off(rankings, one, target=percentage / 100) for one in scores}
        reading = readings[score]
        other = AGAINST[score]
        left, right = st.columns(2)
        with left:
            show(words.coverage_metric(reading, split=test.name), kind="metric")
        with right:
            less = against(rankings, reading, other)
            show(words.wrong_metric(reading, other, less, split=test.name), kind="metric")
        say(words.gamma_sentence(reading, len(rankings.validation[score])), kind="note")
        if missed := words.miss_sentence(reading, test=test.name):
            say(missed, kind="verdict unclear")
        show(words.verdict_html(rankings.safety))
        download(
            "Operating point (JSON)",
            lambda: files.point_json(rankings, reading, run=test.run.id, test=test.name),
            files.name(test, "operating-point.json"),
        )
    return readings, score


def groups_card(test: OpenSplit, rankings: Rankings, reading: Reading) -> None:
    """Show who gets no answer."""
    with card("abstain_groups", "Coverage by group"):
        groups = least_answered(
            rankings.test[reading.score],
            test.pair.before,
            gamma=reading.point.gamma,
            names=test,
        )
        marks = words.group_marks(test, reading, groups)
        both = [(written(answered), written(abstained)) for answered, abstained in marks]
        figure = once(coverage_by_group, groups, score=reading.score, marks=both)
        chart(figure, key="abstain_groups")
        say(words.gap_sentence(groups) + words.left_out_words(test, groups), kind="note")
        table = words.groups_table(groups, marks)
        show(html(table))
        download("Groups (CSV)", lambda: csv(table), files.name(test, "coverage-by-group.csv"))


def deciles_card(test: OpenSplit, rankings: Rankings, score: str) -> None:
    """Show how often answers are wrong by how sure the score is."""
    hint = (
        "All pictures, sorted by the score and cut into ten equal parts. A score worth abstaining "
        "by has its mistakes in the first ones."
    )
    found = decile_risks(rankings.test[score])
    ends = {1: "1, least sure", DECILES: f"{DECILES}, surest"}
    marks: dict[str, Mark] = {
        ends.get(d.number, str(d.number)): DecileMark(test.name, score, d.number) for d in found
    }
    table = words.deciles_table(found, score)
    with card("abstain_deciles", "Wrong answers by confidence", hint=hint, table=table):
        figure = once(
            risk_by_decile, found, score=score, marks=[written(mark) for mark in marks.values()]
        )
        chart(figure, key="abstain_deciles")
        show(once(marks_line, marks))


def table_card(test: OpenSplit, rankings: Rankings) -> None:
    """Show the table as the paper prints it."""
    with card("abstain_table", "The paper's table"):
        table = words.paper_table(rankings.table())
        left, notes = st.columns((1.9, 1), gap="large")
        with left:
            show(html(table))
        with notes:
            st.caption(
                "Cov.: achieved coverage. Err.: share of wrong answers among those answered. SR: "
                "softmax response, the largest probability of one model. "
                f"n\u00a0=\u00a0{count(len(test))} test pictures; every "
                f"gamma from {count(len(test.run.validation))} validation pictures."
            )
            download("Table (CSV)", lambda: csv(table), files.name(test, "selective.csv"))
