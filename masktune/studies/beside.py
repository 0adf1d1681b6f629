"""The paper's figures beside those of one run of its recipe."""

from dataclasses import asdict, dataclass, replace

from masktune.config import AUTO, MASKTUNE, RunConfig, TrainConfig
from masktune.recipes import RECIPES
from masktune.scores.result import RunResult
from masktune.studies.experiments import EXPERIMENTS, Arm
from masktune.studies.paper import Printed
from masktune.studies.tables import reading

TITLES = {"lr": "learning rate", "augment": "augmentation", "decay_at": "decay after epochs"}
"""Of settings of a training whose names are no words."""


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
    arms = {arm.name for arm in _arms(config)}
    return [
        Beside(printed=printed, ours=ours)
        for printed in experiment.printed.values()
        if printed.arm in arms and (ours := reading(result, printed)) is not None
    ]


def _arms(config: RunConfig) -> list[Arm]:
    """Return what a run did as arms of its experiment; a rival by its own code's figures first."""
    experiment = EXPERIMENTS.get(config.recipe)
    if experiment is None:
        return []
    every = (*experiment.at("paper").arms, *experiment.arms)
    return [arm for arm in every if _is_of(config, arm)]


def _is_of(config: RunConfig, arm: Arm) -> bool:
    """Tell whether a run did what an arm does; rivals also differ in how their epoch is chosen."""
    if (config.rival, config.masking) != (arm.rival, arm.masking):
        return False
    chosen = (config.rival_settings, config.training.best)
    return arm.rival == MASKTUNE or chosen == (arm.rival_settings, arm.best)


def differences(config: RunConfig, result: RunResult) -> list[str]:
    """Say in which settings a run departs from its recipe; one run is one seed in any case.

    A rival departs from the figures of its own code where the paper's table has it by these.
    """
    recipe = RECIPES.get(config.recipe)
    if recipe is None:
        return []
    arch = recipe.arch if config.arch == AUTO else config.arch
    usual = recipe.training
    if config.rival != MASKTUNE:
        usual = next((replace(a.training or usual, best=a.best) for a in _arms(config)), usual)
    ours, theirs = (_words(training) for training in (config.training, usual))
    # What was really taken, also from a model that brought its own.
    taken = next((one.lr for one in result.masking.rounds), None)
    rate = taken or config.finetune_lr or config.training.last_lr
    both: list[tuple[str, object, object]] = [
        ("network", arch, recipe.arch),
        *((TITLES.get(name, name.replace("_", " ")), ours[name], theirs[name]) for name in ours),
        ("finetuning rate", f"{rate:g}", f"{usual.last_lr:g}"),
        ("exceptions", config.exceptions, recipe.exceptions),
        ("stamp", config.stamp, recipe.stamp),
        ("correlation", config.correlation, recipe.correlation),
        ("batch norm", config.batch_norm, recipe.batch_norm),
        ("frame", config.frame or "as usual", recipe.frame or "as usual"),
        ("normalisation", config.normalise or "as usual", recipe.normalise or "as usual"),
        ("pretrained weights", config.weights or "none", recipe.weights or "none"),
    ]
    told = [f"{name} {is_} instead of {was}" for name, is_, was in both if is_ != was]
    if config.model is not None and config.model != "bundled":
        told.append("a given ERM model")
    return told


def _words(training: TrainConfig) -> dict[str, str]:
    """Return every setting of a training as text, by its name."""
    values = asdict(training).items()
    return {
        name: ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
        for name, value in values
    }
