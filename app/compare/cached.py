"""Bounded caches of the Compare page: no model is asked about the same pictures twice."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app import loaded as cached
from app.compare.outcome import UNREADABLE, Outcome, outcomes, unreadable
from masktune.errors import MaskTuneError
from masktune.runs.jobs import runs_home
from masktune.scores.evidence import Evidence, weigh
from masktune.scores.result import RunPredictions
from masktune.show.contact_sheets import Looks, looks


def stamp(run: str) -> float:
    """Give the time a run's result was written, which tells two runs of one name apart."""
    result = runs_home() / run / "result.json"
    return result.stat().st_mtime if result.is_file() else 0.0


@st.cache_resource(max_entries=6, show_spinner="Scoring the run")
def _outcomes(run: str, finished: float) -> Mapping[str, Outcome]:
    del finished
    try:
        return outcomes(cached.run(run), run)
    except MaskTuneError:
        raise
    except UNREADABLE as error:
        raise unreadable(run, error) from error


def outcomes_of(run: str) -> Mapping[str, Outcome]:
    """Give a finished run on each of its test sets."""
    return _outcomes(run, stamp(run))


@st.cache_resource(max_entries=64, show_spinner=False)
def _evidence(one: str, other: str, test: str, finished: tuple[float, float]) -> Evidence | None:
    del finished
    files = (runs_home() / run / "predictions.npz" for run in (one, other))
    try:
        return weigh(*(RunPredictions.read(file).tests[test].after for file in files))
    except (MaskTuneError, *UNREADABLE):
        return None  # gone, damaged, or asked about other pictures: no evidence either way


def evidence_of(one: str, other: str, test: str) -> Evidence | None:
    """Weigh the tuned models of two runs on the same pictures; None where that cannot be."""
    return _evidence(one, other, test, (stamp(one), stamp(other)))


# A photograph with both heats takes about 1 MB; with at most 24 of them this holds 400 MB.
@st.cache_resource(max_entries=16, show_spinner="Looking where both models look")
def _looks(run: str, finished: float, test: str, positions: tuple[int, ...]) -> Looks:
    del finished
    outcome = outcomes_of(run)[test]
    return looks(outcome.view, outcome.test.split, positions)


def looks_of(outcome: Outcome, positions: Sequence[int]) -> Looks:
    """Give where both models look in some pictures of a test set."""
    return _looks(outcome.run, stamp(outcome.run), outcome.test.name, tuple(positions))
