"""The whole training set on the Mask page: hidden area by k, mean heat by group, clues."""

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import streamlit as st
from markupsafe import Markup

from app import loaded as cached
from app.mask.sheet import Choice, group_numbers, names_of_groups
from masktune.files import csv_bytes
from masktune.heat.clues import Clue, find_clues, hidden_shares, mean_heat_of
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Hidden
from masktune.show.curves import empty_against_k, hidden_against_k
from masktune.show.markup import piece, sheet_html
from masktune.show.painting import CIVIDIS, Picture
from masktune.show.wording import count, percent

KS = tuple(round(0.1 * step, 1) for step in range(31))
TILE = 192


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


def area_figure(measured: Whole, k: float) -> go.Figure:
    """Draw the hidden area against k, by group."""
    return hidden_against_k(KS, measured.areas, k=k)


def empty_figure(measured: Whole, k: float) -> go.Figure:
    """Draw the share of pictures where nothing is hidden against k, by group."""
    return empty_against_k(KS, measured.areas, k=k)


def at_k(measured: Whole, k: float) -> Hidden:
    """Give what the nearest measured threshold hides over all groups together."""
    step = int(np.argmin([abs(k - known) for known in KS]))
    sizes = np.array(list(measured.sizes.values()), dtype=float)
    hidden = np.array([areas[step].hidden_fraction for areas in measured.areas.values()])
    empty = np.array([areas[step].empty_fraction for areas in measured.areas.values()])
    weights = sizes / sizes.sum()
    return Hidden(hidden_fraction=float(hidden @ weights), empty_fraction=float(empty @ weights))


def heat_tile(heat: npt.NDArray[np.float64]) -> Picture:
    """Draw a heat map without a picture under it."""
    colours = CIVIDIS[np.rint(np.clip(heat, 0, 1) * 255).astype(np.uint8)]
    return cv2.resize(colours, (TILE, TILE), interpolation=cv2.INTER_LINEAR).astype(np.uint8)


def means_html(measured: Whole) -> Markup:
    """Show the mean heat of every group, on one scale."""
    most = max(float(mean.max()) for mean in measured.means.values()) or 1.0
    tiles = [heat_tile(mean / most) for mean in measured.means.values()]
    captions = [
        piece("caption", strong=name, small=f"{count(size)} pictures")
        for name, size in measured.sizes.items()
    ]
    return sheet_html(
        tiles, captions, labels=[f"mean heat, {name}" for name in measured.means], across=4
    )


def clue_sentence(clue: Clue, groups: Mapping[str, int], total: int) -> str:
    """Say where the model looks in some pictures, and whose pictures they are."""
    size = len(clue.members)
    name, most = max(groups.items(), key=lambda item: item[1])
    where = f"at the {clue.place}" if clue.place != "centre" else "at the centre"
    firmly = "" if clue.focus >= 0.3 else ", but not only there"
    return (
        f"In {percent(size / total)} of the pictures it looks {where}{firmly} "
        f"({percent(clue.focus)} of the heat). {percent(most / size)} of them are {name}."
    )


def clues_html(measured: Whole) -> Markup:
    """Show each clue: its mean heat and a sentence."""
    total = sum(measured.sizes.values())
    tiles = [heat_tile(clue.heat / max(float(clue.heat.max()), 1e-9)) for clue in measured.clues]
    sentences = [
        clue_sentence(clue, groups, total)
        for clue, groups in zip(measured.clues, measured.clue_groups, strict=True)
    ]
    return sheet_html(tiles, sentences, labels=sentences, across=max(len(tiles), 4))


def areas_csv(measured: Whole) -> bytes:
    """Give hidden area and empty pictures by k and group as CSV, fractions in [0, 1]."""
    rows = (
        (name, measured.sizes[name], k, area.hidden_fraction, area.empty_fraction)
        for name, areas in measured.areas.items()
        for k, area in zip(KS, areas, strict=True)
    )
    return csv_bytes(("group", "n", "k", "hidden_fraction", "empty_fraction"), rows, end="\r\n")
