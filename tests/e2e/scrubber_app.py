"""A page with nothing but a scrubber on generated pictures; ``?sheet=`` says which."""

import time

import numpy as np
import streamlit as st
import torch

from app.shared.scrubber import AfterHiding, Column, Sheet, Way, encode, scrubber
from masktune.heat.keep import heat_statistics
from masktune.heat.xgradcam import stretch_, upsample

SHEETS = {
    "digits": (24, 28, 8),
    "photos": (6, 224, 7),
    "wall": (24, 224, 7),
    "ties": (6, 28, 28),
}
"""Pictures, their side, the side of their heat."""

RUDE = "<img src=x onerror=alert(1)>"


COARSER = (0, 1, -2, 6)
"""What is added to the side of the heat in each column: layers have maps of their own size."""


def make_sheet(name: str, statistics: str, *, keeps_hot: bool = False, columns: int = 1) -> Sheet:
    """Draw pictures with black parts and sparse heat; the last one has no heat at all."""
    count, side, coarse = SHEETS[name]
    draw = torch.Generator().manual_seed(7)
    pictures = torch.randint(0, 256, (count, side, side, 3), generator=draw, dtype=torch.uint8)
    pictures[:, : side // 2] = 0
    return Sheet(
        pictures=pictures.numpy(),
        columns=tuple(
            make_column(name, statistics, coarse + COARSER[c], draw, title=f"way {c + 1}")
            for c in range(columns)
        ),
        names=(RUDE, *(f"picture {n}" for n in range(2, count + 1))),
        groups=tuple(("cow on grass", "camel on sand", "cow on sand")[n % 3] for n in range(count)),
        labels=tuple(("cow", "camel", "cow")[n % 3] for n in range(count)),
        keeps_hot=keeps_hot,
    )


def make_column(
    name: str, statistics: str, coarse: int, draw: torch.Generator, *, title: str
) -> Column:
    count, side, _ = SHEETS[name]
    heat = torch.rand(count, coarse, coarse, generator=draw)
    # Half the pictures have no cold area, so that the stretch after upsampling shifts them.
    heat[::2] = (heat[::2] - 0.4).relu()
    # Heat of ties takes two values only, so that many pixels lie exactly at their mean.
    heat = (heat > 0.3).float() if name == "ties" else stretch_(heat)
    heat[-1] = 0
    mu, sigma = heat_statistics(upsample(heat, (side, side)), statistics=statistics)
    return Column(
        heat=heat.numpy(),
        mu=mu.numpy(),
        sigma=sigma.numpy(),
        answers=tuple(("cow", "camel")[n % 2] for n in range(count)),
        confidences=np.linspace(0.5, 0.9, count),
        title=title,
    )


def answer_after(k: float, count: int) -> list[AfterHiding]:
    """Say camel, with a confidence and an order of change that name k."""
    shift = round(10 * k)
    return [
        AfterHiding(answer="camel", confidence=k / 4, support=((5 * n + shift) % count) / count)
        for n in range(count)
    ]


def ways_of(sheet: Sheet, place: int) -> list[Way]:
    """Give the first column's heat of a picture as one explainer, and one that cannot explain."""
    column = sheet.columns[0]
    known = {"mu": float(column.mu[place]), "sigma": float(column.sigma[place])}
    return [
        Way(title="first", heat=column.heat[place], **known),
        Way(title="second", problem="It has no channels."),
    ]


def main() -> None:
    ask = st.query_params
    other = st.checkbox("Other pictures")
    name = "ties" if other else ask.get("sheet", "digits")
    columns = int(ask.get("columns", 1))
    statistics = ask.get("statistics", "positive")
    sheet = make_sheet(name, statistics, keeps_hot="cold" in ask, columns=columns)

    def after(k: float) -> list[list[AfterHiding]]:
        time.sleep(float(ask.get("slow", 0)))
        return [answer_after(k, len(sheet))] * columns

    def call_for_two() -> None:
        st.session_state.asked = 2.0

    state = None
    if not st.checkbox("Away"):
        state = scrubber(
            encode(sheet),
            k=st.session_state.get("asked", 1.5),
            after=None if "quiet" in ask else after,
            ways=lambda place: ways_of(sheet, place),
            key="scrub",
        )
    st.button("Set k to 2", on_click=call_for_two)
    st.button("Run again")
    st.session_state.runs = st.session_state.get("runs", 0) + 1
    st.text(f"run {st.session_state.runs}")
    if state is not None:
        told = f"k {state.k} view {state.view} selected {state.selected} column {state.column}"
        st.text(f"python has {told} order {state.order}")


if __name__ == "__main__":
    main()
