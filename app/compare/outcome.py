"""What tuning did on one test set of a run, picture by picture. Knows nothing of Streamlit."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.flips import AnswerChange, answer_changes
from masktune.scores.groups import group_examples, group_name
from masktune.show.painting import SMALL


@dataclass(frozen=True)
class Outcome:
    """A run on one of its test sets, picture by picture.

    Attributes:
        test: the test set with every accuracy.
    """

    test: OpenSplit

    @property
    def run(self) -> str:
        """The run's id."""
        return self.test.run.id

    @property
    def view(self) -> OpenRun:
        """The run."""
        return self.test.run

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names, by label."""
        return self.test.classes

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute names, by number."""
        return self.test.attributes

    @property
    def photos(self) -> bool:
        """Whether the pictures are photographs, which may be encoded with a little loss."""
        return max(self.view.bundle.card.size) > SMALL

    @cached_property
    def states(self) -> npt.NDArray[np.str_]:
        """What became of every answer, (N,) str."""
        return np.array(answer_changes(self.test.pair.before, self.test.pair.after))

    @cached_property
    def groups(self) -> npt.NDArray[np.int64]:
        """The group of every picture, (N,) int64."""
        pair = self.test.pair
        return group_examples(pair.before, classes=self.classes, attributes=self.attributes).ids

    def group_names(self) -> dict[int, str]:
        """Name the groups that have pictures here, by number."""
        scores = enumerate(self.test.before.scores)
        return {number: group_name(score) for number, score in scores if score.count}

    def positions(
        self, *, state: AnswerChange | None = None, group: int | None = None
    ) -> list[int]:
        """Give the pictures of a state and a group, in the order of the test set; None is any."""
        chosen = np.ones(len(self.states), dtype=np.bool_)
        if state is not None:
            chosen &= self.states == state
        if group is not None:
            chosen &= self.groups == group
        found: list[int] = np.flatnonzero(chosen).tolist()
        return found

    def count(self, state: AnswerChange) -> int:
        """Count the pictures of a state."""
        return int((self.states == state).sum())


def outcomes(run: OpenRun) -> Mapping[str, Outcome]:
    """Return a run on each of its test sets, by name."""
    run.predictions  # noqa: B018 (what cannot be read is said before anything is drawn)
    return {name: Outcome(test) for name, test in run.tests.items()}
