"""Loss and accuracy of the steps so far. Pure functions of what a run has recorded."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from masktune.files import csv_bytes
from masktune.show.curves import running_mean
from masktune.show.theme import AFTER, BEFORE, WIDTH, empty, thinned, told
from masktune.show.wording import percent

Event = dict[str, Any]
"""A line of ``events.jsonl``: time, stage, step, total, loss, accuracy."""

HEIGHT = 250
"""Of a chart; what stands there before the first step is as high, so that nothing jumps."""

FEW = 8
"""Steps, at most, whose axis would be marked at halves too."""

COLUMNS = ("stage", "step", "loss", "accuracy")


def newest_stage(events: Sequence[Event]) -> list[Event]:
    """Give the steps of the stage that came last; earlier rounds have their own losses."""
    return [event for event in events if event["stage"] == events[-1]["stage"]]


def steps_chart(steps: Sequence[Event], what: Literal["loss", "accuracy"]) -> go.Figure:
    """Show the loss of every batch, or the share of it answered right, faint; and a running mean.

    Args:
        steps: of one stage, at least one.
        what: to show.
    """
    at = np.array([int(event["step"]) for event in steps])
    values = np.array([float(event[what]) for event in steps])
    stage, total = steps[-1]["stage"], int(steps[-1]["total"])
    mean = running_mean(values, max(4, total // 12))
    end = float(mean[-1])
    if what == "loss":
        hover, label = "%{y:.3f}", loss_words(end)
        words, bounds = label, (0.0, 1.08 * values.max() or 1.0)
    else:
        hover, label, words = "%{y:.1%}", f"{end:.0%}", percent(end)
        floor = max(0.0, np.floor(20 * values.min()) / 20 - 0.05)
        bounds = (floor, 1.015)
    colour = BEFORE if stage == "train" else AFTER
    shown = thinned(len(steps))
    figure = empty(height=HEIGHT)
    figure.add_scatter(
        x=at[shown],
        y=values[shown],
        mode="lines",
        line={"color": colour, "width": 1},
        opacity=0.4,
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=at[shown],
        y=mean[shown],
        # One step has no line yet, but it can be seen.
        mode="lines" if len(shown) > 1 else "markers",
        line={"color": colour, "width": WIDTH},
        marker={"color": colour, "size": 7},
        hovertemplate=f"step %{{x}} of {total}: mean {what} {hover}<extra></extra>",
    )
    figure.add_annotation(
        x=int(at[-1]), y=end, text=label, xanchor="left", xshift=6, showarrow=False
    )
    first = 0 if at[0] <= 1 else int(at[0])
    figure.update_xaxes(range=[first, total], title_text="step", showgrid=False)
    if total <= FEW:
        figure.update_xaxes(dtick=1)
    figure.update_yaxes(range=bounds, nticks=5, tickformat=".0%" if what == "accuracy" else None)
    figure.update_layout(showlegend=False, margin_r=44)
    return told(
        figure,
        f"{what.capitalize()} over {at[-1]:,} of {total:,} steps of {stage}: {words} at the end of "
        "the running mean.",
    )


def loss_words(loss: float) -> str:
    """Write a loss short enough to stand beside its line.

    >>> [loss_words(loss) for loss in (0.012, 1.5, 2.28e27, float("inf"))]
    ['0.012', '1.50', '2.3e27', 'inf']
    """
    if 10_000 <= loss < float("inf"):
        return f"{loss:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{loss:.2f}" if loss >= 0.1 else f"{loss:.3f}"


def speed(steps: Sequence[Event], *, over: int = 30) -> float | None:
    """Give the steps a second over the last ones of a stage; None before it can be told."""
    last = steps[-over:]
    if len(last) < 2 or last[-1]["time"] <= last[0]["time"]:
        return None
    return (len(last) - 1) / float(last[-1]["time"] - last[0]["time"])


def steps_csv(events: Sequence[Event]) -> bytes:
    """Give all steps as the content of a CSV file."""
    rows = ([event[name] for name in COLUMNS] for event in events)
    return csv_bytes(COLUMNS, rows, end="\r\n")
