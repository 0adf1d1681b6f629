"""What makes the model after out of the model before: MaskTune, and beside it its rivals.

A rival is a file under ``training/rivals/`` with its ``tune``, its name in ``masktune.config`` and
its line in ``RIVALS``. Pages read names and titles before any picture is there, so PyTorch is
imported with the file, when it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from masktune.config import BY_RECIPE, LAST_LAYER, MASKTUNE, RivalName
from masktune.errors import ConfigError

if TYPE_CHECKING:
    from types import ModuleType

    from masktune.checkpoints.checkpoint import Checkpoint
    from masktune.config import RunConfig
    from masktune.data.types import DatasetBundle
    from masktune.training.context import Context, Tuned

Need = Literal["training groups", "validation groups", "unlabelled pictures"]
"""What a method asks of a dataset beside pictures and labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A method."""

    name: RivalName
    title: str  # as people call it
    hint: str  # what it does, one sentence for people who choose
    needs: tuple[Need, ...] = ()
    learns_validation: bool = False  # it learns from validation pictures and their labels
    has_own_score: bool = False  # beside probabilities: it learns when to abstain
    stages: tuple[str, ...] = ("finetune",)  # that its progress goes through
    has_own_check: bool = False  # its file has a ``check`` of dataset and settings
    reads_last_layer: bool = False  # it takes what goes into a linear last layer
    has_own_start_check: bool = False  # its file has a ``check_start`` of its network

    @property
    def tune(self) -> "Callable[[Context, Checkpoint], Tuned]":
        """What makes the model after out of the model before."""
        made: Callable[[Context, Checkpoint], Tuned] = self._file().tune
        return made

    def _file(self) -> "ModuleType":
        where = "masktune" if self.name == MASKTUNE else f"rivals.{self.name.replace('-', '_')}"
        return import_module(f"masktune.training.{where}")

    @property
    def by_recipe(self) -> bool:
        """Whether it trains a whole network by the recipe."""
        return self.name in BY_RECIPE

    @property
    def last_layer(self) -> bool:
        """Whether it retrains the last layer of the model before, and nothing else."""
        return self.name in LAST_LAYER

    def check(self, bundle: "DatasetBundle", config: "RunConfig") -> None:
        """Refuse a dataset that lacks what the method needs, and settings that do not fit it.

        It is asked before anything is trained.
        """
        for need in self.needs:
            split = bundle.train if need == "training groups" else bundle.validation
            if need != "unlabelled pictures" and not bundle.knows_groups(split):
                raise ConfigError(
                    f"{self.title} needs {need}, and '{bundle.card.key}' does not know the "
                    "attribute of every such picture.",
                    "Choose a dataset with attributes, say those of pictures of one's own by "
                    "--attributes, or take a method that needs none, such as "
                    f"{RIVALS[MASKTUNE].title}.",
                )
        if self.has_own_check:
            self._file().check(bundle, config)

    def check_start(self, start: "Checkpoint") -> None:
        """Refuse a network, trained or not, that the method cannot begin with."""
        if self.has_own_start_check:
            self._file().check_start(start)


_EVERY = (
    Rival(
        name=MASKTUNE,
        title="MaskTune",
        hint="Hides what the model leans on and finetunes for one epoch.",
    ),
    Rival(
        name="groupdro",
        title="Group DRO",
        hint="Trains with more weight on the group that is answered worst.",
        needs=("training groups",),
    ),
    Rival(
        name="cvar-dro",
        title="CVaR DRO",
        hint="Trains on the worst answered share of every batch.",
    ),
    Rival(
        name="lff",
        title="LfF",
        hint="Trains a second network on what a first, which prefers the easy, fails at.",
    ),
    Rival(
        name="sd",
        title="Spectral decoupling",
        hint="Trains with a penalty on large logits, so that one feature does not win early.",
    ),
    Rival(
        name="jtt",
        title="JTT",
        hint="Trains twice: the errors of a short training are shown many times in the second.",
        stages=("errors", "finetune"),
    ),
    Rival(
        name="divdis",
        title="DivDis",
        hint="Trains several heads that must disagree on pictures without labels; takes the best.",
        needs=("unlabelled pictures",),
        reads_last_layer=True,
    ),
    Rival(
        name="cim",
        title="CIM",
        hint="Trains on pictures that a small network changes so that classes stay apart.",
    ),
    Rival(
        name="dfr",
        title="DFR",
        hint="Retrains the last layer on validation pictures, as many of every group.",
        needs=("validation groups",),
        learns_validation=True,
        has_own_check=True,
        reads_last_layer=True,
    ),
    Rival(
        name="afr",
        title="AFR",
        hint="Retrains the last layer with more weight on pictures that the model is unsure of.",
        learns_validation=True,
        reads_last_layer=True,
    ),
    Rival(
        name="dac",
        title="DaC",
        hint="Retrains the last layer on hot parts pasted on pictures of another class.",
        stages=("heat", "finetune"),
        reads_last_layer=True,
    ),
    Rival(
        name="selectivenet",
        title="SelectiveNet",
        hint="Trains a second head that says which pictures to answer, for one coverage.",
        has_own_score=True,
        has_own_check=True,
        reads_last_layer=True,
    ),
    Rival(
        name="deep-gamblers",
        title="Deep Gamblers",
        hint="Trains one more output, which stands for abstaining and costs a share of the win.",
        has_own_score=True,
        has_own_check=True,
        reads_last_layer=True,
    ),
    Rival(
        name="osp",
        title="One-sided prediction",
        hint="Trains one detector for each class, with the error of each kept small.",
        has_own_score=True,
        has_own_start_check=True,
    ),
)
RIVALS: dict[RivalName, Rival] = {rival.name: rival for rival in _EVERY}
"""Every method by name; the first is the paper's."""
