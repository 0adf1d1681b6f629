"""One test set of a finished run, ranked once by every score."""

from dataclasses import dataclass

import streamlit as st

from app.abstain.numbers import Interval, Rankings, area_intervals, rank
from masktune.runs.open import RunView
from masktune.scores.result import Pair


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
    del content, name  # only tell what was ranked
    return rank(_validation, _test)


@st.cache_data(max_entries=32, show_spinner="Drawing 1,000 samples of every score")
def _intervals(content: str, name: str, seed: int, _rankings: Rankings) -> dict[str, Interval]:
    del content, name
    return area_intervals(_rankings.test, seed=seed)


def tested(run: str, content: str, view: RunView, *, name: str) -> Tested:
    """Rank the answers on one test set; done once for each."""
    pair = view.predictions.tests[name]
    ranked = _rankings(content, name, view.predictions.validation, pair)
    return Tested(run=run, content=content, view=view, name=name, pair=pair, rankings=ranked)


def intervals_of(test: Tested) -> dict[str, Interval]:
    """Give the interval of every score's AURC; takes up to seconds, once."""
    return _intervals(test.content, test.name, test.view.config.seed, test.rankings)
