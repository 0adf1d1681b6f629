"""How numbers and verdicts read, in reports and on pages alike: plain words, also for bad news."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from masktune.config import MaskingConfig
from masktune.heat.strategies import strategy_of
from masktune.scores.groups import GroupScore, Summary, group_name
from masktune.scores.rounds import kept_round
from masktune.scores.selective import RiskCoverage

NOTHING = "–"
"""Stands where there is no number; never 0."""

Clarity = Literal["up", "down", "unclear"]


def percent(share: float | None) -> str:
    """Write a share in [0, 1].

    >>> percent(0.9184), percent(None)
    ('91.8%', '–')
    """
    return NOTHING if share is None else f"{share:.1%}"


def points(change: float | None) -> str:
    """Write a difference of two shares in points, with its sign.

    >>> points(0.465), points(-0.016), points(0.0001)
    ('+46.5', '−1.6', '0.0')
    """
    if change is None:
        return NOTHING
    text = f"{100 * change:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def interval(bounds: tuple[float, float] | None) -> str:
    """Write the interval of a share.

    >>> interval((0.878, 0.946))
    '87.8 to 94.6%'
    """
    return NOTHING if bounds is None else f"{100 * bounds[0]:.1f} to {bounds[1]:.1%}"


def points_interval(bounds: tuple[float, float] | None) -> str:
    """Write the interval of a difference.

    >>> points_interval((-0.02, 0.031))
    '−2.0 to +3.1'
    """
    return NOTHING if bounds is None else f"{points(bounds[0])} to {points(bounds[1])}"


def count(number: int) -> str:
    """Write a number of things.

    >>> count(3500)
    '3,500'
    """
    return f"{number:,}"


def duration(seconds: float) -> str:
    """Write how long something took.

    >>> duration(0.04), duration(8.2), duration(840.0), duration(9000.0)
    ('0.0 s', '8.2 s', '14 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def area(value: float) -> str:
    """Write an area under a risk-coverage curve, a plain fraction.

    >>> area(0.02431)
    '0.0243'
    """
    return f"{value:.4f}".replace("-", "−")


def method_words(masking: MaskingConfig) -> str:
    """Say what a run does to its training pictures.

    >>> method_words(MaskingConfig())
    'MaskTune, k = 2.0'
    >>> method_words(MaskingConfig(strategy="none"))
    'Control: one more epoch, nothing hidden'
    """
    words = strategy_of(masking).words(masking)
    return words if masking.rounds == 1 else f"{words}, {masking.rounds} rounds"


def early_stop(rounds: Sequence[Mapping[str, Any]]) -> str:
    """Say why there was no further round and what became of the last one; empty where all fitted.

    >>> early_stop([{"fitted": True}, {"fitted": True}])
    ''
    """
    last = len(rounds)
    if not rounds or rounds[-1]["fitted"]:
        return ""
    fate = "is the result all the same" if kept_round(rounds) == last else "was dropped"
    return (
        f"Round {last} left too little to learn from: its model did not fit its masked training "
        f"pictures and {fate}."
    )


def worst_words(summary: Summary) -> str:
    """Name what the lowest accuracy belongs to, in full where it is only a stand-in.

    Without attributes there are no groups; see ``masktune.scores.groups``.
    """
    if summary.worst_is == "class":
        return "worst class (stands in for the worst group)"
    return "worst group"


def score_words(score: GroupScore) -> str:
    """Write an accuracy with all that belongs to it.

    >>> score_words(GroupScore("0–4", "square", 10, 0.8, (0.49, 0.943)))
    '80.0% (0–4, square; n = 10; 95% interval 49.0 to 94.3%)'
    """
    return (
        f"{percent(score.accuracy)} ({group_name(score)}; n = {count(score.count)}; "
        f"95% interval {interval(score.interval)})"
    )


def worst_change(before: Summary, after: Summary) -> Clarity:
    """Tell whether the lowest accuracy clearly rose or fell.

    It is clear when the two 95 % intervals do not overlap; which group is worst may change.
    """
    was, now = before.worst.interval, after.worst.interval
    if was is None or now is None or (was[0] <= now[1] and now[0] <= was[1]):
        return "unclear"
    return "up" if was[1] < now[0] else "down"


def worst_verdict(test: str, before: Summary, after: Summary) -> str:
    """Say in one sentence what tuning did to the worst group of a test set."""
    was, now = before.worst.accuracy, after.worst.accuracy
    change = points((now or 0.0) - (was or 0.0))
    what = f"{worst_words(after)} of “{test}”"
    moved = f"from {percent(was)} to {percent(now)}, {change} points"
    match worst_change(before, after):
        case "up":
            return f"Tuning helped the {what}: {moved}."
        case "down":
            return f"Tuning harmed the {what}: {moved}."
        case _ if change == "0.0":
            return f"No change for the {what}: {percent(now)}."
        case _:
            return f"No clear change for the {what}: {moved}, and the intervals overlap."


def selective_verdict(curves: Mapping[str, RiskCoverage]) -> str:
    """Say in one sentence whether the joint score is the safest of "joint", "before", "after".

    The lower the area under the risk-coverage curve, the safer.
    """
    joint = area(curves["joint"].aurc)
    best = min(("before", "after"), key=lambda which: curves[which].aurc)
    alone = area(curves[best].aurc)
    if joint == alone:
        return f"The joint score is as safe as the model {best} alone: AURC {joint} both."
    if curves["joint"].aurc < curves[best].aurc:
        return f"The joint score is the safest: AURC {joint}, against {alone} for {best} alone."
    return f"The model {best} alone is safer than the joint score: AURC {alone} against {joint}."
