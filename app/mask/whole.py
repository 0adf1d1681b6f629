"""The whole training set on the Mask page: hidden area by k, mean heat by group, clues."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import streamlit as st

from app import loaded as cached
from app.mask.sheet import Choice
from masktune.cache import Cache
from masktune.files import csv_bytes
from masktune.heat.clues import hidden_areas, hidden_shares
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Hidden
from masktune.show.clues import Leaning, leaning

KS = tuple(round(0.1 * step, 1) for step in range(31))

_WHOLE = Cache(most=4)


class Whole(NamedTuple):
    """What holds for the whole training set: what each of ``KS`` hides by group, and clues."""

    areas: Mapping[str, list[Hidden]]
    leaning: Leaning


def whole(choice: Choice, store: HeatStore) -> Whole:
    """Measure the heat of the whole training set; once for each model, layer and statistics."""
    how = (choice.method, choice.layer, choice.statistics, choice.keeps_hot)
    key = (cached.known(choice.subject), *how)
    with st.spinner("Measuring the whole training set"):
        return _WHOLE.get(key, lambda: _measured(choice, store))


def _measured(choice: Choice, store: HeatStore) -> Whole:
    shares = hidden_shares(store, KS, statistics=choice.statistics, keeps_hot=choice.keeps_hot)
    found = leaning(cached.bundle(choice.subject), store)
    areas = {name: hidden_areas(shares[:, inside]) for name, inside in found.groups.items()}
    return Whole(areas, found)


def at_k(measured: Whole, k: float) -> Hidden:
    """Give what the nearest measured threshold hides over all groups together."""
    step = int(np.argmin([abs(k - known) for known in KS]))
    now = [areas[step] for areas in measured.areas.values()]
    sizes = list(measured.leaning.sizes.values())
    return Hidden(
        hidden_fraction=float(np.average([area.hidden_fraction for area in now], weights=sizes)),
        empty_fraction=float(np.average([area.empty_fraction for area in now], weights=sizes)),
    )


def areas_csv(measured: Whole) -> bytes:
    """Give hidden area and empty pictures by k and group as CSV, fractions in [0, 1]."""
    rows = (
        (name, measured.leaning.sizes[name], k, area.hidden_fraction, area.empty_fraction)
        for name, areas in measured.areas.items()
        for k, area in zip(KS, areas, strict=True)
    )
    return csv_bytes(("group", "n", "k", "hidden_fraction", "empty_fraction"), rows, end="\r\n")
