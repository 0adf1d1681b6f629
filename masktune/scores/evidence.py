"""One standard of evidence: when a difference is called a difference.

A difference is clear when its own 95 % interval leaves out 0. Whether two separate intervals
overlap is never asked: before and after answer the same pictures, and what they share is no noise.

- Accuracy before and after: Newcombe's paired interval, within each group.
- Scores of abstention: a paired bootstrap, both scores on the same resamples.
- Two groups of one test set: Newcombe's interval of a difference of independent shares.
- Runs over several seeds: Student's interval of the mean difference.

Of several groups some look changed by chance: of ten that nothing happened to, one or more in four
test sets of ten. So a statement that picks its groups ("harmed", "clearly got worse") widens the
intervals until all hold together in 95 of 100 cases (Bonferroni, ``Change.interval_among``).
Charts and files keep each group's own interval. A change of all pictures together is one question.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from masktune.scores.flips import Change, group_flips
from masktune.scores.groups import ANY, wilson, z_among
from masktune.scores.predictions import Predictions
from masktune.scores.selective import Ranked, resampled_areas, risk_coverage

Interval = tuple[float, float]
Direction = Literal["up", "down", "unclear"]
Verdict = Literal["helped", "harmed", "mixed", "no clear change", "no change"]

RESAMPLES = 1000


def direction(interval: Sequence[float] | None) -> Direction:
    """Return where a difference with this 95 % interval points; without one nowhere.

    >>> direction((0.01, 0.2)), direction((-0.2, -0.01)), direction((-0.1, 0.2)), direction(None)
    ('up', 'down', 'unclear', 'unclear')
    """
    if interval is None:
        return "unclear"
    low, high = interval
    return "up" if low > 0 else "down" if high < 0 else "unclear"


@dataclass(frozen=True)
class Evidence:
    """What became of the groups of one test set: those with examples, in group order.

    ``among`` is how many are judged together, at least as many as there are groups.
    """

    groups: tuple[Change, ...]
    among: int = 0

    @cached_property
    def overall(self) -> Change:
        """The change over all examples."""
        return Change(
            "all",
            count=sum(group.count for group in self.groups),
            right_before=sum(group.right_before for group in self.groups),
            fixed=sum(group.fixed for group in self.groups),
            broken=sum(group.broken for group in self.groups),
        )

    @cached_property
    def gained(self) -> tuple[Change, ...]:
        """The groups that clearly gained, judged together, the largest gain first."""
        return self._clear("up")

    @cached_property
    def lost(self) -> tuple[Change, ...]:
        """The groups that clearly lost, judged together, the largest loss first."""
        return self._clear("down")

    def _clear(self, where: Direction) -> tuple[Change, ...]:
        several = max(len(self.groups), self.among)
        clear = [g for g in self.groups if direction(g.interval_among(several)) == where]
        return tuple(sorted(clear, key=lambda group: -abs(group.change or 0.0)))

    @property
    def worst_is(self) -> Literal["group", "class"]:
        """What the groups are: classes when no attribute is recorded."""
        return "class" if all(group.attribute == ANY for group in self.groups) else "group"

    @property
    def verdict(self) -> Verdict:
        """Helped or harmed: some group, or all examples together; mixed when it did both."""
        overall = direction(self.overall.interval)
        up, down = bool(self.gained) or overall == "up", bool(self.lost) or overall == "down"
        if up and down:
            return "mixed"
        if up or down:
            return "helped" if up else "harmed"
        return "no clear change" if self.overall.fixed or self.overall.broken else "no change"

    @property
    def worst_before(self) -> Change:
        """The group with the lowest accuracy before; the first one of several equal."""
        return min(self.groups, key=lambda group: group.before or 0.0)

    @property
    def worst_after(self) -> Change:
        """The group with the lowest accuracy after; the first one of several equal."""
        return min(self.groups, key=lambda group: group.after or 0.0)

    @property
    def worst(self) -> Direction:
        """Whether the lowest accuracy rose or fell, by the change within one group.

        It can only have risen if the group that was worst gained, and only have fallen if the one
        that is worst now lost.
        """
        was, now = self.worst_before, self.worst_after
        rise = (now.after or 0.0) - (was.before or 0.0)
        if rise > 0 and was in self.gained:
            return "up"
        return "down" if rise < 0 and now in self.lost else "unclear"

    @property
    def group_mean(self) -> Direction:
        """Whether the plain mean of the groups' accuracies rose or fell.

        The groups are independent, so the distances from each change to its limits add up as
        squares (MOVER: Zou and Donner, Statistics in Medicine 27, 2008).
        """
        known = [
            (g.change, *g.interval) for g in self.groups if g.change is not None and g.interval
        ]
        return direction(_sum_interval(known))


def tells_apart(said: Predictions) -> bool:
    """Tell whether a model's answers clearly depend on the class.

    Its accuracy on a class, averaged over the classes with pictures, is then above that of always
    answering one of them, whatever their sizes. The classes are independent, as the groups of
    ``Evidence.group_mean`` are.
    """
    counts = np.bincount(said.labels)
    hits = np.bincount(said.labels[said.correct()], minlength=len(counts))
    known = [(hit, n) for hit, n in zip(hits.tolist(), counts.tolist(), strict=True) if n]
    low, _ = _sum_interval([(hit / n, *wilson(hit, n)) for hit, n in known])
    return low > 1.0  # always one class: all of it and none of the others


def _sum_interval(known: Sequence[tuple[float, float, float]]) -> Interval:
    """Return the interval of a sum of independent values with limits: distances add as squares."""
    total = math.fsum(value for value, _, _ in known)
    below = math.sqrt(math.fsum((value - low) ** 2 for value, low, _ in known))
    above = math.sqrt(math.fsum((high - value) ** 2 for value, _, high in known))
    return total - below, total + above


def judge(changes: Sequence[Change], *, among: int = 0) -> Evidence:
    """Weigh the changes of all groups, or of all classes, of a test set.

    Classes are judged ``among`` as many as there are groups: a class that is one group is then
    clear where the group is.
    """
    return Evidence(tuple(change for change in changes if change.count), among=among)


def weigh(
    before: Predictions,
    after: Predictions,
    *,
    classes: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
) -> Evidence:
    """Weigh what two models say about the same examples, group by group."""
    return judge(group_flips(before, after, classes=classes, attributes=attributes))


@dataclass(frozen=True, slots=True)
class Difference:
    """The other score's risk minus the one's; positive where the one is safer.

    With its bootstrap interval, None where nothing was answered.
    """

    value: float
    interval: Interval | None

    @property
    def direction(self) -> Direction:
        """Up where the one is clearly safer, down where the other is."""
        return direction(self.interval)


def compare_areas(one: Ranked, other: Ranked, *, among: int = 1) -> Difference:
    """Tell how much smaller the area under one score's risk-coverage curve is than the other's.

    Of the same pictures in the same order. Percentile bootstrap over the same resamples of them;
    the same pictures give the same interval every time. ``among`` such comparisons hold together.
    """
    generator = np.random.default_rng(len(one))
    areas = resampled_areas((one, other), generator=generator, resamples=RESAMPLES)
    return Difference(
        risk_coverage(other).aurc - risk_coverage(one).aurc, _middle(areas[1] - areas[0], among)
    )


def compare_risks(one: Ranked, other: Ranked, *, gammas: tuple[float, float]) -> Difference:
    """Tell how much lower one score's risk is than the other's, each at its own threshold.

    Of the same pictures in the same order. A picture matters only by whether each score answers it
    and how, so that resamples are drawn of a few counts, not of the pictures.
    """
    both = tuple(zip((one, other), gammas, strict=True))
    answered = np.stack([ranked.confidence > gamma for ranked, gamma in both])  # (2, N)
    wrong = answered & ~np.stack([ranked.correct for ranked, _ in both])
    if not answered.any(axis=1).all():
        return Difference(0.0, None)
    if wrong[0].tobytes() + answered[0].tobytes() > wrong[1].tobytes() + answered[1].tobytes():
        # One order for the same two, or turned round they would be judged by other resamples.
        turned = compare_risks(other, one, gammas=(gammas[1], gammas[0]))
        low, high = turned.interval or (0.0, 0.0)
        return Difference(-turned.value, (-high, -low))
    kinds, counts = np.unique(np.vstack([answered, wrong]), axis=1, return_counts=True)  # (4, P)
    drawn = np.random.default_rng(len(one)).multinomial(
        len(one), counts / len(one), size=RESAMPLES
    )  # (R, P)
    accepted, mistaken = drawn @ kinds[:2].T, drawn @ kinds[2:].T  # (R, 2)
    known = (accepted > 0).all(axis=1)
    risks = mistaken[known] / accepted[known]
    value = wrong.sum(axis=1) / answered.sum(axis=1)
    return Difference(float(value[1] - value[0]), _middle(risks[:, 1] - risks[:, 0], 1))


def _middle(values: npt.NDArray[np.float64], among: int) -> Interval:
    """Return the interval that all but 5 % / ``among`` of the values lie in."""
    tail = 0.025 / among
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Safety:
    """How safe the joint score is beside each model alone.

    ``areas`` are the AURC of "joint", "before" and "after"; the lower, the safer. ``against`` says
    by model how much smaller the joint score's area is than that of the model alone.
    """

    areas: Mapping[str, float]
    against: Mapping[str, Difference]

    @property
    def best_alone(self) -> str:
        """The model whose own score has the smaller area."""
        return min(self.against, key=lambda model: self.areas[model])

    @property
    def safest(self) -> Literal["joint", "before", "after"] | None:
        """A model that is clearly safer alone, else the joint score if it beats both, else None."""
        safer = [model for model, found in self.against.items() if found.direction == "down"]
        if safer:
            return "before" if min(safer, key=self.areas.__getitem__) == "before" else "after"
        beaten = all(found.direction == "up" for found in self.against.values())
        return "joint" if beaten else None


def weigh_scores(ranked: Mapping[str, Ranked]) -> Safety:
    """Weigh the joint score against "before" and "after" alone; both comparisons hold together."""
    against = {
        model: compare_areas(ranked["joint"], ranked[model], among=2)
        for model in ("before", "after")
    }
    return Safety({name: risk_coverage(one).aurc for name, one in ranked.items()}, against)


def unpaired_interval(one: tuple[int, int], other: tuple[int, int], *, among: int = 1) -> Interval:
    """Return the interval of a difference of shares of two separate sets of pictures.

    The one's share minus the other's, each given as (how many, out of how many), by Newcombe's
    method 10 (Statistics in Medicine 17, 1998); ``among`` such comparisons hold together.

    >>> low, high = unpaired_interval((56, 70), (48, 80))
    >>> round(low, 3), round(high, 3)
    (0.052, 0.334)
    """
    z = z_among(among)
    p, q = one[0] / one[1], other[0] / other[1]
    return _between(p, wilson(*one, z=z), q, wilson(*other, z=z))


def _between(p: float, p_limits: Interval, q: float, q_limits: Interval) -> Interval:
    """Return the interval of p - q, of which each has its own: distances add up as squares."""
    (p_low, p_high), (q_low, q_high) = p_limits, q_limits
    return (p - q - math.hypot(p - p_low, q_high - q), p - q + math.hypot(p_high - p, q - q_low))


def apart(one: Change, other: Change) -> Interval | None:
    """Return the interval of the one's change minus the other's, of two sets of pictures.

    Each has its own paired interval; the sets are independent, so the distances to its limits add
    up as squares (MOVER, as for ``Evidence.group_mean``). None where one has no pictures.

    >>> common = Change("a", count=100, right_before=100, fixed=0, broken=10)
    >>> rare = Change("a", count=20, right_before=18, fixed=0, broken=15)
    >>> [round(limit, 2) for limit in apart(rare, common)]
    [-0.78, -0.35]
    """
    if one.interval is None or other.interval is None:
        return None
    return _between(one.change or 0.0, one.interval, other.change or 0.0, other.interval)


def student_interval(values: Sequence[float]) -> list[float] | None:
    """Give Student's 95 % interval of the mean; None from fewer than two values.

    >>> [round(bound, 3) for bound in student_interval([0.90, 0.92, 0.94])]
    [0.87, 0.97]
    """
    if len(values) < 2:
        return None
    from scipy.special import stdtrit  # a run that asks for no interval does not import it

    middle = statistics.fmean(values)
    spread = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(stdtrit(len(values) - 1, 0.975)) * spread
    return [middle - reach, middle + reach]
