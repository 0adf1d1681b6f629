"""Figures of what happens along a run: steps, rounds, thresholds. See ``masktune.show.figures``."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from masktune.heat.strategies import Hidden
from masktune.progress import Progress
from masktune.show.theme import (
    BEFORE,
    DASHES,
    HIDDEN,
    SERIES,
    STYLES,
    WIDTH,
    dress,
    empty,
    legend_below,
    smoothed,
    told,
)
from masktune.show.wording import count, percent


def training_curves(steps: Sequence[Progress]) -> go.Figure:
    """Show loss and accuracy over the steps of training (dashed) and finetuning, smoothed.

    Args:
        steps: in the order they happened; those without a loss are left out.
    """
    learning = [step for step in steps if step.loss is not None]
    figure = dress(make_subplots(rows=1, cols=2, horizontal_spacing=0.12), height=280)
    start = 0
    for stage in dict.fromkeys(step.stage for step in learning):
        part = [step for step in learning if step.stage == stage]
        at = np.arange(len(part)) + start + 1
        start += len(part)
        measured = (("loss", [s.loss for s in part]), ("accuracy", [s.accuracy for s in part]))
        for column, (what, values) in enumerate(measured, start=1):
            if any(value is None for value in values):
                continue
            figure.add_scatter(
                x=at,
                y=smoothed(np.array(values, dtype=np.float64)),
                name=stage,
                mode="lines",
                line=STYLES["before" if stage == "train" else "after"],
                hovertemplate=f"{stage}, step %{{x}}: {what} %{{y:.3f}}<extra></extra>",
                showlegend=column == 1,
                row=1,
                col=column,
            )
    figure.update_xaxes(title_text="step", showgrid=False)
    figure.update_yaxes(title_text="loss", rangemode="tozero", col=1)
    figure.update_yaxes(title_text="accuracy", tickformat=".0%", col=2)
    legend_below(figure)
    last = f" The last loss is {learning[-1].loss:.3f}." if learning else ""
    return told(figure, f"Loss and accuracy over {count(len(learning))} steps.{last}")


def hidden_against_k(
    ks: Sequence[float], curves: Mapping[str, Sequence[Hidden]], *, k: float | None = None
) -> go.Figure:
    """Show how much is hidden at each threshold.

    Args:
        ks: thresholds in sigmas, ascending.
        curves: by group (or one for all), what is hidden at each of ``ks``.
        k: the threshold in use, marked.
    """
    shares = {name: [at.hidden_fraction for at in areas] for name, areas in curves.items()}
    return _against_k(ks, shares, k=k, what="pixels hidden", title="Hidden area against k")


def empty_against_k(
    ks: Sequence[float], curves: Mapping[str, Sequence[Hidden]], *, k: float | None = None
) -> go.Figure:
    """Show in how many pictures nothing is hidden at each threshold; arguments as above."""
    shares = {name: [at.empty_fraction for at in areas] for name, areas in curves.items()}
    title = "Pictures where nothing is hidden against k"
    return _against_k(ks, shares, k=k, what="pictures with nothing hidden", title=title)


def _against_k(
    ks: Sequence[float],
    shares: Mapping[str, Sequence[float]],
    *,
    k: float | None,
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
            hovertemplate=f"{escape(name)}: %{{y:.1%}} {what} at k = %{{x}}<extra></extra>",
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
    """Show accuracies before (hollow) and after each round.

    Args:
        series: by name, the accuracy in [0, 1] before, after round 1, after round 2, ...
    """
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


def _name_lines(figure: go.Figure) -> None:
    """Give several lines a key; one line needs no name."""
    if len(figure.data) > 1:
        legend_below(figure)
    else:
        figure.update_layout(showlegend=False)
