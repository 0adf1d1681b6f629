"""The numbers that the paper prints: ``paper.csv`` holds them table by table, in percent."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MEASURES = {
    "average": "accuracy",
    "worst_group": "worst-group accuracy",
    "error": "selective error",
    "coverage": "coverage",
}

_FILE = Path(__file__).with_name("paper.csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """Which number of an experiment.

    Attributes:
        arm: name of the experiment's arm.
        test: name of the test set.
        moment: "before" for the ERM model, "after" for the tuned one, "joint" for their product.
        measure: a key of ``MEASURES``.
        target: the coverage aimed at, of selective measures.
        rounds: how many rounds of masking; None for all of the arm's.
    """

    arm: str
    test: str
    moment: str
    measure: str
    target: float | None = None
    rounds: int | None = None

    @property
    def title(self) -> str:
        """Which number it is, in words."""
        if self.measure == "coverage" and self.target is not None:
            return f"coverage reached, of {self.target:.0%} aimed at"
        at = "" if self.target is None else f" at {self.target:.0%} coverage"
        after = "" if self.rounds is None else f" after round {self.rounds}"
        return f"{MEASURES[self.measure]}{at}{after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed(Number):
    """A number as the paper prints it, a fraction in [0, 1].

    Attributes:
        value: the number.
        std: over the paper's runs, None where it prints none.
        source: the table.
        tolerance: how far a repetition may be off, in absolute terms.
    """

    value: float
    std: float | None
    source: str
    tolerance: float


@cache
def printed(experiment: str) -> dict[Number, Printed]:
    """Return what the paper prints for an experiment; empty for those it does not have."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == experiment]
    return dict(map(_read, rows))


def _read(row: dict[str, str]) -> tuple[Number, Printed]:
    which: dict[str, Any] = {
        **{name: row[name] for name in ("arm", "test", "moment", "measure")},
        "target": _share(row["target"]),
        "rounds": int(row["rounds"]) if row["rounds"] else None,
    }
    return Number(**which), Printed(
        **which,
        value=float(row["value"]) / 100,
        std=_share(row["std"]),
        source=row["source"],
        tolerance=float(row["tolerance"]) / 100,
    )


def _share(percent: str) -> float | None:
    return float(percent) / 100 if percent else None
