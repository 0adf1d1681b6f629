"""The whole training set on the Mask page: hidden area by k, mean heat by group, clues."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import streamlit as st

from app import loaded as cached
from app.mask.sheet import Choice
from masktune.cache import Cache
from masktune.files import csv_bytes
from masktune.heat.clues import Clue, find_clues, hidden_shares, mean_heat_of
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Hidden
from masktune.show.clues import clue_sentence, group_numbers, names_of_groups

KS = tuple(round(0.1 * step, 1) for step in range(31))

_WHOLE = Cache(most=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What holds for the whole training set.

    Attributes:
        areas: by group name, what each of ``KS`` hides.
        means: by group name, mean heat (H, W) in [0, 1].
        sizes: by group name, training pictures.
        clues: where the model looks, the commonest place first.
        sentences: for each clue, where the model looks and whose pictures they are.
    """

    areas: Mapping[str, list[Hidden]]
    means: Mapping[str, npt.NDArray[np.float64]]
    sizes: Mapping[str, int]
    clues: list[Clue]
    sentences: list[str]


def whole(choice: Choice, store: HeatStore) -> Whole:
    """Measure the heat of the whole training set; once for each model, layer and statistics."""
    key = (cached.known(choice.subject), choice.method, choice.layer, choice.statistics)
    with st.spinner("Measuring the whole training set"):
        return _WHOLE.get(key, lambda: _measured(choice, store))


def _measured(choice: Choice, store: HeatStore) -> Whole:
    data = cached.bundle(choice.subject)
    numbers = group_numbers(data.train, len(data.card.attributes)).numpy()
    groups = {
        name: numbers == number
        for number, name in names_of_groups(data, np.unique(numbers).tolist()).items()
    }
    shares = hidden_shares(store, KS, statistics=choice.statistics)
    clues = find_clues(store)
    return Whole(
        areas={name: _areas(shares[:, inside]) for name, inside in groups.items()},
        means={name: mean_heat_of(store, np.flatnonzero(at)) for name, at in groups.items()},
        sizes={name: int(inside.sum()) for name, inside in groups.items()},
        clues=clues,
        sentences=[
            clue_sentence(
                clue,
                {name: int(inside[clue.members].sum()) for name, inside in groups.items()},
                len(numbers),
            )
            for clue in clues
        ],
    )


def _areas(shares: npt.NDArray[np.float64]) -> list[Hidden]:
    return [
        Hidden(hidden_fraction=float(row.mean()), empty_fraction=float((row == 0).mean()))
        for row in shares
    ]


def at_k(measured: Whole, k: float) -> Hidden:
    """Give what the nearest measured threshold hides over all groups together."""
    step = int(np.argmin([abs(k - known) for known in KS]))
    now = [areas[step] for areas in measured.areas.values()]
    sizes = list(measured.sizes.values())
    return Hidden(
        hidden_fraction=float(np.average([area.hidden_fraction for area in now], weights=sizes)),
        empty_fraction=float(np.average([area.empty_fraction for area in now], weights=sizes)),
    )


def areas_csv(measured: Whole) -> bytes:
    """Give hidden area and empty pictures by k and group as CSV, fractions in [0, 1]."""
    rows = (
        (name, measured.sizes[name], k, area.hidden_fraction, area.empty_fraction)
        for name, areas in measured.areas.items()
        for k, area in zip(KS, areas, strict=True)
    )
    return csv_bytes(("group", "n", "k", "hidden_fraction", "empty_fraction"), rows, end="\r\n")
