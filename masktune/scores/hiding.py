"""What hiding takes away, before the epoch: the clue, the thing itself, or nothing that matters.

The model before is asked twice about the same training pictures, as they are and hidden. Which of
its answers break says whether the mask hits what it uses, not whether that is the clue: with the
squares hidden 82 / 32 / 100 / 83 % of the digits' four groups stay right, with part of the ground
and of the animals hidden 99 / 100 / 87 / 39 % of the cows'. So what is known of where clue and
thing lie decides, and where nothing is known the answer may be that nobody can tell.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from masktune.scores.evidence import Evidence, apart, direction, judge
from masktune.scores.flips import Change, check_same_examples
from masktune.scores.groups import ANY, group_examples
from masktune.scores.json_types import as_json
from masktune.scores.predictions import Predictions

Verdict = Literal["leans on", "nothing that matters", "the thing itself", "cannot tell"]

LEAST_LOST = 0.05
"""Accuracy that a group must lose to count as broken: large sets show smaller losses clearly."""

COVERED = 1 / 3
"""Share of the clue from which on it counts as hidden; of two squares a mask often takes one."""

TIMES = 2.0
"""How many times as much of something must be hidden as of the rest, to be what the mask is on."""

STAYS = 0.75
"""Share of its right answers that a common group keeps when it still has what it answers by."""

NEARLY_ALL = 0.9
"""Share of the pictures that groups must hold together to speak for all: rare ones cannot."""

RULE = (
    "The rule: a group breaks when the model before clearly loses right answers on it by hiding "
    "(the paired 95% interval, widened for all groups together, leaves out 0), and at least "
    f"{100 * LEAST_LOST:.0f} points. Nothing that matters: no group breaks, the interval of "
    f"all pictures together rules out a loss of {100 * LEAST_LOST:.0f} points, and those of the "
    f"largest groups, with {NEARLY_ALL:.0%} of the pictures, show that each keeps {STAYS:.0%} of "
    "its right answers, so that one with none to lose is no evidence. What the model "
    "leans on: in the groups that break at least a third of the clue is hidden, twice as much of "
    "it as of the whole picture or more, and more of it than of the thing. The thing itself: twice "
    "as much of the thing is hidden as of the rest or more, and more than of the clue. Either must "
    "hold over the groups that break together and within each of them that shows the clue, or the "
    f"thing: of unlike ones within the largest, with {NEARLY_ALL:.0%} of the pictures. Or, "
    "whatever is known of places, the commonest group of every class keeps "
    f"{STAYS:.0%} of its right answers while the rarer ones together clearly lose more than these. "
    "In all other cases it cannot tell: accuracies alone look alike when the clue is hidden and "
    "when the thing is. The same numbers for every dataset."
)
"""How the verdict is found, for people."""

Shares = npt.NDArray[np.float64]


class Covered(NamedTuple):
    """How much of something is hidden: the mean share, over the pictures that show it."""

    share: float
    pictures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How much of each picture is hidden, each (N,) float64 in [0, 1].

    Of clue, thing and the rest round the thing it is NaN in pictures without, and None where nobody
    knows where they lie.
    """

    hidden: Shares
    clue: Shares | None = None
    thing: Shares | None = None
    rest: Shares | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenGroup:
    """What hiding does to some pictures: what is covered, and which answers break."""

    label: str
    attribute: str = ANY
    count: int
    right_before: int  # answered right as they are
    fixed: int  # wrong as they are, right when hidden
    broken: int  # right as they are, wrong when hidden
    hidden_fraction: float  # mean share of a picture's pixels
    empty: int  # pictures in which nothing is hidden
    clue: Covered | None = None
    thing: Covered | None = None
    rest: Covered | None = None  # all but the thing

    @property
    def change(self) -> Change:
        """What becomes of the answers."""
        return Change(
            self.label,
            attribute=self.attribute,
            count=self.count,
            right_before=self.right_before,
            fixed=self.fixed,
            broken=self.broken,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hiding:
    """What hiding takes away from a model, by group.

    Attributes:
        verdict: by ``RULE``; a ``Verdict``.
        of: how many training pictures there are; ``whole.count`` were looked at.
        by: what the groups are: "group", "class", or "clue" for places the model looks at.
        whole: over all pictures looked at.
        groups: those with pictures, in group order.
    """

    verdict: str
    of: int
    by: str
    whole: HiddenGroup
    groups: tuple[HiddenGroup, ...]

    def to_json(self) -> dict[str, Any]:
        """Give it with its accuracies and changes, for people's own programs."""
        every = [{**as_json(g), **_numbers(g.change)} for g in (self.whole, *self.groups)]
        return {**as_json(self), "whole": every[0], "groups": every[1:]}

    @property
    def evidence(self) -> Evidence:
        """What becomes of the answers, by group."""
        return judge([group.change for group in self.groups])

    @property
    def empty_fraction(self) -> float:
        """Share of the pictures in which nothing is hidden."""
        return self.whole.empty / self.whole.count

    @property
    def broken(self) -> tuple[HiddenGroup, ...]:
        """The groups that break by ``RULE``."""
        return _broken(self.groups)

    @property
    def unjudged(self) -> tuple[HiddenGroup, ...]:
        """The large groups that by ``RULE`` may lose more than nothing that matters."""
        return _unjudged(self.groups)

    @property
    def telling(self) -> HiddenGroup:
        """What the verdict rests on: the groups that break together, or all where none does."""
        return together(self.broken) if self.broken else self.whole


def _numbers(change: Change) -> dict[str, Any]:
    numbers = (change.before, change.after, change.change, as_json(change.interval))
    return dict(zip(("before", "after", "change", "interval"), numbers, strict=True))


def weigh_hiding(
    before: Predictions,
    after: Predictions,
    measured: Measured,
    *,
    of: int,
    classes: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
    clues: Mapping[str, npt.NDArray[np.int64]] | None = None,
) -> Hiding:
    """Weigh what a model says about the same N pictures as they are and hidden.

    Args:
        before: what it says about them as they are.
        after: what it says about them hidden.
        measured: how much of each is hidden.
        of: how many there are in the training set.
        classes: as for ``group_examples``.
        attributes: likewise.
        clues: positions by name of what stands in for groups where no attribute is recorded.
    """
    check_same_examples(before, after)
    grouping = group_examples(before, classes=classes, attributes=attributes)
    parts = [
        (*names, np.flatnonzero(grouping.ids == number))
        for number, names in enumerate(grouping.names())
    ]
    by: Literal["group", "class", "clue"] = "group"
    if grouping.attributes == (ANY,):
        by = "clue" if clues else "class"
        parts = [(name, ANY, members) for name, members in clues.items()] if clues else parts
    was, now = before.correct(), after.correct()
    groups = tuple(
        _group(label, attribute, members, was=was, now=now, measured=measured)
        for label, attribute, members in parts
        if len(members)
    )
    return Hiding(
        verdict=verdict_of(groups, by=by), of=of, by=by, whole=together(groups), groups=groups
    )


def _group(
    label: str,
    attribute: str,
    members: npt.NDArray[np.int64],
    *,
    was: npt.NDArray[np.bool_],
    now: npt.NDArray[np.bool_],
    measured: Measured,
) -> HiddenGroup:
    before, after, hidden = was[members], now[members], measured.hidden[members]

    def covered(shares: Shares | None) -> Covered | None:
        if shares is None:
            return None
        known = shares[members][~np.isnan(shares[members])]
        return Covered(float(known.mean()), len(known)) if len(known) else None

    return HiddenGroup(
        label=label,
        attribute=attribute,
        count=len(members),
        right_before=int(before.sum()),
        fixed=int((~before & after).sum()),
        broken=int((before & ~after).sum()),
        hidden_fraction=float(hidden.mean()),
        empty=int((hidden == 0).sum()),
        clue=covered(measured.clue),
        thing=covered(measured.thing),
        rest=covered(measured.rest),
    )


def together(groups: Sequence[HiddenGroup]) -> HiddenGroup:
    """Return several groups as one, called "all"; at least one has pictures."""
    total = sum(group.count for group in groups)

    def covered(of: Callable[[HiddenGroup], Covered | None]) -> Covered | None:
        found = [one for one in map(of, groups) if one is not None]
        pictures = sum(one.pictures for one in found)
        share = sum(one.share * one.pictures for one in found)
        return Covered(share / pictures, pictures) if pictures else None

    return HiddenGroup(
        label="all",
        count=total,
        right_before=sum(group.right_before for group in groups),
        fixed=sum(group.fixed for group in groups),
        broken=sum(group.broken for group in groups),
        hidden_fraction=sum(g.hidden_fraction * g.count for g in groups) / total,
        empty=sum(group.empty for group in groups),
        clue=covered(lambda group: group.clue),
        thing=covered(lambda group: group.thing),
        rest=covered(lambda group: group.rest),
    )


def verdict_of(groups: Sequence[HiddenGroup], *, by: str = "group") -> Verdict:
    """Judge by ``RULE`` what hiding takes away."""
    broken = _broken(groups)
    if not broken:
        low, _ = together(groups).change.interval or (-1.0, 1.0)
        judged = low > -LEAST_LOST and not _unjudged(groups)
        return "nothing that matters" if judged else "cannot tell"
    if covers_clue(broken):
        return "leans on"
    if covers_thing(broken) or (by == "group" and _rare_break(groups)):
        return "the thing itself"
    return "cannot tell"


def covers_clue(broken: Sequence[HiddenGroup]) -> bool:
    """Tell whether the mask is on the clue in groups that break, together and each alone."""
    showing = [group for group in broken if group.clue is not None]
    return bool(showing) and all(map(on_clue, (together(broken), *_largest(showing))))


def covers_thing(broken: Sequence[HiddenGroup]) -> bool:
    """Tell whether the mask is on the thing in groups that break, together and each alone."""
    showing = [group for group in broken if group.thing is not None]
    return bool(showing) and all(map(_on_thing, (together(broken), *_largest(showing))))


def on_clue(hit: HiddenGroup) -> bool:
    """Tell whether the mask is on the clue, by what is known of where it lies."""
    if hit.clue is None:
        return False
    # A clue that fills more than half of the picture can never be twice as hidden as all of it:
    # hiding its hottest part leaves the rest of it to learn from.
    singled_out = hit.clue.share >= TIMES * hit.hidden_fraction
    of_thing = 0.0 if hit.thing is None else hit.thing.share
    return hit.clue.share >= COVERED and singled_out and hit.clue.share > of_thing


def _on_thing(hit: HiddenGroup) -> bool:
    if hit.thing is None or hit.rest is None:
        return False
    of_clue = 0.0 if hit.clue is None else hit.clue.share
    return hit.thing.share >= TIMES * hit.rest.share and hit.thing.share > of_clue


def _broken(groups: Iterable[HiddenGroup]) -> tuple[HiddenGroup, ...]:
    every = tuple(groups)
    return tuple(
        group
        for group in every
        if direction(group.change.interval_among(len(every))) == "down"
        and group.broken - group.fixed >= LEAST_LOST * group.count
    )


def _unjudged(groups: Sequence[HiddenGroup]) -> tuple[HiddenGroup, ...]:
    def stays(group: HiddenGroup) -> bool:
        low, _ = group.change.interval_among(len(groups)) or (-1.0, 1.0)
        return low * group.count > -(1.0 - STAYS) * group.right_before

    return tuple(group for group in _largest(groups) if not stays(group))


def _largest(groups: Sequence[HiddenGroup]) -> list[HiddenGroup]:
    """Return the fewest groups that hold ``NEARLY_ALL`` of the pictures, the largest first."""
    most = sorted(groups, key=lambda group: -group.count)
    reached = list(accumulate(group.count for group in most))
    return most[: bisect_left(reached, NEARLY_ALL * reached[-1]) + 1]


def _rare_break(groups: Sequence[HiddenGroup]) -> bool:
    """Tell whether the common groups stay right and the rare ones break: the rest is the clue."""
    common, rare = common_and_rare(groups)
    if not rare or any(g.right_before - g.broken < STAYS * g.right_before for g in common):
        return False
    fall = together(rare)
    clearly_more = direction(apart(fall.change, together(common).change)) == "down"
    return clearly_more and fall.broken - fall.fixed >= LEAST_LOST * fall.count


def common_and_rare(
    groups: Sequence[HiddenGroup],
) -> tuple[list[HiddenGroup], list[HiddenGroup]]:
    """Return the commonest group of every class, and all others."""
    by_class: dict[str, list[HiddenGroup]] = {}
    for group in groups:
        by_class.setdefault(group.label, []).append(group)
    common = [max(several, key=lambda group: group.count) for several in by_class.values()]
    return common, [group for group in groups if group not in common]
