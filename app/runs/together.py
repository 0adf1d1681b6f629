"""Runs that were ticked, together: what differs, what each comes to, curves, means over seeds."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.kept import DRAWN
from app.opened import opened, written
from app.runs.seeds import seeds_table
from app.runs.table import settings_table
from app.shared.pieces import card, chart, download
from app.shared.problems import explained_errors, plain
from app.shared.run_rows import comparable, run_title
from app.shared.sheets import say, show
from app.state import keep
from masktune.errors import ConfigError, MaskTuneError
from masktune.files import csv_bytes
from masktune.runs import jobs
from masktune.runs.folder import RunFolder
from masktune.runs.jobs import Job
from masktune.runs.load import title_of
from masktune.show.curves import steps_together
from masktune.show.tables import Table, csv, html

if TYPE_CHECKING:
    from masktune.runs.open import OpenSplit

MOST = 12
"""Runs whose answers and steps are read."""

CURVES = {"loss": "Loss", "accuracy": "Training accuracy", "risk": "Risk against coverage"}


def draw(ticked: Sequence[Job]) -> None:
    """Draw the ticked runs together."""
    runs = names_of(ticked[:MOST])
    if len(ticked) > MOST:
        say(f"The first {MOST} of {len(ticked)} ticked runs; untick some to see others.")
    with st.grid(2, min_column_width=470):
        if len(runs) > 1:
            _draw_settings(runs)
        _draw_curves(runs)
    test = _test(runs)
    if test is None:
        return
    with explained_errors():
        _draw_paired(runs, test)
        if (table := seeds_table([*runs.values()], test)).rows:
            hint = (
                "Runs that differ in nothing but the seed: the mean, with Student's 95% interval "
                "over seeds."
            )
            with card("runs_seeds", "Over seeds", hint=hint, table=table):
                show(html(table))


def names_of(runs: Sequence[Job]) -> dict[str, Job]:
    """Return runs by names that tell them apart: with the seed or the pictures if those differ."""
    seeds = len({job.config.seed for job in runs}) > 1
    pictures = len({title_of(job.config) for job in runs}) > 1
    found: dict[str, Job] = {}
    for job in runs:
        parts = [run_title(job)]
        parts += [f"seed {job.config.seed}"] if seeds else []
        parts += [title_of(job.config)] if pictures else []
        name = ", ".join(parts)
        own = job.path.name.rsplit("-", 1)[-1]
        name = f"{name} ({own})" if name in found else name
        number = sum(known.partition(" #")[0] == name for known in found)
        found[f"{name} #{number + 1}" if number else name] = job
    return found


def _test(runs: Mapping[str, Job]) -> str | None:
    """Return the test set that is shown: the chosen one, or the first that all have."""
    tuned = [job for job in runs.values() if not job.config.only_before]
    have = [[*job.digest.tests] for job in tuned if job.digest is not None]
    if not have:
        return None
    chosen = st.session_state.runs_test
    if any(chosen in tests for tests in have):
        return str(chosen)
    common = [name for name in have[0] if all(name in tests for tests in have)]
    return common[0] if common else have[0][0]


def _draw_settings(runs: Mapping[str, Job]) -> None:
    table = settings_table(runs)
    hint = (
        "Where ticked runs that heed a setting differ in it. A dash: the run does not look at it."
    )
    with card("runs_settings", "Settings that differ", hint=hint, table=table):
        if table.rows:
            show(html(table))
        else:
            say("They have the same settings.", kind="muted")


def _draw_curves(runs: Mapping[str, Job]) -> None:
    hint = (
        "Loss and accuracy are those of the last stage of training, as running means over its "
        "steps. Risk against coverage is that of the answers on the test set, by softmax response; "
        "MaskTune's joint score stands beside it."
    )
    with card("runs_curves", "Curves", hint=hint) as tools, explained_errors():
        state = st.session_state
        if state.runs_curve not in CURVES:
            state.runs_curve = "loss"
        what = st.segmented_control(
            "Show",
            list(CURVES),
            format_func=CURVES.__getitem__,
            required=True,
            label_visibility="collapsed",
            **keep("runs_curve"),
        )
        if what == "risk":
            _draw_risk(runs, tools)
            return
        stamps = tuple((n, RunFolder(job.path).stamp("events.jsonl")) for n, job in runs.items())
        steps = DRAWN.get(("runs steps", stamps), lambda: _steps(runs))
        if not steps:
            say("None of them has recorded a step of training.", kind="muted")
            return
        download("CSV", lambda: steps_csv(steps), "runs-steps.csv", place=tools)
        shown: Literal["loss", "accuracy"] = "loss" if what == "loss" else "accuracy"
        chart(
            DRAWN.get(("runs curves", shown, stamps), lambda: steps_together(steps, shown)),
            key="runs_curves",
        )
        _say_left(runs, steps, "of which no step of training is recorded")


def _steps(runs: Mapping[str, Job]) -> dict[str, list[dict[str, object]]]:
    """Return the steps of each run's last stage of training; runs without any are left out."""
    found = {name: jobs.events(job.path) for name, job in runs.items()}
    return {
        name: [event for event in events if event["stage"] == events[-1]["stage"]]
        for name, events in found.items()
        if events
    }


