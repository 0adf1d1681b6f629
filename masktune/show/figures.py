"""Plotly figures: pure functions of result values, for the report and for the pages.

Before is hollow or dashed grey, after solid teal, joint thick ochre; shape and dash carry the
meaning, colour only helps. Marks have a middle tone that stands 3:1 off a light and a dark page;
text, axes and grid take their colours from the page. Titles belong to the page too. Each figure
says in words what it shows, in ``layout.meta``, for those who cannot see it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from textwrap import wrap
from types import MappingProxyType
from typing import NamedTuple

import plotly.graph_objects as go

from masktune.scores.flips import Change
from masktune.scores.groups import GroupScore, group_name, worst_group
from masktune.scores.marks import AnsweredMark, written
from masktune.scores.selective import DecileRisk, GroupCoverage, OperatingPoint, RiskCoverage
from masktune.show.theme import (
    AFTER,
    BEFORE,
    DASHES,
    SERIES,
    STYLES,
    WIDTH,
    empty,
    label_ends,
    label_rows,
    legend_below,
    right_column,
    thinned,
    told,
    whiskers,
)
from masktune.show.wording import (
    area,
    count,
    difference,
    interval,
    percent,
    points,
    points_interval,
    score_name,
    worst_mark,
)

RIM = 0.014
"""Half a dot on an axis from 0 to 1, so that nothing is drawn through a hollow dot."""


def dumbbell(
    before: Sequence[GroupScore], after: Sequence[GroupScore], *, marks: Sequence[str] = ()
) -> go.Figure:
    """Show the accuracy of every group before (hollow) and after (solid), with intervals.

    Both hold the same groups in order, at least one with examples. ``marks`` say where the pictures
    of each are, see ``masktune.scores.marks``.
    """
    figure = empty(height=64 * len(before) + 104)
    both = list(zip(before, after, strict=True))
    for scores, name, colour in ((before, "before", BEFORE), (after, "after", AFTER)):
        line = {"color": colour, "width": 5}
        _add_pieces(figure, _whiskers(scores), f"95% interval, {name}", line=line, opacity=0.7)
    line = {"color": AFTER, "width": 1.5}
    _add_pieces(figure, _connectors(both), "change", line=line, opacity=0.6)
    for scores, name, marker in (
        (before, "before", {"symbol": "circle-open", "color": BEFORE, "line": {"width": 2.5}}),
        (after, "after", {"symbol": "circle", "color": AFTER}),
    ):
        figure.add_scatter(
            x=[score.accuracy for score in scores],
            y=list(range(len(scores))),
            name=name,
            mode="markers",
            marker={"size": 13, **marker},
            text=[escape(_sentence(score, name)) for score in scores],
            customdata=list(marks) or None,
            hovertemplate="%{text}<extra></extra>",
        )
    figure.update_xaxes(range=[-0.02, 1.02], tickformat=".0%", dtick=0.25)
    low_before, low_after = worst_group(before), worst_group(after)
    labels = []
    for was, now in both:
        mark = worst_mark(before=was == low_before, after=now == low_after)
        size = f"n = {count(was.count)}"
        labels.append((group_name(was), was.label, f"{size}, {mark}" if mark else size))
    label_rows(figure, labels)
    changes = [points(difference(was.accuracy, now.accuracy)) for was, now in both]
    right_column(figure, "points", changes)
    legend_below(figure)
    words = [f"{_sentence(was, 'before')} {_sentence(now, 'after')}" for was, now in both]
    return told(figure, "Accuracy by group. " + " ".join(words))


Piece = tuple[int, float, float]
"""A part of a line in a row: where it starts and ends."""


def _add_pieces(figure: go.Figure, pieces: Iterable[Piece], name: str, **look: object) -> None:
    drawn = list(pieces)
    figure.add_scatter(
        x=[at for _, start, end in drawn for at in (start, end, None)],
        y=[at for row, _, _ in drawn for at in (row, row, None)],
        name=name,
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        **look,
    )


def _whiskers(scores: Sequence[GroupScore]) -> Iterator[Piece]:
    """Give the intervals, each in two pieces that end at the dot's rim."""
    for row, score in enumerate(scores):
        if score.accuracy is None or score.interval is None:
            continue
        low, high = score.interval
        for start, end in ((low, score.accuracy - RIM), (score.accuracy + RIM, high)):
            if start < end:
                yield row, start, end


