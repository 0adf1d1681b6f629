"""The numbers that cards, tables, files and the report show of a test set: an entry is a metric.

To add one, add an entry to ``METRICS``. Only ``RunResult.bg_gap`` stands apart: it joins two sets.
"""

from collections.abc import Callable
from dataclasses import dataclass

from masktune.scores.evidence import Direction, Evidence, Interval, direction
from masktune.scores.groups import Summary, group_name, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One accuracy of a model on a test set.

    Attributes:
        key: as in ``result.json``.
        title: its name.
        class_title: its name where classes stand in for groups; the title unless given.
        hint: what it is, for people.
        of: its value in [0, 1], None where it is unknown.
        clear: where it moved, by the evidence; "unclear" where there is none.
        interval: its 95 % interval, None where there is none.
        count: pictures behind it.
        basis: what is said of it instead of an interval; "{groups}" is how many with pictures.
        who: whose number it is, "" for that of all.
        prominent: whether Compare has a card for it.
    """

    key: str
    title: str
    class_title: str = ""
    hint: str
    of: Callable[[Summary], float | None]
    clear: Callable[[Evidence], Direction]
    interval: Callable[[Summary], Interval | None] = lambda _: None
    count: Callable[[Summary], int] = len
    basis: str = ""
    who: Callable[[Summary], str] = lambda _: ""
    prominent: bool = True

    def name(self, summary: Summary) -> str:
        """Return its name for a model's accuracies."""
        return (self.class_title if summary.worst_is == "class" else "") or self.title


def _right(summary: Summary) -> int:
    return sum(round((score.accuracy or 0.0) * score.count) for score in summary.scores)


METRICS = (
    Metric(
        key="worst_group",
        title="worst group",
        class_title="worst class (stands in for the worst group)",
        hint="The group that gets the fewest right answers; before and after it may be another "
        "one. A group is a class with an attribute. The interval (Wilson) holds what n "
        "pictures can tell.",
        of=lambda summary: summary.worst.accuracy,
        clear=lambda evidence: evidence.worst,
        interval=lambda summary: summary.worst.interval,
        count=lambda summary: summary.worst.count,
        who=lambda summary: group_name(summary.worst),
    ),
    Metric(
        key="average",
        title="test average",
        hint="Right answers over all pictures of this test set, as the paper reports.",
        of=lambda summary: summary.average,
        clear=lambda evidence: direction(evidence.overall.interval),
        interval=lambda summary: wilson(_right(summary), len(summary)),
    ),
    Metric(
        key="train_weighted",
        title="train-weighted average",
        hint="Groups weighted by their training pictures; one that is rare there counts little.",
        of=lambda summary: summary.train_weighted,
        clear=lambda _: "unclear",
        basis="{groups} weighted by their training pictures",
        prominent=False,
    ),
    Metric(
        key="group_mean",
        title="group mean",
        hint="Every group counts the same, however small. It is no share of pictures, so it "
        "has no interval. The train-weighted average is in the table below.",
        of=lambda summary: summary.group_mean,
        clear=lambda evidence: evidence.group_mean,
        basis="plain mean over {groups}",
    ),
)
"""Every accuracy that is shown, in the order of cards and tables."""