def steps_csv(steps: Mapping[str, Sequence[Mapping[str, object]]]) -> bytes:
    """Return the steps of several runs as the content of a CSV file."""
    heads = ("stage", "step", "loss", "accuracy")
    rows = [
        [name, *(event[head] for head in heads)]
        for name, events in steps.items()
        for event in events
    ]
    return csv_bytes(("run", *heads), rows)  # type: ignore[arg-type]


def _open(runs: Mapping[str, Job], test: str) -> dict[str, "OpenSplit"]:
    """Return a test set of the runs that have it, by their names."""
    found = {}
    for name, job in runs.items():
        try:
            split = opened(job.id).tests[test]
            split.pair  # noqa: B018 (what cannot be read is left out here)
        except (MaskTuneError, KeyError):
            continue
        found[name] = split
    return found


def _results(runs: Mapping[str, Job]) -> list[Hashable]:
    """Return what tells the results of runs from those of others, or of another time."""
    return [(name, written(job.path)) for name, job in runs.items()]


def _answered(runs: Mapping[str, Job], test: str) -> dict[str, Job]:
    """Return the runs whose answers on a test set can be read; tried once for the same results."""
    names = DRAWN.get(("runs answered", test, *_results(runs)), lambda: [*_open(runs, test)])
    return {name: runs[name] for name in names}


def _draw_risk(runs: Mapping[str, Job], tools: DeltaGenerator) -> None:
    from masktune.show.methods import methods_risk, risk_csv, risk_line

    test = _test(runs)
    there = {} if test is None else _answered(runs, test)
    if test is None or not there:
        say("None of them is finished.", kind="muted")
        return
    download("CSV", lambda: risk_csv(_open(there, test)), "runs-risk.csv", place=tools)
    ids = {name: job.id for name, job in there.items()}
    key = ("runs risk", test, *_results(there))
    chart(DRAWN.get(key, lambda: methods_risk(_open(there, test), runs=ids)), key="runs_risk")
    at = st.session_state.coverage / 100
    drawn = (*key, "links", at)
    show(DRAWN.get(drawn, lambda: risk_line(_open(there, test), runs=ids, coverage=at)))
    _say_left(runs, there, "which have no answers on it")


def _say_left(runs: Mapping[str, Job], there: Collection[str], why: str) -> None:
    """Name the runs that a chart or a table leaves out."""
    if left := [name for name in runs if name not in there]:
        say(f"Not there: {', '.join(left)}, {why}.", kind="muted")


def show_clicked() -> None:
    """Open the pictures behind a point that was clicked, of its own run."""
    if not st.session_state.shown:
        return
    from app.shared.drawer import Source, of_run, show_drawer  # with PyTorch
    from masktune.scores.marks import read_mark

    def find(name: str) -> Source:
        run = getattr(read_mark(st.session_state.shown), "run", "")
        if jobs.find(run) is None:  # an address may name what is not here
            raise ConfigError(f"There is no run “{run}” here.", "Choose a point of a chart.")
        test = next(iter(opened(run).tests.values()))
        return replace(of_run(test)(name), linked=run == st.session_state.run)

    show_drawer(find)


def _draw_paired(runs: Mapping[str, Job], test: str) -> None:
    from masktune.show.methods import paired_table

    there = _answered(runs, test)
    hint = (
        "Accuracies of the model after on the test set. Differences are between answers to the "
        "same pictures, with paired 95% intervals (Newcombe); where the pictures are others there "
        "is no pair."
    )
    with card("runs_paired", f"On “{plain(test)}”", hint=hint) as tools:
        if not there:
            say("None of them was tested on it.", kind="muted")
            return
        names = {job.id: name for name, job in there.items()}
        state = st.session_state
        if state.runs_against not in names:
            state.runs_against = next(iter(names))
        if len(names) > 1:
            st.selectbox(
                "Against", list(names), format_func=names.__getitem__, **keep("runs_against")
            )
        against = names[state.runs_against]

        def table_of() -> Table:
            splits = _open(there, test)
            apart = apart_from(against, there, splits)
            return paired_table(splits, against=against, apart=apart)

        table = DRAWN.get(("runs paired", test, against, *_results(there)), table_of)
        download("CSV", lambda: csv(table), "runs-paired.csv", place=tools)
        show(html(table))
        _say_left(runs, there, "which have no answers on it")


def apart_from(
    against: str, runs: Mapping[str, Job], splits: Mapping[str, "OpenSplit"]
) -> frozenset[str]:
    """Name the runs whose test pictures are others than those of one run, or may be."""
    alike = {job.id for job in comparable(runs[against], [*runs.values()])}
    labels = splits[against].pair.after.labels.tolist()
    return frozenset(
        name
        for name, job in runs.items()
        if name != against
        and (job.id not in alike or splits[name].pair.after.labels.tolist() != labels)
    )