def _connectors(both: Sequence[tuple[GroupScore, GroupScore]]) -> Iterator[Piece]:
    """Give the lines from the rim of each hollow dot to its solid one."""
    for row, (was, now) in enumerate(both):
        if was.accuracy is None or now.accuracy is None:
            continue
        way = now.accuracy - was.accuracy
        if abs(way) > RIM:
            yield row, was.accuracy + math.copysign(RIM, way), now.accuracy


def _sentence(score: GroupScore, moment: str) -> str:
    return (
        f"{group_name(score)} {moment}: {percent(score.accuracy)}, "
        f"95% interval {interval(score.interval)}, n = {count(score.count)}."
    )


def risk_coverage_curves(
    curves: Mapping[str, RiskCoverage],
    *,
    score: str = "joint",
    point: OperatingPoint | None = None,
    target: float | None = None,
    split: tuple[str, int] | None = None,
) -> go.Figure:
    """Show the share of wrong answers against the share of pictures answered, by score.

    A diamond marks the ``point`` of one ``score``, chosen for a ``target`` coverage. Points lead to
    the pictures answered where the name of their ``split`` and its size are given.
    """
    figure = empty(height=380)
    top = max(1.08 * max(float(curve.risk.max()) for curve in curves.values()), 0.01)
    for name, curve in curves.items():
        shown = thinned(len(curve.coverage))
        figure.add_scatter(
            x=curve.coverage[shown],
            y=curve.risk[shown],
            name=score_name(name),
            mode="lines",
            line=STYLES[name],
            customdata=split and _answered(name, curve.coverage[shown].tolist(), *split),
            hovertemplate=f"{score_name(name)}: %{{y:.1%}} wrong of the %{{x:.1%}} answered"
            "<extra></extra>",
        )
    label_ends(
        figure,
        {score_name(name): (1.0, float(curve.risk[0])) for name, curve in curves.items()},
        top=top,
        notes={score_name(name): f"AURC {area(curve.aurc)}" for name, curve in curves.items()},
    )
    if point is not None:
        marks = split and _answered(score, [point.coverage], *split)
        _mark_point(figure, point, score=score, target=target, marks=marks)
    _risk_axes(figure, top=top)
    words = [
        f"{score_name(name)}: {percent(float(curve.risk[0]))} when all are answered"
        for name, curve in curves.items()
    ]
    return told(figure, f"Risk against coverage. {'; '.join(words)}.")


def _answered(
    score: str, coverage: Iterable[float], split: str, total: int, run: str = ""
) -> list[str | None]:
    """Return the mark of what each coverage answers; none where that is no picture."""
    accepted = [round(share * total) for share in coverage]
    return [
        written(AnsweredMark(split, score, number, run=run)) if number else None
        for number in accepted
    ]


KEY = 36
"""Letters of a line in a key that may have long names."""

KEY_LINE, KEY_GAP = 16, 4
"""Pixels of a line in such a key, and between two of its entries."""

THIN = 1.25
"""Pixels of the line of another score of a method, beside ``WIDTH`` of its first."""


SCORES = {"after": "", "joint": "joint", "own": "own score"}
"""What the scores of a method are called in such a chart: the first has no name."""


def several_risk_coverage_curves(
    before: RiskCoverage | None,
    curves: Mapping[str, Mapping[str, RiskCoverage]],
    *,
    asked: Mapping[str, tuple[str, int, str]] = MappingProxyType({}),
) -> go.Figure:
    """Show the risk against the coverage of several methods, the model before dashed and grey.

    Args:
        before: of the model before, where all have the same.
        curves: of each method by its ``SCORES``. The first has a thick line, others have thin ones
            of the same colour and dash.
        asked: for points that lead to the pictures answered the name of the split, its size and the
            id of the run, none for the one on the page, by method; the first has ``before``.
    """
    own = next(iter(asked.values()), None)
    lines = [] if before is None else [("before", before, STYLES["before"], "before", own)]
    for number, (method, scores) in enumerate(curves.items()):
        for score, curve in scores.items():
            style = {
                "color": (AFTER, *SERIES)[number % (len(SERIES) + 1)],
                "width": THIN if SCORES[score] else WIDTH,
                "dash": DASHES[number % len(DASHES)],
            }
            name = ", ".join(filter(None, [method, SCORES[score]]))
            lines.append((name, curve, style, score, asked.get(method)))
    # In lines: a key does not break by itself, and a narrow window would cut it.
    keys = [wrap(f"{name} (AURC\xa0{area(curve.aurc)})", KEY) for name, curve, *_ in lines]
    column = sum(KEY_GAP + KEY_LINE * len(key) for key in keys)
    figure = empty(height=380 + column)
    top = max(1.08 * max(float(curve.risk.max()) for _, curve, *_ in lines), 0.01)
    for key, (name, curve, style, score, whose) in zip(keys, lines, strict=True):
        shown = thinned(len(curve.coverage))
        figure.add_scatter(
            x=curve.coverage[shown],
            y=curve.risk[shown],
            name="<br>".join(map(escape, key)),
            mode="lines",
            line=style,
            customdata=whose and _answered(score, curve.coverage[shown].tolist(), *whose),
            hovertemplate=f"{escape(name)}: %{{y:.1%}} wrong of the %{{x:.1%}} answered"
            "<extra></extra>",
        )
    _risk_axes(figure, top=top)
    legend_below(figure, column=column)
    words = [f"{name}: AURC {area(curve.aurc)}" for name, curve, *_ in lines]
    return told(figure, f"Risk against coverage of several methods. {'; '.join(words)}.")


