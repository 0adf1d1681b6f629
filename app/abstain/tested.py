"""One test set of a finished run, ranked once by every score."""

from dataclasses import dataclass

import streamlit as st

from app.abstain.numbers import Interval, Rankings, area_intervals, rank
from app.opened import written
from masktune.cache import Cache
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.result import Pair

_RANKINGS = Cache(most=12)
_INTERVALS = Cache(most=32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One test set of a run.

    Attributes:
        split: the test set.
        rankings: every score.
    """

    split: OpenSplit
    rankings: Rankings

    @property
    def run(self) -> str:
        """The run's id."""
        return self.split.run.id

    @property
    def view(self) -> OpenRun:
        """The run."""
        return self.split.run

    @property
    def name(self) -> str:
        """The name of the test set."""
        return self.split.name

    @property
    def pair(self) -> Pair:
        """What both models say about it."""
        return self.split.pair

    def file_name(self, what: str) -> str:
        """Give the name of a download."""
        return f"{self.run}-{self.name}-{what}"


def tested(split: OpenSplit) -> Tested:
    """Rank the answers on one test set; done once for each."""
    validation, key = split.run.predictions.validation, (written(split.run.path), split.name)
    ranked = _RANKINGS.get(key, lambda: rank(validation, split.pair))
    return Tested(split=split, rankings=ranked)


def intervals_of(test: Tested) -> dict[str, Interval]:
    """Give the interval of every score's AURC; takes up to seconds, once."""
    seed, key = test.view.config.seed, (written(test.view.path), test.name)
    with st.spinner("Drawing 1,000 samples of every score"):
        return _INTERVALS.get(key, lambda: area_intervals(test.rankings.test, seed=seed))
