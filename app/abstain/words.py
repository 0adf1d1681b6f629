"""The Abstain page's sentences and tables: pure functions of readings."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from app.abstain.files import COLUMNS
from app.abstain.numbers import (
    SAFE,
    SCORES,
    GroupReading,
    Interval,
    Rankings,
    Reading,
    widest_gap,
)
from masktune.scores.selective import TARGETS
from masktune.show.wording import area, count, interval, percent, points, selective_verdict

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


def gamma_sentence(reading: Reading, validation: int) -> str:
    """Say, as HTML, what the threshold is and where it comes from."""
    if not math.isfinite(reading.point.gamma):
        return "At 100% every picture gets an answer: <b>no gamma</b> is needed."
    return (
        f"Answer when the score is above <b>gamma = {gamma_words(reading.point.gamma)}</b>. Gamma "
        f"comes from {count(validation)} validation pictures, never from the test set, so coverage "
        "on test can miss the target."
    )


def miss_sentence(reading: Reading, *, test: str) -> str:
    """Say, as HTML, why achieved coverage is far from its target; empty when it is not."""
    if reading.nearest is not None and reading.target - reading.on_validation > TIED:
        return (
            f"<b>Scores tie.</b> {count(reading.tied)} validation pictures have the same score as "
            f"gamma and are held back together, so only {percent(reading.on_validation)} of the "
            "validation pictures are answered. The nearest coverage that a threshold can reach "
            f"there is {percent(reading.nearest)}."
        )
    if abs(reading.off_target) <= MISSED:
        return ""
    how = ("lower", "fewer") if reading.off_target < 0 else ("higher", "more")
    return (
        "<b>Far off target.</b> The same gamma answers "
        f"{percent(reading.on_validation)} of the validation pictures. Scores on “{escape(test)}” "
        f"are {how[0]}, so {how[1]} pictures get an answer: they are not like the ones that gamma "
        "was chosen on."
    )


def coverage_metric(reading: Reading) -> str:
    """Give the achieved coverage with its distance from the target."""
    return _metric(
        "Achieved coverage",
        percent(reading.point.coverage),
        f'<span class="delta">{points(reading.off_target)} points</span> '
        '<span class="muted">to target</span>',
        f"{count(reading.point.accepted)} of {count(reading.total)} test pictures answered",
    )


def wrong_metric(reading: Reading, other: str, other_risk: float) -> str:
    """Give the share of wrong answers, set against another score's at the same coverage."""
    if reading.point.risk is None:
        return _metric("Wrong answers", percent(None), "", "no picture is answered")
    change = points(reading.point.risk - other_risk)
    # Fewer mistakes are good: the arrow follows the number, the colour what it means.
    kind, arrow = {"+": ("down", "↑ "), "−": ("up", "↓ ")}.get(change[0], ("same", ""))
    return _metric(
        "Wrong answers",
        percent(reading.point.risk),
        f'<span class="delta {kind}">{arrow}{change} points</span> '
        f'<span class="muted">against {other} at this coverage</span>',
        f"{count(reading.wrong)} of {count(reading.point.accepted)} answers<br>"
        f"95% interval {interval(reading.interval)}",
    )


def _metric(name: str, value: str, pill: str, note: str) -> str:
    return (
        f'<p class="name">{name}</p><p class="value">{value}</p><p>{pill}</p>'
        f'<p class="note">{note}</p>'
    )


def verdict_html(rankings: Rankings) -> str:
    """Say which score is the safest; in the colour of harm when that is the model before."""
    best = min(SCORES, key=lambda score: rankings.curves[score].aurc)
    kind = " down" if best == "before" else ""
    return f'<p class="verdict{kind}">{escape(selective_verdict(rankings.curves))}</p>'


def scores_table(readings: Mapping[str, Reading], chosen: str) -> str:
    """Show all scores at one target, the chosen one in bold."""
    rows = []
    for score in SCORES:
        reading = readings[score]
        strong = ("<b>", "</b>") if score == chosen else ("", "")
        wrong = interval(reading.interval) if reading.interval else "no answer"
        rows.append(
            f'<tr><th scope="row">{strong[0]}{score}{strong[1]}</th>'
            f"<td>{percent(reading.point.coverage)}"
            f"<small>{count(reading.point.accepted)} of {count(reading.total)}</small></td>"
            f"<td>{percent(reading.point.risk)}<small>{wrong}</small></td>"
            f"<td>{gamma_words(reading.point.gamma)}</td></tr>"
        )
    title = f"At target {readings[chosen].target:.0%}"
    return _table(title, ("Score", "Answered", "Wrong", "Gamma"), rows)


def areas_table(rankings: Rankings, intervals: Mapping[str, Interval] | None) -> str:
    """Show the areas under every curve, with intervals once they were asked for."""
    rows = []
    for score in SCORES:
        curve = rankings.curves[score]
        low_high = ""
        if intervals is not None:
            low, high = intervals[score]
            low_high = f"<small>{area(low)} to {area(high)}</small>"
        rows.append(
            f'<tr><th scope="row">{score}</th><td>{area(curve.aurc)}{low_high}</td>'
            f"<td>{area(curve.augrc)}</td><td>{area(curve.e_aurc)}</td>"
            f"<td>{percent(rankings.safe[score])}</td></tr>"
        )
    heads = ("Score", "AURC", "AUGRC", "e-AURC", f"Coverage at {SAFE:.0%} risk")
    return _table("Over all coverages", heads, rows)


def groups_table(groups: Sequence[GroupReading]) -> str:
    """Show how often every group is answered, and how often wrongly."""
    rows = []
    for group in groups:
        found = group.coverage
        wrong = interval(group.interval) if group.interval else "no answer"
        rows.append(
            f'<tr><th scope="row">{escape(group.name)}</th>'
            f"<td>{count(found.accepted)} of {count(found.count)}</td>"
            f"<td>{percent(found.risk)}<small>{wrong}</small></td></tr>"
        )
    return _table("Wrong answers by group", ("Group", "Answered", "Wrong"), rows)


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
        return f"{told} The gap of {_size(found.size)} points is within chance: intervals overlap."
    return (
        f"{told} The gap of {_size(found.size)} points means that holding back is not shared "
        "fairly."
    )


def _size(gap: float) -> str:
    return points(gap).removeprefix("+")


def paper_table(rankings: Rankings) -> str:
    """Show the table as the paper prints it: Cov. and Err. of every score at each target."""
    found = rankings.table()
    heads = "".join(f'<th scope="colgroup" colspan="2">{name}</th>' for name in COLUMNS.values())
    below = '<th scope="col">Cov.</th><th scope="col">Err.</th>' * len(COLUMNS)
    rows = []
    for place, target in enumerate(TARGETS):
        cells = "".join(
            f"<td>{percent(found[score][place].coverage)}</td>"
            f"<td>{percent(found[score][place].error)}</td>"
            for score in COLUMNS
        )
        rows.append(f'<tr><th scope="row">{target:.0%}</th>{cells}</tr>')
    return (
        '<div class="wide"><table aria-label="Error at each target coverage"><thead>'
        f'<tr><td></td>{heads}</tr><tr><th scope="col">Target coverage</th>{below}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _table(name: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    return (
        f'<div class="wide"><table><caption>{name}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
