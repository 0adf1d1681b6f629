"""What makes the model after out of the model before: MaskTune, and beside it its rivals.

A rival is a file under ``training/rivals/`` and a line in ``RIVALS``. Its ``tune`` calls
``context.save`` after every part that need not be done again, and takes up ``context.saved``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.types import DatasetBundle
from masktune.errors import ConfigError
from masktune.training.context import Context, Tuned
from masktune.training.masktune import masktune

Need = Literal["training groups", "validation groups"]
"""What a method asks of a dataset beside pictures and labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A method."""

    name: str  # as in the settings
    title: str  # as people call it
    needs: frozenset[Need] = frozenset()
    tune: Callable[[Context, Checkpoint], Tuned]  # makes the model after out of the model before

    def check(self, bundle: DatasetBundle) -> None:
        """Refuse a dataset that lacks what the method needs."""
        for need in sorted(self.needs):
            split = bundle.train if need == "training groups" else bundle.validation
            if not bundle.knows_groups(split):
                raise ConfigError(
                    f"{self.title} needs {need}, and '{bundle.card.key}' does not know the "
                    "attribute of every such picture.",
                    "Choose a dataset with attributes, or a method that needs none, such as "
                    f"{RIVALS[USUAL].title}.",
                )


USUAL = "masktune"
RIVALS: dict[str, Rival] = {
    rival.name: rival for rival in (Rival(name=USUAL, title="MaskTune", tune=masktune),)
}
"""Every method by name; the first is the paper's."""
