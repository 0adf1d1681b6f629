"""Loss and accuracy of the steps so far. Pure functions of what a run has recorded."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from masktune.files import csv_bytes
from masktune.show.theme import AFTER, BEFORE, WIDTH, empty, thinned, told
from masktune.show.wording import percent

Event = dict[str, Any]
"""A line of ``events.jsonl``: time, stage, step, total, loss, accuracy."""

HEIGHT = 250
"""Of a chart; what stands there before the first step is as high, so that nothing jumps."""

COLUMNS = ("stage", "step", "loss", "accuracy")


def newest_stage(events: Sequence[Event]) -> list[Event]:
    """Give the steps of the stage that came last; earlier rounds have their own losses."""
    return [event for event in events if event["stage"] == events[-1]["stage"]]


def loss_chart(steps: Sequence[Event]) -> go.Figure:
    """Show the loss of every batch, faint, and its running mean.

    Args:
        steps: of one stage, at least one.
    """
    figure, mean = _chart(steps, "loss", "%{y:.3f}")
    label = f"{mean[-1]:.2f}" if mean[-1] >= 0.1 else f"{mean[-1]:.3f}"
    _name_end(figure, steps, mean, label)
    highest = max(float(event["loss"]) for event in steps)
    figure.update_yaxes(range=[0, 1.08 * highest or 1.0], nticks=5)
    return told(figure, f"Loss over {_so_far(steps)}: {label} at the end of the running mean.")


def accuracy_chart(steps: Sequence[Event]) -> go.Figure:
    """Show the share of every batch answered right, faint, and its running mean.

    Args:
        steps: of one stage, at least one.
    """
    figure, mean = _chart(steps, "accuracy", "%{y:.1%}")
    _name_end(figure, steps, mean, f"{mean[-1]:.0%}")
    lowest = min(float(event["accuracy"]) for event in steps)
    floor = max(0.0, np.floor(20 * lowest) / 20 - 0.05)
    figure.update_yaxes(range=[floor, 1.015], tickformat=".0%", nticks=5)
    words = f"Accuracy over {_so_far(steps)}: {percent(mean[-1])} at the end of the running mean."
    return told(figure, words)


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


def running_mean(values: Sequence[float], window: int) -> npt.NDArray[np.float64]:
    """Average each value with those before it; shorter at the beginning.

    >>> running_mean([1.0, 3.0, 5.0, 7.0], 2).tolist()
    [1.0, 2.0, 4.0, 6.0]
    """
    sums = np.cumsum([0.0, *values])
    last = np.arange(1, len(values) + 1)
    first = np.maximum(last - window, 0)
    return np.asarray((sums[last] - sums[first]) / (last - first))


def _chart(
    steps: Sequence[Event], what: str, hover: str
) -> tuple[go.Figure, npt.NDArray[np.float64]]:
    values = [float(event[what]) for event in steps]
    at = np.array([int(event["step"]) for event in steps])
    total = int(steps[-1]["total"])
    mean = running_mean(values, max(4, total // 12))
    colour = BEFORE if steps[-1]["stage"] == "train" else AFTER
    figure = empty(height=HEIGHT)
    shown = thinned(len(steps))
    figure.add_scatter(
        x=at[shown],
        y=np.array(values)[shown],
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
    first = 0 if at[0] <= 1 else int(at[0])
    figure.update_xaxes(range=[first, total], title_text="step", showgrid=False)
    figure.update_layout(showlegend=False, margin_r=44)
    return figure, mean


def _name_end(
    figure: go.Figure, steps: Sequence[Event], mean: npt.NDArray[np.float64], text: str
) -> None:
    figure.add_annotation(
        x=int(steps[-1]["step"]),
        y=float(mean[-1]),
        text=text,
        xanchor="left",
        xshift=6,
        showarrow=False,
    )


def _so_far(steps: Sequence[Event]) -> str:
    last = steps[-1]
    return f"{last['step']:,} of {last['total']:,} steps of {last['stage']}"
