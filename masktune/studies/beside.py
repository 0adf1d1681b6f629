"""The paper's figures beside those of one run of its recipe."""

from dataclasses import dataclass

from masktune.config import AUTO, RunConfig
from masktune.recipes import RECIPES
from masktune.scores.result import RunResult
from masktune.studies.experiments import EXPERIMENTS
from masktune.studies.paper import Printed
from masktune.studies.tables import reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A number of the paper and the same number of a run, a fraction in [0, 1]."""

    printed: Printed
    ours: float

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.ours - self.printed.value


def beside(config: RunConfig, result: RunResult) -> list[Beside]:
    """Return every number that the paper prints for what a run did.

    Empty for runs that are no arm of an experiment of the paper.
    """
    experiment = EXPERIMENTS.get(config.recipe)
    if experiment is None:
        return []
    arms = {arm.name for arm in experiment.arms if arm.masking == config.masking}
    return [
        Beside(printed=printed, ours=ours)
        for printed in experiment.printed.values()
        if printed.arm in arms and (ours := reading(result, printed)) is not None
    ]


def differences(config: RunConfig) -> list[str]:
    """Say in which settings a run departs from its recipe; one run is one seed in any case."""
    recipe = RECIPES.get(config.recipe)
    if recipe is None:
        return []
    arch = recipe.arch if config.arch == AUTO else config.arch
    ours, theirs = config.training, recipe.training
    both: list[tuple[str, object, object]] = [
        ("network", arch, recipe.arch),
        ("epochs", ours.epochs, theirs.epochs),
        ("batch size", ours.batch_size, theirs.batch_size),
        ("learning rate", ours.lr, theirs.lr),
        ("augmentation", ours.augment, theirs.augment),
        ("finetuning rate", config.finetune_lr or theirs.last_lr, theirs.last_lr),
        ("exceptions", config.exceptions, recipe.exceptions),
        ("frame", config.frame or "as usual", recipe.frame or "as usual"),
        ("pretrained weights", config.weights or "none", recipe.weights or "none"),
    ]
    told = [f"{name} {is_} instead of {was}" for name, is_, was in both if is_ != was]
    if config.model is not None and config.model != "bundled":
        told.append("a given ERM model")
    return told
