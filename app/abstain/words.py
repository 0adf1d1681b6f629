"""The Abstain page's sentences and tables: pure functions of readings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from app.abstain.numbers import Interval, Reading, scores_of
from masktune.files import Value
from masktune.runs.open import OpenSplit
from masktune.scores.evidence import Difference, Safety, direction, unpaired_interval
from masktune.scores.groups import group_name, wilson
from masktune.scores.marks import AbstainedMark, AnsweredMark, Mark, WrongMark, all_of
from masktune.scores.result import VALIDATION
from masktune.scores.selective import (
    TARGETS,
    DecileRisk,
    GroupCoverage,
    OperatingPoint,
    SelectiveRow,
    coverage_at_risk,
)
from masktune.show.abstained import Rankings, area_cells
from masktune.show.marks import linked_cell, mark_link
from masktune.show.markup import piece
from masktune.show.tables import Cell, Column, Table, share_cell
from masktune.show.wording import (
    area,
    count,
    interval,
    percent,
    points,
    score_name,
    selective_verdict,
)

COLUMNS = {"before": "SR before", "after": "SR after", "joint": "Joint", "own": "Its own score"}
"""The paper's columns in its order: softmax response of each model, then MaskTune's score; and that
of a rival which has one."""

SAFE = 0.05
"""Share of wrong answers that the table of areas asks the largest coverage for."""

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
    >>> gamma_words(-0.25), gamma_words(-4.8e-4), gamma_words(-3e-5)  # of a score that is a cost
    ('−0.2500', '−0.00048', '−3.0e-05')
    """
    if not math.isfinite(gamma):
        return "none"
    if gamma < 0:
        few = ".2g" if gamma <= -1e-4 else ".1e"
        return f"−{-gamma:.4f}" if gamma <= -0.001 else f"−{-gamma:{few}}"
    if gamma in (0.0, 1.0):
        return f"{gamma:.0f}"
    if gamma > 0.9999:
        return f"1 − {1 - gamma:.1e}"
    return f"{gamma:.4f}" if gamma >= 0.001 else f"{gamma:.1e}"


def gamma_sentence(reading: Reading, validation: int) -> Markup:
    """Say what the threshold is and where it comes from; the number leads to those pictures."""
    if not math.isfinite(reading.point.gamma):
        return Markup("At 100% every picture gets an answer: <b>no gamma</b> is needed.")
    return Markup(
        "Answer when the score is above <b>gamma = {}</b>. Gamma comes from {} validation "
        "pictures, never from the test set, so coverage on test can miss the target."
    ).format(
        gamma_words(reading.point.gamma),
        linked_cell(all_of(VALIDATION, validation), validation).text,
    )


