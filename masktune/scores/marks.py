"""A mark of a chart or a table, and the pictures behind it.

A mark is written ``kind:split:...``, such as ``group:biased:1``: that is what an address carries.
The pictures behind it are rows of that split, and as many as the mark says. To add a kind, add a
class to ``MARKS``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, Protocol, TypeVar
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from masktune.errors import ConfigError
from masktune.scores.flips import AnswerChange, answer_changes
from masktune.scores.groups import group_examples, group_name, group_scores
from masktune.scores.predictions import Predictions
from masktune.scores.result import Names, Pair
from masktune.scores.selective import DECILES, Ranked, deciles

Rows = npt.NDArray[np.int64]
"""Positions in a split, ascending, (n,)."""

Found = TypeVar("Found")
Order = Literal["data", "changed", "unsure", "sure"]

ALL = -1
"""Stands for every group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """The N pictures of a split, and what is known of them.

    Attributes:
        labels: (N,) int64, 0 .. K-1.
        groups: (N,) int64, by their place in ``names``.
        classes: K names.
        names: of the groups.
        said: what the models say, by "before" and "after", or of two runs by whose it is, that of
            the page last; none where nobody was asked.
        ranked: their answers by each score of selective classification.
        clues: positions of the pictures of each clue.
    """

    labels: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    classes: Sequence[str]
    names: Sequence[str]
    said: Mapping[str, Predictions] = field(default_factory=dict)
    ranked: Mapping[str, Ranked] = field(default_factory=dict)
    clues: Sequence[Rows] = ()

    @classmethod
    def of_pair(cls, pair: Pair, names: Names) -> "Examples":
        """Return the pictures of a split that both models were asked about."""
        called = {"classes": names.classes, "attributes": names.attributes}
        return cls(
            labels=pair.before.labels,
            groups=group_examples(pair.before, **called).ids,
            classes=names.classes,
            names=[group_name(score) for score in group_scores(pair.before, **called)],
            said={"before": pair.before, "after": pair.after},
            ranked=pair.ranked(),
        )

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.labels)


class Mark(Protocol):
    """What was clicked."""

    kind: ClassVar[str]

    @property
    def split(self) -> str:
        """The split whose pictures are behind it."""

    def rows(self, of: Examples) -> Rows:
        """Return the positions of the pictures behind it.

        Raises:
            ConfigError: it is no mark of these pictures.
        """

    def title(self, of: Examples) -> str:
        """Say whose pictures they are."""


@dataclass(frozen=True, slots=True)
class GroupMark:
    """All pictures of a group."""

    kind: ClassVar[str] = "group"
    split: str
    group: int

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        _check("group", self.group, of.names)
        return np.flatnonzero(of.groups == self.group)

    def title(self, of: Examples) -> str:  # noqa: D102
        return of.names[self.group]


@dataclass(frozen=True, slots=True)
class ClassMark:
    """All pictures of a class."""

    kind: ClassVar[str] = "class"
    split: str
    label: int

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        _check("class", self.label, of.classes)
        return np.flatnonzero(of.labels == self.label)

    def title(self, of: Examples) -> str:  # noqa: D102
        return of.classes[self.label]


@dataclass(frozen=True, slots=True)
class CellMark:
    """A cell of the confusion matrix of one model: pictures of a class that got an answer."""

    kind: ClassVar[str] = "cell"
    split: str
    model: str
    label: int
    answer: int

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        said = _of("model", self.model, of.said)
        _check("class", self.label, of.classes)
        _check("class", self.answer, of.classes)
        return np.flatnonzero((of.labels == self.label) & (said.answers() == self.answer))

    def title(self, of: Examples) -> str:  # noqa: D102
        return f"{of.classes[self.label]}, answered {of.classes[self.answer]} {self.model}"


@dataclass(frozen=True, slots=True)
class FlipMark:
    """Pictures whose answer became something, such as "fixed", of all groups or of one."""

    kind: ClassVar[str] = "flip"
    split: str
    state: str
    group: int = ALL
    run: str = ""

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        return _of_group(_of("change", self.state, _states(of)), of, self.group)

    def title(self, of: Examples) -> str:  # noqa: D102
        return f"{self.state.capitalize()}{_in_group(of, self.group)}"


