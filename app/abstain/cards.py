"""The cards of the Abstain page. No model is asked here: all follows from stored predictions."""

import streamlit as st

from app.abstain import files, words
from app.abstain.numbers import SCORES, Reading, against, read_groups, read_off
from app.abstain.tested import Tested, intervals_of
from app.kept import once
from app.shared.pieces import card, chart, download
from app.shared.problems import plain
from app.shared.sheets import show
from app.state import keep
from masktune.show.figures import coverage_by_group, risk_coverage_curves
from masktune.show.markup import piece
from masktune.show.tables import csv, html
from masktune.show.wording import count

AGAINST = {"joint": "after", "after": "joint", "before": "after"}
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


def curves_card(test: Tested, readings: dict[str, Reading], score: str) -> None:
    """Show what holding back costs and buys, with the chosen score's threshold marked."""
    reading = readings[score]
    with card("abstain_curves", "Risk against coverage", hint=AREAS):
        figure = once(
            risk_coverage_curves,
            test.rankings.curves,
            score=score,
            point=reading.point,
            target=reading.target,
        )
        chart(figure, key="abstain_curves")
        show(html(words.scores_table(readings, score)))
        wanted = st.session_state.get("abstain_intervals", False)
        show(html(words.areas_table(test.rankings, intervals_of(test) if wanted else None)))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.toggle("95% intervals of AURC", help="1,000 resamples.", **keep("abstain_intervals"))
            st.caption("Plain fractions from 0 to 1, lower is safer.", width="content")


def point_card(test: Tested) -> tuple[dict[str, Reading], str]:
    """Choose score and target and tell what they do.

    Returns:
        The readings of all scores at that target, and the chosen score.
    """
    with card("abstain_point", "Operating point"):
        score: str = (
            st.segmented_control(
                "Score",
                SCORES,
                default="joint",
                required=True,
                format_func=words.TITLES.__getitem__,
                **keep("abstain_score"),
                help=SCORING,
                width="stretch",
            )
            or "joint"
        )
        percentage = st.slider(
            "Target coverage",
            min_value=50,
            max_value=100,
            format="%d%%",
            help="The share of pictures that should get an answer.",
            **keep("coverage"),
        )
        readings = {one: read_off(test.rankings, one, target=percentage / 100) for one in SCORES}
        reading = readings[score]
        _tell(test, reading)
        show(words.verdict_html(test.rankings))
        download(
            "Operating point (JSON)",
            lambda: files.point_json(test.rankings, reading, run=test.run, test=test.name),
            test.file_name("operating-point.json"),
        )
    return readings, score


def _tell(test: Tested, reading: Reading) -> None:
    other = AGAINST[reading.score]
    left, right = st.columns(2)
    with left:
        show(words.coverage_metric(reading), kind="metric")
    with right:
        less = against(test.rankings, reading, other)
        show(words.wrong_metric(reading, other, less), kind="metric")
    validation = len(test.rankings.validation[reading.score])
    show(piece("paragraph", text=words.gamma_sentence(reading, validation), kind="note"))
    if missed := words.miss_sentence(reading, test=test.name):
        show(piece("paragraph", text=missed, kind="verdict unclear"))


def groups_card(test: Tested, reading: Reading) -> None:
    """Show who is held back."""
    with card("abstain_groups", "Coverage by group"):
        groups = read_groups(
            test.rankings.test[reading.score],
            test.pair.before,
            gamma=reading.point.gamma,
            names=test.split,
        )
        coverage = [group.coverage for group in groups]
        chart(once(coverage_by_group, coverage, score=reading.score), key="abstain_groups")
        st.caption(plain(words.gap_sentence(groups)))
        table = words.groups_table(groups)
        show(html(table))
        download(
            "Groups (CSV)",
            lambda: csv(table),
            test.file_name("coverage-by-group.csv"),
        )


def table_card(test: Tested) -> None:
    """Show the table as the paper prints it."""
    with card("abstain_table", "The paper's table"):
        table = words.paper_table(test.rankings)
        left, notes = st.columns((1.9, 1), gap="large")
        with left:
            show(html(table))
        with notes:
            st.caption(
                "Cov.: achieved coverage. Err.: share of wrong answers among those answered. SR: "
                "softmax response, the largest probability of one model. "
                f"n\u00a0=\u00a0{count(len(test.rankings.test['joint']))} test pictures; every "
                f"gamma from {count(len(test.rankings.validation['joint']))} validation pictures."
            )
            download(
                "Table (CSV)",
                lambda: csv(table),
                test.file_name("selective.csv"),
            )
