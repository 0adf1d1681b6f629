"""What both models say about one picture: the caption under it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from masktune.runs.open import OpenSplit
from masktune.scores.flips import AnswerChange, answer_changes
from masktune.scores.groups import group_name
from masktune.scores.predictions import Predictions
from masktune.show.markup import piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What both models say about one picture, in names; how sure they are in [0, 1]."""

    position: int  # in its test set, from 0
    group: str
    truth: str
    before: str
    after: str
    before_sure: float
    after_sure: float
    state: AnswerChange
    said_by: tuple[str, str] = ("before", "after")

    def html(self, *, with_state: bool = True) -> Markup:
        """Return the caption of a picture; beside pictures of one state it need not be named."""
        return piece("answer", answer=self, with_state=with_state)

    def words(self) -> str:
        """Say it for those who cannot see the picture."""
        first, second = self.said_by
        return (
            f"position {self.position}, {self.group}, {self.state}: {self.before} {first} "
            f"({self.before_sure:.0%} sure), {self.after} {second} ({self.after_sure:.0%} sure)"
        )


def answers_at(
    test: OpenSplit, positions: Sequence[int], *, other: OpenSplit | None = None
) -> list[Answer]:
    """Return what both models say about some pictures of a test set.

    With another run on the same pictures: what its model after says, then what this run's does.
    """
    pair, classes, groups = test.pair, test.classes, test.groups
    if other is not None:
        pair = replace(pair, before=other.pair.after)
    said_by = ("before", "after") if other is None else ("by the other run", "by this run")
    return [
        answer_at(
            position,
            pair.before,
            pair.after,
            group=group_name(test.before.scores[int(groups[position])]),
            classes=classes,
            said_by=said_by,
        )
        for position in positions
    ]


def answer_at(
    position: int,
    before: Predictions,
    after: Predictions,
    *,
    group: str,
    classes: Sequence[str],
    said_by: tuple[str, str] = ("before", "after"),
) -> Answer:
    """Return what two models say about one of the pictures that both were asked about."""
    one = [Predictions(p.probabilities[[position]], p.labels[[position]]) for p in (before, after)]
    was, now = (p.probabilities[0] for p in one)
    return Answer(
        position=position,
        group=group,
        truth=classes[int(before.labels[position])],
        before=classes[int(was.argmax())],
        after=classes[int(now.argmax())],
        before_sure=float(was.max()),
        after_sure=float(now.max()),
        state=answer_changes(*one)[0],
        said_by=said_by,
    )