@dataclass(frozen=True, slots=True)
class OnlyMark:
    """Pictures that one of two runs alone answers rightly: "this", on the page, or the "other"."""

    kind: ClassVar[str] = "only"
    split: str
    right: str
    against: str
    group: int = ALL

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        states = _states(of)
        alone = {"this": states["fixed"], "other": states["broken"]} if states else {}
        return _of_group(_of("run", self.right, alone), of, self.group)

    def title(self, of: Examples) -> str:  # noqa: D102
        which = "this run" if self.right == "this" else "the other"
        return f"Only {which} is right{_in_group(of, self.group)}"


@dataclass(frozen=True, slots=True)
class AnsweredMark:
    """The surest pictures by a score, as a point of the risk-coverage curve answers them.

    ``accepted`` of them, of all groups or what is of one. The score is that of the run on the page,
    or of another ``run`` by its id.
    """

    kind: ClassVar[str] = "answered"
    split: str
    score: str
    accepted: int
    group: int = ALL
    run: str = ""

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        return _of_group(_surest(of, self.score, self.accepted), of, self.group)

    def title(self, of: Examples) -> str:  # noqa: D102
        if self.accepted == len(of):
            return "All pictures" if self.group == ALL else of.names[self.group]
        return f"Answered by the {self.score} score{_in_group(of, self.group)}"


def all_of(split: str, total: int, group: int = ALL, *, run: str = "") -> AnsweredMark:
    """Return the mark of all ``total`` pictures of a split, or of a group, as a run answers them.

    >>> written(all_of("biased", 1000, 1, run="mine"))
    'answered:biased:after:1000:1:mine'
    """
    return AnsweredMark(split, "after", total, group, run)


@dataclass(frozen=True, slots=True)
class WrongMark:
    """The wrong answers among what such a point answers."""

    kind: ClassVar[str] = "wrong"
    split: str
    score: str
    accepted: int
    group: int = ALL

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        answered = _surest(of, self.score, self.accepted)
        return _of_group(answered & ~of.ranked[self.score].correct, of, self.group)

    def title(self, of: Examples) -> str:  # noqa: D102
        return f"Answered wrongly by the {self.score} score{_in_group(of, self.group)}"


@dataclass(frozen=True, slots=True)
class AbstainedMark:
    """The pictures that such a point abstains from."""

    kind: ClassVar[str] = "abstained"
    split: str
    score: str
    accepted: int
    group: int = ALL

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        return _of_group(~_surest(of, self.score, self.accepted), of, self.group)

    def title(self, of: Examples) -> str:  # noqa: D102
        return f"Abstained by the {self.score} score{_in_group(of, self.group)}"


@dataclass(frozen=True, slots=True)
class DecileMark:
    """A tenth of the pictures by how sure a score is, 1 the least sure."""

    kind: ClassVar[str] = "decile"
    split: str
    score: str
    decile: int

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        if not 1 <= self.decile <= DECILES:
            raise ConfigError(f"There is no decile {self.decile}.", f"Choose 1 to {DECILES}.")
        return np.flatnonzero(deciles(_of("score", self.score, of.ranked)) == self.decile)

    def title(self, of: Examples) -> str:  # noqa: ARG002, D102
        which = {1: ", the least sure", DECILES: ", the surest"}.get(self.decile, "")
        return f"Decile {self.decile} of {DECILES} by the {self.score} score{which}"


@dataclass(frozen=True, slots=True)
class ClueMark:
    """Training pictures in which the model looks at the same place, the commonest place first."""

    kind: ClassVar[str] = "clue"
    split: str
    clue: int

    def rows(self, of: Examples) -> Rows:  # noqa: D102
        if not 1 <= self.clue <= len(of.clues):
            raise ConfigError(
                f"There is no clue {self.clue} in these pictures: {len(of.clues)} were found.",
                "Choose one that the page shows.",
            )
        return of.clues[self.clue - 1]

    def title(self, of: Examples) -> str:  # noqa: ARG002, D102
        return f"Clue {self.clue}"


MARKS: Mapping[str, type[Mark]] = {
    mark.kind: mark
    for mark in (
        *(GroupMark, ClassMark, CellMark, FlipMark, OnlyMark),
        *(AnsweredMark, WrongMark, AbstainedMark, DecileMark, ClueMark),
    )
}
"""Every kind of mark, by its name."""


def written(mark: Mark) -> str:
    """Write a mark as an address carries it.

    >>> written(GroupMark("biased", 1)), written(AnsweredMark("my: test", "joint", 90))
    ('group:biased:1', 'answered:my%3A%20test:joint:90')
    """
    every = fields(mark)  # type: ignore[arg-type]
    parts = [getattr(mark, each.name) for each in every]
    while parts[-1] == every[len(parts) - 1].default:
        parts.pop()
    return ":".join([mark.kind, *(quote(str(part), safe="") for part in parts)])