def _risk_axes(figure: go.Figure, *, top: float) -> None:
    figure.update_xaxes(
        range=[0, 1.005],
        tickformat=".0%",
        showgrid=False,
        title_text="coverage: share of pictures that get an answer",
    )
    figure.update_yaxes(
        range=[0, top], tickformat=".0%", title_text="risk: share of answers that are wrong"
    )


def _mark_point(
    figure: go.Figure,
    point: OperatingPoint,
    *,
    score: str,
    target: float | None,
    marks: Sequence[str | None] | None,
) -> None:
    asked = "" if target is None else f"target {target:.0%}, "
    figure.add_vline(
        x=point.coverage,
        line={"color": BEFORE, "width": 1.5, "dash": "dot"},
        annotation={
            "text": f"{asked}achieved {point.coverage:.0%}",
            "xanchor": "right" if point.coverage > 0.5 else "left",
            "xshift": -8 if point.coverage > 0.5 else 8,
            "yanchor": "top",
        },
    )
    figure.add_scatter(
        x=[point.coverage],
        y=[point.risk],
        name="threshold",
        mode="markers",
        customdata=marks,
        marker={
            "symbol": "diamond",
            "size": 14,
            "color": STYLES[score]["color"],
            "line": {"color": "white", "width": 2},
        },
        hovertemplate=(
            f"{score_name(score)}: {percent(point.risk)} wrong of the {count(point.accepted)} "
            f"answered, gamma {point.gamma:.4f}<extra></extra>"
        ),
    )


def coverage_by_group(
    groups: Sequence[GroupCoverage],
    *,
    score: str = "joint",
    marks: Sequence[tuple[str, str]] = (),
) -> go.Figure:
    """Show the share of every group that gets an answer (solid) or is abstained from (hatched).

    The groups are those at one threshold of ``score``, whose colour they take. ``marks`` say where
    the pictures of each group are that are answered, and those that are not.
    """
    words = [
        f"{group_name(g)}: {count(g.accepted)} of {count(g.count)} answered, "
        f"{percent(g.risk)} wrong."
        for g in groups
    ]
    colour = STYLES[score]["color"]
    hatch = {"shape": "/", "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)", "size": 7}
    answered = [group.coverage for group in groups]
    held = [None if share is None else 1 - share for share in answered]
    figure = empty(height=48 * len(groups) + 104)
    for number, (shares, name, marker) in enumerate(
        (
            (answered, "answered", {"color": colour, "line": {"color": colour, "width": 1}}),
            (held, "abstained", {"pattern": hatch, "line": {"color": colour, "width": 1}}),
        )
    ):
        figure.add_bar(
            x=shares,
            customdata=[both[number] for both in marks] or None,
            y=list(range(len(groups))),
            name=name,
            orientation="h",
            width=0.45,
            marker=marker,
            text=[escape(text) for text in words],
            textposition="none",
            hovertemplate="%{text}<extra></extra>",
        )
    figure.update_layout(barmode="stack")
    figure.update_xaxes(range=[0, 1.005], tickformat=".0%", dtick=0.25)
    label_rows(figure, [(group_name(g), g.label, f"n = {count(g.count)}") for g in groups])
    right_column(figure, "answered", [percent(share) for share in answered])
    legend_below(figure)
    return told(figure, "Coverage by group. " + " ".join(words))


