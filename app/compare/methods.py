"""Several runs on the same pictures: where each looks, whose answers differ, whom to trust."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app.kept import DRAWN
from app.opened import opened, written
from app.shared.pages import write_address_again
from app.shared.pieces import card, chart, download, pager
from app.shared.problems import explained_errors
from app.shared.run_picker import own_key
from app.shared.run_rows import run_labels
from app.shared.sheets import picture_links, say, show
from app.state import keep
from masktune.errors import MaskTuneError
from masktune.runs import jobs
from masktune.runs.open import OpenSplit
from masktune.scores.marks import Examples
from masktune.show.answers import answers_at
from masktune.show.contact_sheets import NO_MAPS, most_changed, photos, picture_tiles
from masktune.show.marks import of_two, pictures_csv
from masktune.show.markup import piece, rows_html, sheet_html
from masktune.show.methods import (
    between_table,
    heat_rows,
    methods_risk,
    only_right,
    risk_csv,
    risk_line,
)
from masktune.show.painting import png_bytes, sheet
from masktune.show.tables import csv, html

MOST = 4
"""Runs whose heat is shown together."""

ACROSS = 6
"""Pictures side by side."""


def show_methods(shown: jobs.Job, chosen: Sequence[jobs.Job], test: str) -> None:
    """Draw what the models after of a run and of those beside it do with the same pictures.

    Only when asked for: every run's predictions, pictures and model are read for it.
    """
    asked = st.toggle(
        "Set their answers and heat side by side",
        help="Where each model looks, how safe its surest answers are, and whose answers differ.",
        **keep("together"),
    )
    if not asked:
        return
    with explained_errors():
        methods = _open([shown, *chosen], test)
        if len(methods) < 2:
            return
        with st.grid(2, min_column_width=470):
            _draw_heat(methods)
            _draw_risk(methods)
        _draw_between(methods)


def _open(runs: Sequence[jobs.Job], test: str) -> dict[str, OpenSplit]:
    """Return a test set of runs that were asked about the same pictures, by their labels."""
    labels = run_labels(list(runs), dataset=False)
    found: dict[str, OpenSplit] = {}
    for job in runs:
        try:
            split = opened(job.id).tests[test]
        except (MaskTuneError, KeyError):
            continue  # gone, damaged, or not tested on it: the table above says so
        first = next(iter(found.values()), split)
        if split.pair.after.labels.tolist() == first.pair.after.labels.tolist():
            found[labels[job.id]] = split
    return found


def _id(test: OpenSplit) -> str:
    return jobs.look(test.run.path).id


def _key(methods: Mapping[str, OpenSplit]) -> tuple[object, ...]:
    return tuple((name, written(test.run.path), test.name) for name, test in methods.items())


@st.fragment
def _draw_heat(methods: Mapping[str, OpenSplit]) -> None:
    first, *_ = methods.values()
    few = dict(list(methods.items())[:MOST])
    hint = (
        "Heat of each model after for the answer it gives, on one scale. Pictures whose right "
        "class gained or lost most by this run come first, the groups in turn."
    )
    with card("compare_methods", "Where each method looks", hint=hint) as tools, explained_errors():
        positions = pager(
            most_changed(first.pair),
            ACROSS,
            key=own_key("compare_methods", first),
            name="compare_methods_page",
        )
        write_address_again("methods")
        key = ("methods", _key(few), *positions)
        with st.spinner("Looking where each model looks"):
            rows = DRAWN.get(key, lambda: heat_rows(few, positions))
        if len(rows) == 1:
            say(NO_MAPS, kind="muted")
            return
        answers = answers_at(first, positions)
        tiles = [tile for row in rows.values() for tile in row]
        download(
            "PNG",
            lambda: png_bytes(sheet(tiles, len(positions))),
            "where-each-looks.png",
            place=tools,
        )
        show(
            DRAWN.get(
                (*key, "html"),
                lambda: rows_html(
                    rows,
                    [answer.html() for answer in answers],
                    labels=[answer.words() for answer in answers],
                    photos=photos(first.run.bundle),
                    most=ACROSS,
                    links=picture_links(first.name, positions),
                ),
            )
            + piece("key", heat=True, words="captions: this run's answer before → after")
        )
        if len(methods) > MOST:
            say(f"The first {MOST} of {len(methods)} runs; take some away to see others.")


@st.fragment
def _draw_risk(methods: Mapping[str, OpenSplit]) -> None:
    hint = (
        "Each model answers what it is surest of first, by softmax response. MaskTune's joint "
        "score and a method's own score stand beside it: so one sees who answers and who chooses."
    )
    with card("compare_methods_risk", "Risk against coverage of each", hint=hint) as tools:
        download("CSV", lambda: risk_csv(methods), "risk-of-each.csv", place=tools)
        this, *others = methods
        runs = {this: "", **{name: _id(methods[name]) for name in others}}
        key = ("methods risk", _key(methods))
        figure = DRAWN.get(key, lambda: methods_risk(methods, runs=runs))
        chart(figure, key="methods_risk")
        at = st.session_state.coverage / 100
        line = DRAWN.get((*key, at), lambda: risk_line(methods, runs=runs, coverage=at))
        show(line)


@st.fragment
def _draw_between(methods: Mapping[str, OpenSplit]) -> None:
    (this, first), *others = methods.items()
    hint = "Pictures that one of two models after answers rightly and the other does not."
    with card("compare_between", "Answers of two runs", hint=hint) as tools, explained_errors():
        by_run = {_id(other) if n else "": (name, other) for n, (name, other) in enumerate(others)}
        chosen = st.selectbox(
            "Against",
            list(by_run),
            format_func=lambda run: by_run[run][0],
            **keep("compare_between", by_run),
        )
        against, other = by_run[chosen]
        table = between_table(first, other, (this, against), against=_id(other))
        download("CSV", lambda: csv(table), "answers-of-two.csv", place=tools)
        show(html(table))
        mine, theirs = only_right(first, other)
        left, right = st.columns(2)
        with left:
            st.markdown("**Only this run is right**")
            _draw_pictures(first, other, mine, name="compare_between_mine_page", only="this")
        with right:
            st.markdown("**Only the other is right**")
            _draw_pictures(first, other, theirs, name="compare_between_theirs_page", only="other")
        if mine or theirs:
            show(piece("key", heat=False, words="captions: the other run's answer → this run's"))
        write_address_again("between")


def _draw_pictures(
    test: OpenSplit, other: OpenSplit, found: Sequence[int], *, name: str, only: str
) -> None:
    if not found:
        say("No such picture.", kind="muted")
        return
    body = st.container()
    key = own_key(f"{name}_{other.run.id}", test)
    positions = pager(found, ACROSS, key=key, name=name)
    answers = answers_at(test, positions, other=other)
    with body:
        show(
            sheet_html(
                picture_tiles(test.split, positions),
                [answer.html(with_state=False) for answer in answers],
                labels=[answer.words() for answer in answers],
                across=ACROSS // 2,
                photos=photos(test.run.bundle),
                links=picture_links(test.name, positions),
            )
        )
    download(
        "Files and answers (CSV)",
        lambda: pictures_csv(
            of_two(Examples.of_pair(test.pair, test), other.pair.after),
            found,
            split=test.name,
            files=test.split.images.files,
        ),
        f"only-{only}-right.csv",
    )
