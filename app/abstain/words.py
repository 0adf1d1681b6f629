"""The Abstain page's sentences and tables: pure functions of readings."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from app.abstain.numbers import (
    SAFE,
    SCORES,
    GroupReading,
    Interval,
    Rankings,
    Reading,
    widest_gap,
)
from masktune.files import Value
from masktune.scores.evidence import Difference
from masktune.scores.selective import TARGETS
from masktune.show.markup import piece
from masktune.show.tables import Cell, Column, Table, share_cell
from masktune.show.wording import area, count, interval, percent, points, selective_verdict

COLUMNS = {"before": "SR before", "after": "SR after", "joint": "Joint"}
"""The paper's columns in its order: softmax response of each model, then MaskTune's score."""

TITLES = {"joint": "Joint", "after": "After", "before": "Before"}
MISSED = 0.05
"""From here on a coverage that misses its target is explained."""

TIED = 0.01
"""From here on a coverage that ties keep from its target is explained."""


def gamma_words(gamma: float) -> str:
    """Write a threshold; scores crowd at 1, where four decimals would tell none apart.

    >>> gamma_words(0.1084), gamma_words(1 - 2e-7), gamma_words(3e-5), gamma_words(-math.inf)
    ('0.1084', '1 − 2.0e-07', '3.0e-05', 'none')
    >>> gamma_words(1.0), gamma_words(0.0)
    ('1', '0')
    """
    if not math.isfinite(gamma):
        return "none"
    if gamma in (0.0, 1.0):
        return f"{gamma:.0f}"
    if gamma > 0.9999:
        return f"1 − {1 - gamma:.1e}"
    return f"{gamma:.4f}" if gamma >= 0.001 else f"{gamma:.1e}"


def gamma_sentence(reading: Reading, validation: int) -> Markup:
    """Say what the threshold is and where it comes from."""
    if not math.isfinite(reading.point.gamma):
        return Markup("At 100% every picture gets an answer: <b>no gamma</b> is needed.")
    return Markup(
        "Answer when the score is above <b>gamma = {}</b>. Gamma comes from {} validation "
        "pictures, never from the test set, so coverage on test can miss the target."
    ).format(gamma_words(reading.point.gamma), count(validation))


def miss_sentence(reading: Reading, *, test: str) -> Markup:
    """Say why achieved coverage is far from its target; empty when it is not."""
    if reading.nearest is not None and reading.target - reading.on_validation > TIED:
        return Markup(
            "<b>Scores tie.</b> {} validation pictures have the same score as gamma and are held "
            "back together, so only {} of the validation pictures are answered. The nearest "
            "coverage that a threshold can reach there is {}."
        ).format(count(reading.tied), percent(reading.on_validation), percent(reading.nearest))
    if abs(reading.off_target) <= MISSED:
        return Markup("")
    how = ("lower", "fewer") if reading.off_target < 0 else ("higher", "more")
    return Markup(
        "<b>Far off target.</b> The same gamma answers {} of the validation pictures. Scores on "
        "“{}” are {}, so {} pictures get an answer: they are not like the ones that gamma was "
        "chosen on."
    ).format(percent(reading.on_validation), test, *how)


def coverage_metric(reading: Reading) -> Markup:
    """Return the achieved coverage with its distance from the target."""
    return piece(
        "metric",
        name="Achieved coverage",
        value=percent(reading.point.coverage),
        change=points(reading.off_target),
        beside="to target",
        note=f"{count(reading.point.accepted)} of {count(reading.total)} test pictures answered",
    )


def wrong_metric(reading: Reading, other: str, less: Difference) -> Markup:
    """Return the share of wrong answers, set against another score's at the same coverage."""
    if reading.point.risk is None:
        return piece(
            "metric", name="Wrong answers", value=percent(None), note="no picture is answered"
        )
    return piece(
        "metric",
        name="Wrong answers",
        value=percent(reading.point.risk),
        change=points(-less.value),
        # Fewer mistakes are good: the arrow follows the number, the colour what is clear.
        kind="same" if less.direction == "unclear" else less.direction,
        beside=f"against {other} at this coverage",
        note=f"{count(reading.wrong)} of {count(reading.point.accepted)} answers, "
        f"95% interval {interval(reading.interval)}",
    )