def risk_by_decile(
    deciles: Sequence[DecileRisk], *, score: str = "joint", marks: Sequence[str] = ()
) -> go.Figure:
    """Show how often answers are wrong by how sure a score is, the least sure tenth first.

    ``marks`` say where the pictures of each are.
    """
    words = [
        f"Decile {d.number}, score {d.lowest:.3g} to {d.highest:.3g}: {count(d.wrong)} of "
        f"{count(d.count)} wrong."
        for d in deciles
    ]
    risks = [d.wrong / d.count for d in deciles]
    figure = empty(height=260)
    figure.add_bar(
        x=[d.number for d in deciles],
        y=risks,
        name="wrong",
        marker={"color": STYLES[score]["color"]},
        text=[percent(risk) for risk in risks],
        textposition="outside",
        cliponaxis=False,
        hovertext=[escape(text) for text in words],
        customdata=list(marks) or None,
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure.update_xaxes(
        tickvals=[d.number for d in deciles],
        showgrid=False,
        title_text="deciles of the score: 1 is the least sure tenth, 10 the surest",
    )
    top = max(1.15 * max(risks), 0.01)
    figure.update_yaxes(range=[0, top], tickformat=".0%", title_text="share of answers wrong")
    return told(figure, f"Wrong answers by decile of the {score_name(score)}. " + " ".join(words))


class MethodScore(NamedTuple):
    """What a method came to: its name, a note, the mean over seeds and its 95 % interval."""

    name: str
    note: str
    mean: float | None
    interval: tuple[float, float] | None


def scores_by_method(scores: Sequence[MethodScore], *, what: str) -> go.Figure:
    """Show an accuracy of several methods, with its interval where there is one.

    ``what`` names the accuracy; a method without one has no mark.
    """
    words = [
        f"{one.name}: {percent(one.mean)}, 95% interval {interval(one.interval)}, {one.note}."
        for one in scores
    ]
    rows = [row for row, one in enumerate(scores) if one.mean is not None]
    known = [
        (one.mean, *(one.interval or (one.mean, one.mean)))
        for one in scores
        if one.mean is not None
    ]
    figure = empty(height=48 * len(scores) + 88)
    figure.add_scatter(
        x=[mean for mean, _, _ in known],
        y=rows,
        name=what,
        mode="markers",
        marker={"size": 11, "color": AFTER},
        error_x=whiskers(known, thickness=4),
        text=[escape(words[row]) for row in rows],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(range=[-0.02, 1.02], tickformat=".0%", dtick=0.25, title_text=what)
    label_rows(figure, [(one.name, one.name, one.note) for one in scores])
    right_column(figure, "mean", [percent(one.mean) for one in scores])
    return told(figure, f"{what[0].upper()}{what[1:]} by method. " + " ".join(words))


def change_by_class(changes: Sequence[Change], *, marks: Sequence[str] = ()) -> go.Figure:
    """Show how the accuracy on each class changed, with its interval; a dotted line is no change.

    A class without examples has no dot. ``marks`` say where the pictures of each class are.
    """
    words = [
        f"{c.label}: {points(c.change)} points, 95% interval {points_interval(c.interval)}, "
        f"n = {count(c.count)}."
        for c in changes
    ]
    known = [
        (c.change, *c.interval) for c in changes if c.change is not None and c.interval is not None
    ]
    rows = [row for row, c in enumerate(changes) if c.interval is not None]
    figure = empty(height=48 * len(changes) + 88)
    figure.add_scatter(
        x=[change for change, _, _ in known],
        y=rows,
        name="change",
        customdata=[marks[row] for row in rows] if marks else None,
        mode="markers",
        marker={"size": 11, "color": AFTER},
        error_x=whiskers(known, thickness=4),
        text=[escape(words[row]) for row in rows],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
    figure.add_vline(x=0, line={"color": BEFORE, "width": 1.5, "dash": "dot"})
    reach = 1.1 * max([0.02, *(abs(bound) for _, *bounds in known for bound in bounds)])
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0) if reach <= 4 * s)
    ticks = [step * number for number in range(-4, 5) if abs(step * number) <= reach]
    figure.update_xaxes(
        range=[-reach, reach],
        tickvals=ticks,
        ticktext=[points(tick).removesuffix(".0") for tick in ticks],
        title_text="change of accuracy, in points",
    )
    label_rows(figure, [(c.label, c.label, f"n = {count(c.count)}") for c in changes])
    right_column(figure, "points", [points(c.change) for c in changes])
    return told(figure, "Change of accuracy by class. " + " ".join(words))
