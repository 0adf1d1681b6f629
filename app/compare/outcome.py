"""What tuning did on one test set of a run, picture by picture. Knows nothing of Streamlit."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from masktune.data.card import DatasetCard
from masktune.errors import RunFolderError
from masktune.runs.open import RunView
from masktune.scores.flips import AnswerChange, answer_changes
from masktune.scores.groups import group_examples, group_name
from masktune.show.painting import SMALL
from masktune.show.scored import Scored, score_tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run on one of its test sets.

    Attributes:
        run: id of the run.
        view: its settings, models and pictures.
        test: the test set with every accuracy.
        states: (N,) str, what became of every answer.
        groups: (N,) int64, the group of every picture.
    """

    run: str
    view: RunView
    test: Scored
    states: npt.NDArray[np.str_]
    groups: npt.NDArray[np.int64]

    @property
    def card(self) -> DatasetCard:
        """What is known about the dataset."""
        return self.view.bundle.card

    @property
    def photos(self) -> bool:
        """Whether the pictures are photographs, which may be encoded with a little loss."""
        return max(self.card.size) > SMALL

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


def outcomes(view: RunView, run: str) -> Mapping[str, Outcome]:
    """Give a run on each of its test sets, by name.

    Raises:
        RunFolderError: the dataset's pictures are not those that the run was tested on.
    """
    for name, pair in view.predictions.tests.items():
        split = view.bundle.tests.get(name)
        if split is None or not np.array_equal(split.labels.numpy(), pair.before.labels):
            raise RunFolderError(
                f"The pictures of test set '{name}' are not those that this run was tested on.",
                "Put the dataset's files back as they were, or finetune again.",
            )
    return {
        test.name: Outcome(
            run=run,
            view=view,
            test=test,
            states=np.array(answer_changes(test.pair.before, test.pair.after)),
            groups=group_examples(
                test.pair.before,
                classes=view.bundle.card.classes,
                attributes=view.bundle.card.attributes,
            ).ids,
        )
        for test in score_tests(view)
    }


UNREADABLE = (OSError, KeyError, ValueError, BadZipFile)
"""What reading a run folder raises when somebody changed the files in it."""


def unreadable(run: str, error: BaseException) -> RunFolderError:
    """Say that a finished run cannot be read, and which file is at fault where that is known."""
    name = getattr(error, "filename", None)
    what = f"{Path(name).name} of run '{run}'" if name else f"A file of run '{run}'"
    return RunFolderError(f"{what} is missing or damaged.", "Open another run, or finetune again.")