def miss_sentence(reading: Reading, *, test: str) -> Markup:
    """Say why achieved coverage is far from its target; empty when it is not."""
    if reading.nearest is not None and reading.target - reading.on_validation > TIED:
        return Markup(
            "<b>Scores tie.</b> {} validation pictures have the same score as gamma and get "
            "no answer together, so only {} of the validation pictures are answered. The nearest "
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


def coverage_metric(reading: Reading, *, split: str) -> Markup:
    """Return the achieved coverage with its distance from the target."""
    answered = _linked(AnsweredMark(split, reading.score, reading.point.accepted), reading.point)
    return piece(
        "metric",
        name="Achieved coverage",
        value=percent(reading.point.coverage),
        change=points(reading.off_target),
        beside="to target",
        note=Markup("{} of {} test pictures answered").format(answered, count(reading.total)),
    )


def wrong_metric(reading: Reading, other: str, less: Difference, *, split: str) -> Markup:
    """Return the share of wrong answers, set against another score's at the same coverage."""
    if reading.point.risk is None:
        return piece(
            "metric", name="Wrong answers", value=percent(None), note="no picture is answered"
        )
    wrong = WrongMark(split, reading.score, reading.point.accepted)
    return piece(
        "metric",
        name="Wrong answers",
        value=percent(reading.point.risk),
        change=points(-less.value),
        # Fewer mistakes are good: the arrow follows the number, the colour what is clear.
        kind=less.direction,
        beside=f"against {other} at this coverage",
        note=Markup("{} of {} answers, 95% interval {}").format(
            linked_cell(wrong, reading.wrong).text,
            count(reading.point.accepted),
            interval(reading.interval),
        ),
    )


def verdict_html(safety: Safety) -> Markup:
    """Say which score is the safest; in the colour of harm when that is the model before."""
    kind = "unclear" if safety.safest is None else "down" if safety.safest == "before" else "up"
    return piece("paragraph", text=selective_verdict(safety), kind=f"verdict {kind}")


def scores_table(readings: Mapping[str, Reading], chosen: str, *, split: str) -> Table:
    """Show all scores at one target, the chosen one in bold; counts lead to their pictures."""
    return Table(
        name=f"At target {readings[chosen].target:.0%}",
        columns=[Column(title) for title in ("Score", "Answered", "Wrong", "Gamma")],
        rows=[
            (
                Cell(score_name(score), strong=score == chosen),
                Cell(
                    percent(reading.point.coverage),
                    Markup("{} of {}").format(
                        _linked(AnsweredMark(split, score, reading.point.accepted), reading.point),
                        count(reading.total),
                    ),
                ),
                _linked_wrong(
                    _wrong(reading.point.risk, reading.interval),
                    WrongMark(split, score, reading.point.accepted),
                    f"{count(reading.wrong)} wrong by the {score} score" if reading.wrong else "",
                ),
                Cell(gamma_words(reading.point.gamma)),
            )
            for score, reading in readings.items()
        ],
        caption=True,
    )


def _linked(mark: Mark, of: OperatingPoint | GroupCoverage) -> str:
    """Write how many are answered, as a link where there are any."""
    return mark_link(mark, count(of.accepted)) if of.accepted else "0"


def _wrong(risk: float | None, bounds: Interval | None, *values: Value) -> Cell:
    small = interval(bounds) if bounds else "no answer"
    return Cell(percent(risk), small, (*values, risk, *(bounds or (None, None))))


def _wrong_of(group: GroupCoverage, answered: AnsweredMark) -> Cell:
    wrong = round((group.risk or 0.0) * group.accepted)
    bounds = wilson(wrong, group.accepted) if group.accepted else None
    mark = WrongMark(answered.split, answered.score, answered.accepted, answered.group)
    name = f"{count(wrong)} wrong of {group_name(group)}" if wrong else ""
    return _linked_wrong(_wrong(group.risk, bounds, wrong), mark, name)


def _linked_wrong(cell: Cell, mark: WrongMark, name: str) -> Cell:
    """Make a share of wrong answers a link with a ``name``; an empty one where there is none."""
    text = mark_link(mark, cell.text, name=f"{cell.text}: {name}") if name else cell.text
    return replace(cell, text=text)


def areas_table(rankings: Rankings, intervals: Mapping[str, Interval] | None) -> Table:
    """Show the areas under every curve, with intervals once they were asked for."""
    heads = ("Score", "AURC", "AUGRC", "e-AURC", f"Coverage at {SAFE:.0%} risk")
    rows = []
    for score in scores_of(rankings):
        bounds = " to ".join(map(area, intervals[score])) if intervals else ""
        cells = area_cells(rankings.curves[score], bounds=bounds)
        safe = coverage_at_risk(rankings.test[score], SAFE)
        rows.append([Cell(score_name(score)), *cells, Cell(percent(safe))])
    return Table(
        name="Over all coverages", columns=[Column(head) for head in heads], rows=rows, caption=True
    )


def group_marks(
    test: OpenSplit, reading: Reading, groups: Sequence[GroupCoverage]
) -> list[tuple[AnsweredMark, AbstainedMark]]:
    """Return the marks of what is answered of each group, and of what is not."""
    numbers = {group_name(score): number for number, score in enumerate(test.before.scores)}
    point = (test.name, reading.score, reading.point.accepted)
    found = [numbers[group_name(group)] for group in groups]
    return [(AnsweredMark(*point, number), AbstainedMark(*point, number)) for number in found]


def deciles_table(deciles: Sequence[DecileRisk], score: str) -> Table:
    """Show how often each tenth is wrong, and between which scores it lies."""
    return Table(
        name=f"Wrong answers by decile of the {score_name(score)}",
        columns=[Column(head) for head in ("decile", "n", "wrong", "risk", "lowest", "highest")],
        rows=[
            [
                Cell(str(value), values=(value,))
                for value in (d.number, d.count, d.wrong, d.wrong / d.count, d.lowest, d.highest)
            ]
            for d in deciles
        ],
    )


def groups_table(
    groups: Sequence[GroupCoverage],
    marks: Sequence[tuple[AnsweredMark, AbstainedMark]],
) -> Table:
    """Show how often every group is answered, and how often wrongly; counts lead to pictures."""
    return Table(
        name="Wrong answers by group",
        columns=(
            Column("Group", ("label", "attribute")),
            Column("Answered", ("n", "answered", "coverage")),
            Column("Abstained", ()),
            Column("Wrong", ("wrong", "risk", "low", "high")),
        ),
        rows=[
            (
                Cell(group_name(group), values=(group.label, group.attribute)),
                Cell(
                    Markup("{} of {}").format(_linked(answered, group), count(group.count)),
                    values=(group.count, group.accepted, group.coverage),
                ),
                Cell(mark_link(abstained, count(held)) if held else "0"),
                _wrong_of(group, answered),
            )
            for group, (answered, abstained) in zip(groups, marks, strict=True)
            for held in [group.count - group.accepted]
        ],
        caption=True,
    )


def left_out_words(test: OpenSplit, groups: Sequence[GroupCoverage]) -> str:
    """Say how many groups with pictures are not among those shown; empty where all are."""
    more = sum(score.count > 0 for score in test.before.scores) - len(groups)
    if not more:
        return ""
    return f" {count(more)} more {test.kind}, answered more often, are in “Predictions (CSV)”."


def gap_sentence(groups: Sequence[GroupCoverage]) -> str:
    """Say who is answered least and most, and whether that could be chance; plain text.

    It is chance when the interval of the difference holds 0, as one of all pairs of groups.
    """
    key = "Solid: answered. Hatched: abstained."
    if len(groups) < 2:
        return key
    ordered = sorted(groups, key=lambda group: group.coverage or 0.0)
    least, most = ordered[0], ordered[-1]
    size = points((most.coverage or 0.0) - (least.coverage or 0.0)).removeprefix("+")
    found = unpaired_interval(
        (most.accepted, most.count), (least.accepted, least.count), among=math.comb(len(groups), 2)
    )
    chance = direction(found) == "unclear"
    means = "is within chance" if chance else "means that abstaining is not shared fairly"
    return (
        f"{key} Answered least: {group_name(least)} ({percent(least.coverage)}); most: "
        f"{group_name(most)} ({percent(most.coverage)}). The gap of {size} points {means}."
    )


def paper_table(found: Mapping[str, Sequence[SelectiveRow]]) -> Table:
    """Show the table as the paper prints it: Cov. and Err. of every score at each target."""
    shown = {score: name for score, name in COLUMNS.items() if score in found}
    return Table(
        name="Error at each target coverage",
        columns=(
            Column("Target coverage", ("target",)),
            *(
                Column(what, (f"{name} {what}",))
                for name in shown.values()
                for what in ("Cov.", "Err.")
            ),
        ),
        rows=[
            (
                Cell(f"{target:.0%}", values=(target,)),
                *(
                    share_cell(share)
                    for score in shown
                    for share in (found[score][place].coverage, found[score][place].error)
                ),
            )
            for place, target in enumerate(TARGETS)
        ],
        spans=[(name, 2) for name in shown.values()],
    )
