"""A number of a tournament over its seeds, and its difference from MaskTune's."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from masktune.scores.evidence import Direction, Interval, direction, student_interval
from masktune.show.tables import Cell
from masktune.show.wording import area, interval, percent
from masktune.studies.tables import interval as interval_of_shares

NOISE = "≈"
"""Marks what cannot be told apart from MaskTune."""

VALUES = ("mean", "std", "n", "low", "high", "difference from MaskTune", "within noise")
"""What a file gets of a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """How a number, its standard deviation and its interval read."""

    number: Callable[[float | None], str]
    spread: Callable[[float], str]
    interval: Callable[[Interval], str]


SHARE = Unit(number=percent, spread=lambda std: f"{100 * std:.1f}", interval=interval)
AREA = Unit(
    number=lambda value: percent(None) if value is None else area(value),
    spread=area,
    interval=lambda bounds: f"{area(bounds[0])} to {area(bounds[1])}",
)


def over_seeds(values: Sequence[float], *, of_one: Callable[[], Interval | None]) -> dict[str, Any]:
    """Sum up what the seeds gave, in [0, 1]; a single one has the interval of its pictures."""
    bounds = interval_of_shares(values)
    if len(values) == 1:
        found = of_one()
        bounds = None if found is None else list(found)
    return {
        "values": [*values],
        "mean": statistics.fmean(values) if values else None,
        "std": statistics.stdev(values) if len(values) > 1 else None,
        "n": len(values),
        "interval": bounds,
        "interval_over": "seeds" if len(values) > 1 else "pictures",
    }


def against(
    values: Sequence[float], *, of_one: Callable[[], tuple[Interval | None, Direction]]
) -> dict[str, Any] | None:
    """Sum up a method's number minus MaskTune's, seed by seed; None where no seed has both.

    ``of_one`` gives the interval and the direction that the pictures of a single seed tell.
    """
    if not values:
        return None
    bounds = student_interval(values)
    clear = direction(bounds)
    if len(values) == 1:
        found, clear = of_one()
        bounds = None if found is None else list(found)
    return {
        "difference": statistics.fmean(values),
        "interval": bounds,
        "direction": clear,
        "within_noise": clear == "unclear",
    }


def score_cell(
    score: Mapping[str, Any], *, unit: Unit = SHARE, further: str = "", size: str = ""
) -> Cell:
    """Return a cell with a number over seeds, its mark of noise, and its ``VALUES`` for a file.

    ``size`` says what stands behind it, unless n are seeds whatever the interval is over.
    """
    beside = score.get("against_masktune") or {}
    text = unit.number(score["mean"])
    if score["std"] is not None:
        text += f" ± {unit.spread(score['std'])}"
    if beside.get("within_noise"):
        text += f" {NOISE}"
    bounds = score["interval"]
    small = [unit.interval((bounds[0], bounds[1]))] if bounds else []
    noise = beside.get("within_noise")
    values = (
        *(score[name] for name in ("mean", "std", "n")),
        *(bounds or (None, None)),
        beside.get("difference"),
        None if noise is None else str(noise).lower(),
    )
    return Cell(
        text, ", ".join(filter(None, [*small, size or f"n = {score['n']}", further])), values
    )
