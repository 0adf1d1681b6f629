"""A test set, or the validation split, with what both models make of it."""

from dataclasses import dataclass
from typing import Literal

from masktune.data.types import Split
from masktune.runs.open import RunView
from masktune.scores.evidence import Evidence, weigh
from masktune.scores.groups import ANY, Summary
from masktune.scores.result import Pair, scorer


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One test set of a run.

    Attributes:
        name: of the test set.
        split: its pictures.
        pair: what both models say about them.
        before: every accuracy of the model before.
        after: every accuracy of the model after.
    """

    name: str
    split: Split
    pair: Pair
    before: Summary
    after: Summary

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.pair.before.labels)

    @property
    def evidence(self) -> Evidence:
        """What the two models' answers tell about the change."""
        names = dict.fromkeys(score.attribute for score in self.before.scores)
        return weigh(
            self.pair.before, self.pair.after, classes=self.classes, attributes=list(names)
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, by label."""
        return tuple(dict.fromkeys(score.label for score in self.before.scores))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute names by number; none where no attribute is recorded."""
        names = dict.fromkeys(score.attribute for score in self.before.scores)
        return () if list(names) == [ANY] else tuple(names)

    @property
    def kind(self) -> Literal["groups", "classes"]:
        """What the pictures are sorted into."""
        return "classes" if self.after.worst_is == "class" else "groups"


def score_tests(view: RunView) -> list[Scored]:
    """Score every test set of a run."""
    return [
        _scored(view, name, view.bundle.tests[name], pair)
        for name, pair in view.predictions.tests.items()
    ]


def score_validation(view: RunView) -> Scored:
    """Score the validation split of a run."""
    return _scored(view, "validation", view.bundle.validation, view.predictions.validation)


def _scored(view: RunView, name: str, split: Split, pair: Pair) -> Scored:
    score = scorer(view.bundle)
    return Scored(
        name=name, split=split, pair=pair, before=score(pair.before), after=score(pair.after)
    )
