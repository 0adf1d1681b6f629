"""Figures of what happens along a run: steps, rounds, thresholds. See ``masktune.show.figures``."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from masktune.heat.strategies import Hidden
from masktune.show.theme import (
    AFTER,
    BEFORE,
    DASHES,
    HIDDEN,
    SERIES,
    WIDTH,
    empty,
    legend_below,
    thinned,
    told,
)
from masktune.show.wording import percent


def hidden_against_k(
    ks: Sequence[float],
    curves: Mapping[str, Sequence[Hidden]],
    *,
    k: float | None = None,
    takes: bool = False,
) -> go.Figure:
    """Show how much of each group is hidden at each of ``ks``, ascending; ``k`` is marked.

    On a page that ``takes`` a k from a click, each point has its own.
    """
    shares = {name: [at.hidden_fraction for at in areas] for name, areas in curves.items()}
    title = "Hidden area against k"
    return _against_k(ks, shares, k=k, takes=takes, what="pixels hidden", title=title)


def empty_against_k(
    ks: Sequence[float],
    curves: Mapping[str, Sequence[Hidden]],
    *,
    k: float | None = None,
    takes: bool = False,
) -> go.Figure:
    """Show in how many pictures nothing is hidden at each threshold, likewise."""
    shares = {name: [at.empty_fraction for at in areas] for name, areas in curves.items()}
    title = "Pictures where nothing is hidden against k"
    what = "pictures with nothing hidden"
    return _against_k(ks, shares, k=k, takes=takes, what=what, title=title)


def _against_k(
    ks: Sequence[float],
    shares: Mapping[str, Sequence[float]],
    *,
    k: float | None,
    takes: bool,
    what: str,
    title: str,
) -> go.Figure:
    # At least 5 %: of a lower axis several ticks would read the same whole percent.
    top = max(1.08 * max(max(values) for values in shares.values()), 0.05)
    figure = empty(height=300)
    for number, (name, values) in enumerate(shares.items()):
        colour = HIDDEN if len(shares) == 1 else SERIES[number % len(SERIES)]
        # Shifted by one each time the colours start again, so that no two lines are alike.
        dash = DASHES[(number + number // len(SERIES)) % len(DASHES)]
        figure.add_scatter(
            x=list(ks),
            y=list(values),
            name=escape(name),
            mode="lines",
            line={"color": colour, "width": WIDTH, "dash": dash},
            customdata=list(ks) if takes else None,
            hovertemplate=f"{escape(name)}: %{{y:.1%}} {what} at k = %{{x}}"
            f"{'; click to take it' if takes else ''}<extra></extra>",
        )
    if k is not None:
        figure.add_vline(x=k, line={"color": BEFORE, "width": 1.5, "dash": "dot"})
    figure.update_xaxes(title_text="k: sigmas above the mean heat", showgrid=False)
    figure.update_yaxes(range=[0, top], tickformat=".0%", title_text=what)
    _name_lines(figure)
    words = [
        f"{name}: {percent(values[0])} at k = {ks[0]}, {percent(values[-1])} at k = {ks[-1]}"
        for name, values in shares.items()
    ]
    return told(figure, f"{title}. {'; '.join(words)}.")


def accuracy_by_round(series: Mapping[str, Sequence[float | None]]) -> go.Figure:
    """Show accuracies in [0, 1], by name: before (hollow), after round 1, after round 2, ..."""
    longest = max(len(values) for values in series.values())
    figure = empty(height=300)
    for number, (name, values) in enumerate(series.items()):
        figure.add_scatter(
            x=list(range(len(values))),
            y=list(values),
            name=escape(name),
            mode="lines+markers",
            line={
                "color": SERIES[number % len(SERIES)],
                "width": WIDTH,
                "dash": DASHES[number % len(DASHES)],
            },
            marker={"size": 10, "symbol": ["circle-open"] + ["circle"] * (len(values) - 1)},
            hovertemplate=f"{escape(name)}: %{{y:.1%}}<extra></extra>",
        )
    names = ["before", *(f"round {number}" for number in range(1, longest))]
    figure.update_xaxes(
        tickvals=list(range(longest)),
        ticktext=names,
        range=[-0.2, longest - 0.9],
        showgrid=False,
    )
    figure.update_yaxes(range=[0, 1.04], tickformat=".0%", title_text="accuracy")
    _name_lines(figure)
    words = [f"{name}: {', '.join(percent(v) for v in values)}" for name, values in series.items()]
    return told(figure, f"Accuracy by round. {'; '.join(words)}.")


def running_mean(
    values: Sequence[float] | npt.NDArray[np.float64], window: int
) -> npt.NDArray[np.float64]:
    """Average each value with those before it; shorter at the beginning.

    >>> running_mean([1.0, 3.0, 5.0, 7.0], 2).tolist()
    [1.0, 2.0, 4.0, 6.0]
    """
    sums = np.convolve(values, np.ones(window))[: len(values)]
    return sums / np.minimum(np.arange(1, len(values) + 1), window)


def steps_together(
    runs: Mapping[str, Sequence[Mapping[str, Any]]], what: Literal["loss", "accuracy"]
) -> go.Figure:
    """Show the running mean of the loss, or of the share answered right, of several runs.

    Args:
        runs: steps of one stage as ``events.jsonl`` has them, by the name of the run; at least one.
        what: to show.
    """
    figure, top, words = empty(height=420), 0.0, []
    for number, (name, steps) in enumerate(runs.items()):
        at = np.array([int(step["step"]) for step in steps])
        mean = running_mean([float(step[what]) for step in steps], max(4, len(steps) // 12))
        shown, top = thinned(len(steps)), max(top, float(mean.max()))
        end = percent(float(mean[-1])) if what == "accuracy" else f"{mean[-1]:.3f}"
        words.append(f"{name}: {end} after {at[-1]:,} steps")
        figure.add_scatter(
            x=at[shown],
            y=mean[shown],
            name=f"{escape(name)} ({end})",
            mode="lines" if len(steps) > 1 else "markers",
            line={
                "color": (AFTER, *SERIES)[number % (len(SERIES) + 1)],
                "width": WIDTH,
                "dash": DASHES[number % len(DASHES)],
            },
            hovertemplate=f"{escape(name)}, step %{{x}}: mean {what} "
            f"{'%{y:.1%}' if what == 'accuracy' else '%{y:.3f}'}<extra></extra>",
        )
    figure.update_xaxes(title_text="step", showgrid=False)
    if what == "accuracy":
        figure.update_yaxes(range=[0, 1.02], tickformat=".0%", title_text="accuracy of the batches")
    else:
        figure.update_yaxes(range=[0, 1.08 * top or 1.0], title_text="loss, running mean")
    legend_below(figure)
    return told(figure, f"{what.capitalize()} by step of several runs. {'; '.join(words)}.")


def _name_lines(figure: go.Figure) -> None:
    """Give several lines a key; one line needs no name."""
    if len(figure.data) > 1:
        legend_below(figure)
    else:
        figure.update_layout(showlegend=False)