def read_mark(text: str) -> Mark:
    """Read what ``written`` wrote.

    Raises:
        ConfigError: it is no mark.
    """
    kind, *parts = text.split(":")
    if (found := MARKS.get(kind)) is None:
        raise ConfigError(f"“{text}” names no pictures.", "Choose a mark on the page.")
    kinds = [each.type for each in fields(found)]  # type: ignore[arg-type]
    try:
        # One part too many makes one argument too many.
        each = zip([*kinds, *[str] * len(parts)], parts, strict=False)
        return found(*(int(part) if kind is int else unquote(part) for kind, part in each))
    except (TypeError, ValueError) as error:
        form = ":".join([kind, *(each.name.upper() for each in fields(found))])  # type: ignore[arg-type]
        raise ConfigError(f"“{text}” names no pictures.", f"Write it as {form}.") from error


def filters(of: Examples) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which pictures were answered how, (N,) by name; none where nobody was asked."""
    found = _states(of)
    for model, said in of.said.items():
        right, which = said.correct(), f" {model}" if len(of.said) == 2 else ""
        found |= {f"right{which}": right, f"wrong{which}": ~right}
    return found


def orders(of: Examples) -> tuple[Order, ...]:
    """Return the orders that pictures can be put in: by confidence only where somebody was asked.

    >>> nobody = np.zeros(2, dtype=np.int64)
    >>> orders(Examples(labels=nobody, groups=nobody, classes=["cow"], names=["cow"]))
    ('data',)
    """
    if len(of.said) == 2:
        return "data", "changed", "unsure", "sure"
    return ("data", "unsure", "sure") if of.said else ("data",)


def ordered(rows: Rows, of: Examples, *, by: Order, score: str = "") -> Rows:
    """Put pictures in an order; equal ones stay as in the data.

    Args:
        rows: positions, ascending.
        of: the split.
        by: "changed" puts those first whose right class gained or lost most; "unsure" and "sure" go
            by confidence.
        score: whose confidence; unless given the largest probability of the model after, or of the
            only one.
    """
    if by == "data":
        return rows
    if by == "changed":
        at = of.labels[rows]
        was, now = (said.probabilities[rows, at] for said in of.said.values())
        key = -np.abs(now - was)
    else:
        ranked = of.ranked.get(score)
        newest = [*of.said.values()][-1]
        sure = newest.probabilities.max(axis=1) if ranked is None else ranked.confidence
        key = sure[rows] if by == "unsure" else -sure[rows]
    found: Rows = rows[np.argsort(key, kind="stable")]
    return found


def _states(of: Examples) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which answers became what, (N,) by state; none unless both models were asked."""
    if len(of.said) < 2:
        return {}
    became = np.array(answer_changes(*of.said.values()))
    states: tuple[AnswerChange, ...] = ("fixed", "broken", "still wrong", "still right")
    return {state: became == state for state in states}


def _surest(of: Examples, score: str, accepted: int) -> npt.NDArray[np.bool_]:
    """Tell which pictures are the surest, (N,) bool; those that tie go together."""
    sure = _of("score", score, of.ranked).confidence
    found = np.zeros(len(sure), dtype=np.bool_)
    if 0 < accepted <= len(sure):
        found = sure >= np.sort(sure)[::-1][accepted - 1]
    if found.sum() != accepted:
        raise ConfigError(
            f"No threshold of the {score} score answers just {accepted:,} of these "
            f"{len(sure):,} pictures.",
            "Choose a point of the curve.",
        )
    return found


def _of_group(chosen: npt.NDArray[np.bool_], of: Examples, group: int) -> Rows:
    if group == ALL:
        return np.flatnonzero(chosen)
    _check("group", group, of.names)
    return np.flatnonzero(chosen & (of.groups == group))


def _in_group(of: Examples, group: int) -> str:
    return "" if group == ALL else f", {of.names[group]}"


def _check(what: str, number: int, names: Sequence[str]) -> None:
    if not 0 <= number < len(names):
        raise ConfigError(
            f"There is no {what} {number} in these pictures: they have {len(names)}.",
            "Choose one that the page shows.",
        )


def _of(what: str, name: str, known: Mapping[str, Found]) -> Found:
    if name not in known:
        raise ConfigError(
            f"There is no {what} “{name}” of these pictures.", "Choose a mark on the page."
        )
    return known[name]