def verdict_html(rankings: Rankings) -> Markup:
    """Say which score is the safest; in the colour of harm when that is the model before."""
    safest = rankings.safety.safest
    kind = "unclear" if safest is None else "down" if safest == "before" else "up"
    text = selective_verdict(rankings.safety)
    return piece("paragraph", text=text, kind=f"verdict {kind}")


def scores_table(readings: Mapping[str, Reading], chosen: str) -> Table:
    """Show all scores at one target, the chosen one in bold."""
    return Table(
        name=f"At target {readings[chosen].target:.0%}",
        columns=[Column(title) for title in ("Score", "Answered", "Wrong", "Gamma")],
        rows=[
            (
                Cell(score, strong=score == chosen),
                Cell(
                    percent(reading.point.coverage),
                    f"{count(reading.point.accepted)} of {count(reading.total)}",
                ),
                _wrong(reading.point.risk, reading.interval),
                Cell(gamma_words(reading.point.gamma)),
            )
            for score, reading in ((score, readings[score]) for score in SCORES)
        ],
        caption=True,
    )


def _wrong(risk: float | None, bounds: Interval | None, *values: Value) -> Cell:
    small = interval(bounds) if bounds else "no answer"
    return Cell(percent(risk), small, (*values, risk, *(bounds or (None, None))))


def areas_table(rankings: Rankings, intervals: Mapping[str, Interval] | None) -> Table:
    """Show the areas under every curve, with intervals once they were asked for."""
    heads = ("Score", "AURC", "AUGRC", "e-AURC", f"Coverage at {SAFE:.0%} risk")
    rows = []
    for score in SCORES:
        curve = rankings.curves[score]
        bounds = " to ".join(map(area, intervals[score])) if intervals else ""
        cells = [Cell(area(curve.aurc), bounds), Cell(area(curve.augrc)), Cell(area(curve.e_aurc))]
        rows.append([Cell(score), *cells, Cell(percent(rankings.safe[score]))])
    return Table(
        name="Over all coverages", columns=[Column(head) for head in heads], rows=rows, caption=True
    )


def groups_table(groups: Sequence[GroupReading]) -> Table:
    """Show how often every group is answered, and how often wrongly."""
    return Table(
        name="Wrong answers by group",
        columns=(
            Column("Group", ("label", "attribute")),
            Column("Answered", ("n", "answered", "coverage")),
            Column("Wrong", ("wrong", "risk", "low", "high")),
        ),
        rows=[
            (
                Cell(group.name, values=(found.label, found.attribute)),
                Cell(
                    f"{count(found.accepted)} of {count(found.count)}",
                    values=(found.count, found.accepted, found.coverage),
                ),
                _wrong(found.risk, group.interval, group.wrong),
            )
            for group, found in ((group, group.coverage) for group in groups)
        ],
        caption=True,
    )


def gap_sentence(groups: Sequence[GroupReading]) -> str:
    """Say who is answered least and most, and whether that could be chance; plain text."""
    key = "Solid: answered. Hatched: held back."
    found = widest_gap(groups)
    if found is None:
        return key
    least, most = found.least, found.most
    told = (
        f"{key} Answered least: {least.name} ({percent(least.coverage.coverage)}); most: "
        f"{most.name} ({percent(most.coverage.coverage)})."
    )
    if found.within_chance:
        return f"{told} The gap of {_size(found.size)} points is within chance."
    return (
        f"{told} The gap of {_size(found.size)} points means that holding back is not shared "
        "fairly."
    )


def _size(gap: float) -> str:
    return points(gap).removeprefix("+")


def paper_table(rankings: Rankings) -> Table:
    """Show the table as the paper prints it: Cov. and Err. of every score at each target."""
    found = rankings.table()
    return Table(
        name="Error at each target coverage",
        columns=(
            Column("Target coverage", ("target",)),
            *(
                Column(what, (f"{name} {what}",))
                for name in COLUMNS.values()
                for what in ("Cov.", "Err.")
            ),
        ),
        rows=[
            (
                Cell(f"{target:.0%}", values=(target,)),
                *(
                    share_cell(share)
                    for score in COLUMNS
                    for share in (found[score][place].coverage, found[score][place].error)
                ),
            )
            for place, target in enumerate(TARGETS)
        ],
        spans=[(name, 2) for name in COLUMNS.values()],
    )
