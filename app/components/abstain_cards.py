"""The cards of the Abstain page. No model is asked here: all follows from stored predictions."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from app import cached
from app.components import abstain_files as files
from app.components import abstain_pictures as pictures
from app.components import abstain_words as words
from app.components.abstain_numbers import (
    SCORES,
    GroupReading,
    Interval,
    Rankings,
    Reading,
    area_intervals,
    rank,
    read_groups,
    read_off,
)
from app.components.problems import explained_errors, plain
from app.components.sheets import show
from app.state import session
from masktune.drawing import CONFIG
from masktune.figures import coverage_by_group, risk_coverage_curves
from masktune.groups import group_examples
from masktune.results import Pair
from masktune.view import RunView
from masktune.wording import count

TARGET = "abstain_target"
AGAINST = {"joint": "after", "after": "joint", "before": "after"}
"""The score whose mistakes a score's mistakes are set against."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One test set of a run.

    Attributes:
        run: the run's id.
        content: hash of its predictions, to find what was worked out before.
        view: the run.
        name: of the test set.
        pair: what both models say about it.
        rankings: every score.
    """

    run: str
    content: str
    view: RunView
    name: str
    pair: Pair
    rankings: Rankings

    def file_name(self, what: str) -> str:
        """Give the name of a download."""
        return f"{self.run}-{self.name}-{what}"


@st.cache_resource(max_entries=12, show_spinner=False)
def _rankings(content: str, name: str, _validation: Pair, _test: Pair) -> Rankings:
    return rank(_validation, _test)


@st.cache_data(max_entries=32, show_spinner="Drawing 1,000 samples of every score")
def _intervals(content: str, name: str, seed: int, _rankings: Rankings) -> dict[str, Interval]:
    return area_intervals(_rankings.test, seed=seed)


def tested(run: str, content: str, view: RunView, *, name: str) -> Tested:
    """Rank the answers on one test set; done once for each."""
    pair = view.predictions.tests[name]
    ranked = _rankings(content, name, view.predictions.validation, pair)
    return Tested(run=run, content=content, view=view, name=name, pair=pair, rankings=ranked)


def curves_card(test: Tested, reading: Reading) -> None:
    """Show what holding back costs and buys."""
    with st.container(key="card_abstain_curves", height="stretch"):
        st.header("Risk against coverage", anchor=False, help=AREAS)
        figure = risk_coverage_curves(
            test.rankings.curves,
            score=reading.score,
            point=reading.point,
            target=reading.target,
        )
        st.plotly_chart(figure, config=CONFIG, alt=figure.layout.meta, key="abstain_curves")
        wanted = st.session_state.get("abstain_intervals", False)
        intervals = None
        if wanted:
            seed = test.view.config.seed
            intervals = _intervals(test.content, test.name, seed, test.rankings)
        show(words.areas_table(test.rankings, intervals))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.toggle("95% intervals of AURC", key="abstain_intervals", help="1,000 resamples.")
            st.caption("Plain fractions from 0 to 1, lower is safer.", width="content")


def point_card(test: Tested) -> Reading:
    """Choose score and target; tell what they do. Gives the reading of the chosen score."""
    with st.container(key="card_abstain_point", height="stretch"):
        st.header("Operating point", anchor=False)
        score = st.segmented_control(
            "Score",
            SCORES,
            default="joint",
            required=True,
            format_func=words.TITLES.__getitem__,
            key="abstain_score",
            help=SCORING,
            width="stretch",
        )
        st.slider(
            "Target coverage",
            min_value=50,
            max_value=100,
            value=round(100 * min(max(session().coverage, 0.5), 1.0)),
            format="%d%%",
            key=TARGET,
            on_change=_take_target,
            help="The share of pictures that should get an answer.",
        )
        readings = {
            one: read_off(test.rankings, one, target=session().coverage) for one in SCORES
        }
        reading = readings[str(score)]
        _tell(test, reading, readings[AGAINST[reading.score]])
        show(words.scores_table(readings, reading.score))
        show(words.verdict_html(test.rankings))
        _download(
            "Operating point (JSON)",
            lambda: files.point_json(test.rankings, reading, run=test.run, test=test.name),
            test.file_name("operating-point.json"),
        )
    return reading


def _take_target() -> None:
    # Before the page runs, so that the stepper above shows it too.
    session().coverage = st.session_state[TARGET] / 100


def _tell(test: Tested, reading: Reading, other: Reading) -> None:
    left, right = st.columns(2)
    with left:
        show(words.coverage_metric(reading), kind="metric")
    with right:
        show(words.wrong_metric(reading, other), kind="metric")
    validation = len(test.rankings.validation[reading.score])
    show(f'<p class="note">{words.gamma_sentence(reading, validation)}</p>')
    if missed := words.miss_sentence(reading, test=test.name):
        st.warning(plain(missed), icon=":material/straighten:")


def groups_card(test: Tested, reading: Reading) -> None:
    """Show who is held back."""
    with st.container(key="card_abstain_groups", height="stretch"):
        st.header("Coverage by group", anchor=False)
        groups = _groups(test, reading)
        figure = coverage_by_group([group.coverage for group in groups], score=reading.score)
        st.plotly_chart(figure, config=CONFIG, alt=figure.layout.meta, key="abstain_groups")
        st.caption(plain(words.gap_sentence(groups)))
        show(words.groups_table(groups))
        _download(
            "Groups (CSV)", lambda: files.groups_csv(groups), test.file_name("coverage-by-group.csv")
        )


def _groups(test: Tested, reading: Reading) -> list[GroupReading]:
    return read_groups(
        test.rankings.test[reading.score],
        test.pair.before,
        gamma=reading.point.gamma,
        card=test.view.bundle.card,
    )


def pictures_card(test: Tested, reading: Reading) -> None:
    """Show the pictures that are held back, or answered."""
    with st.container(key="card_abstain_pictures", height="stretch"):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
        ):
            st.header("Which pictures", anchor=False, width="content")
            kind: pictures.Kind = (
                st.segmented_control(
                    "Which pictures",
                    pictures.KINDS,
                    default="Held back",
                    required=True,
                    key="abstain_kind",
                    label_visibility="collapsed",
                )
                or "Held back"
            )
        with explained_errors():
            _sheet(test, reading, kind)


def _sheet(test: Tested, reading: Reading, kind: pictures.Kind) -> None:
    card, ranked = test.view.bundle.card, test.rankings.test[reading.score]
    split = pictures.check_same_pictures(
        test.view.bundle.tests.get(test.name), test.pair, test=test.name
    )
    grouping = group_examples(test.pair.before, classes=card.classes, attributes=card.attributes)
    found = pictures.choose(ranked, reading.point.gamma, kind=kind)
    numbers = {group: int((grouping.ids[found] == group).sum()) for group in set(grouping.ids)}
    names = [label if more == "any" else f"{label}, {more}" for label, more in grouping.names()]
    group = st.selectbox(
        "Group",
        [None, *sorted(numbers)],
        format_func=lambda one: (
            f"All groups ({count(len(found))})"
            if one is None
            else f"{names[one]} ({count(numbers[one])})"
        ),
        key=f"abstain_group_{test.name}",
        label_visibility="collapsed",
        width=280,
    )
    if group is not None:
        found = found[grouping.ids[found] == group]
    if not len(found):
        st.caption(f"No picture is {kind.lower()} at this target.")
        return
    pages = -(-len(found) // pictures.SHOWN)
    with st.container(key="abstain_sheet"):
        place = st.empty()
    page = 1
    if pages > 1:
        page = min(st.pagination(pages, key=f"abstain_page_{kind}_{group}"), pages)
    shown = tuple(found[(page - 1) * pictures.SHOWN : page * pictures.SHOWN].tolist())
    told = {"kind": kind, "card": card}
    with place:
        show(
            pictures.contact_sheet(
                split,
                shown,
                captions=pictures.captions(test.pair, ranked, shown, **told),
                labels=pictures.labels(test.pair, ranked, shown, **told),
            )
        )
    st.caption(
        f"Captions: answer before / after, what it is, {reading.score} score. "
        f"{count(len(found))} pictures, {pictures.ORDER[kind]}."
    )
    with st.container(horizontal=True):
        _download(
            "This sheet (PNG)",
            lambda: pictures.sheet_png(split, shown),
            test.file_name("pictures.png"),
        )
        _download(
            "All pictures (CSV)",
            lambda: files.pictures_csv(test.pair, test.rankings, reading, card=card),
            test.file_name("pictures.csv"),
        )


def table_card(test: Tested) -> None:
    """Show the table as the paper prints it."""
    with st.container(key="card_abstain_table"):
        st.header("The paper's table", anchor=False)
        show(words.paper_table(test.rankings))
        st.caption(
            "Cov.: achieved coverage. Err.: share of wrong answers among those answered. SR: "
            "softmax response, the largest probability of one model. "
            f"n = {count(len(test.rankings.test['joint']))} test pictures."
        )
        _download(
            "Table (CSV)", lambda: files.table_csv(test.rankings), test.file_name("selective.csv")
        )


def _download(label: str, content: Callable[[], bytes], name: str) -> None:
    st.download_button(
        label,
        content,
        file_name=name,
        icon=":material/download:",
        on_click="ignore",
        type="tertiary",
        key=f"abstain_save_{label}",
    )
