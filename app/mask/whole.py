"""The whole training set on the Mask page: hidden area by k, mean heat by group, clues."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st

from app import loaded as cached
from app.mask.sheet import Choice
from masktune.files import csv_bytes
from masktune.heat.clues import Clue, find_clues, hidden_shares, mean_heat_of
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Hidden
from masktune.show.clues import clue_sentence, group_numbers, names_of_groups
from masktune.show.curves import empty_against_k, hidden_against_k

KS = tuple(round(0.1 * step, 1) for step in range(31))


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What holds for the whole training set.

    Attributes:
        areas: by group name, what each of ``KS`` hides.
        means: by group name, mean heat (H, W) in [0, 1].
        sizes: by group name, training pictures.
        clues: where the model looks, the commonest place first.
        clue_groups: for each clue, how many of its pictures belong to each group.
    """

    areas: Mapping[str, list[Hidden]]
    means: Mapping[str, npt.NDArray[np.float64]]
    sizes: Mapping[str, int]
    clues: list[Clue]
    clue_groups: list[dict[str, int]]


@st.cache_resource(max_entries=4, show_spinner="Measuring the whole training set")
def whole(
    subject_key: tuple[object, ...], statistics: str, _choice: Choice, _store: HeatStore
) -> Whole:
    """Measure the heat of the whole training set; once for each model, layer and statistics."""
    del subject_key, statistics
    data = cached.bundle(_choice.subject)
    numbers = group_numbers(data.train, len(data.card.attributes)).numpy()
    names = names_of_groups(data, np.unique(numbers).tolist())
    shares = hidden_shares(_store, KS, statistics=_choice.statistics)
    clues = find_clues(_store)
    return Whole(
        areas={name: _areas(shares[:, numbers == n]) for n, name in names.items()},
        means={n: mean_heat_of(_store, np.flatnonzero(numbers == g)) for g, n in names.items()},
        sizes={name: int((numbers == n).sum()) for n, name in names.items()},
        clues=clues,
        clue_groups=[
            {name: int((numbers[clue.members] == n).sum()) for n, name in names.items()}
            for clue in clues
        ],
    )


def _areas(shares: npt.NDArray[np.float64]) -> list[Hidden]:
    return [
        Hidden(hidden_fraction=float(row.mean()), empty_fraction=float((row == 0).mean()))
        for row in shares
    ]


def area_figure(areas: Mapping[str, list[Hidden]], k: float) -> go.Figure:
    """Draw the hidden area against k, by group."""
    return hidden_against_k(KS, areas, k=k)


def empty_figure(areas: Mapping[str, list[Hidden]], k: float) -> go.Figure:
    """Draw the share of pictures where nothing is hidden against k, by group."""
    return empty_against_k(KS, areas, k=k)


def at_k(measured: Whole, k: float) -> Hidden:
    """Give what the nearest measured threshold hides over all groups together."""
    step = int(np.argmin([abs(k - known) for known in KS]))
    sizes = np.array(list(measured.sizes.values()), dtype=float)
    hidden = np.array([areas[step].hidden_fraction for areas in measured.areas.values()])
    empty = np.array([areas[step].empty_fraction for areas in measured.areas.values()])
    weights = sizes / sizes.sum()
    return Hidden(hidden_fraction=float(hidden @ weights), empty_fraction=float(empty @ weights))


def clue_sentences(measured: Whole) -> list[str]:
    """Say of each clue where the model looks, and whose pictures they are."""
    total = sum(measured.sizes.values())
    both = zip(measured.clues, measured.clue_groups, strict=True)
    return [clue_sentence(clue, groups, total) for clue, groups in both]


def areas_csv(measured: Whole) -> bytes:
    """Give hidden area and empty pictures by k and group as CSV, fractions in [0, 1]."""
    rows = (
        (name, measured.sizes[name], k, area.hidden_fraction, area.empty_fraction)
        for name, areas in measured.areas.items()
        for k, area in zip(KS, areas, strict=True)
    )
    return csv_bytes(("group", "n", "k", "hidden_fraction", "empty_fraction"), rows, end="\r\n")
