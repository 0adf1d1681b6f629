"""The paper's figures beside those of one run of its recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from masktune.config import AUTO, RunConfig
from masktune.recipes import RECIPES, Recipe
from masktune.studies.paper import Figure
from masktune.studies.tables import key_of, reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A figure of the paper and the same number of a run.

    Attributes:
        figure: the paper's.
        ours: a fraction in [0, 1].
    """

    figure: Figure
    ours: float

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.ours - self.figure.value


def beside(config: RunConfig, document: Mapping[str, Any]) -> list[Beside]:
    """Give every figure that the paper prints for what a run did.

    Args:
        config: of the run.
        document: its ``result.json``.

    Returns:
        Empty for runs that are no arm of a recipe of the paper.
    """
    recipe = RECIPES.get(config.recipe)
    if recipe is None:
        return []
    arms = {arm.name for arm in recipe.arms if arm.masking == config.masking}
    found = []
    for figure in recipe.figures:
        if figure.arm not in arms or figure.test not in document["test"]:
            continue
        ours = reading(document, key_of(figure))
        if ours is not None:
            found.append(Beside(figure=figure, ours=ours))
    return found


def differences(config: RunConfig) -> list[str]:
    """Say in which settings a run departs from its recipe; one run is one seed in any case."""
    recipe = RECIPES.get(config.recipe)
    if recipe is None:
        return []
    told = [
        f"{name} {ours} instead of {theirs}"
        for name, ours, theirs in _settings(config, recipe)
        if ours != theirs
    ]
    if config.model is not None and config.model != "bundled":
        told.append("a given ERM model")
    return told


def _settings(config: RunConfig, recipe: Recipe) -> list[tuple[str, object, object]]:
    arch = recipe.arch if config.arch == AUTO else config.arch
    ours, theirs = config.training, recipe.training
    return [
        ("network", arch, recipe.arch),
        ("epochs", ours.epochs, theirs.epochs),
        ("batch size", ours.batch_size, theirs.batch_size),
        ("learning rate", ours.lr, theirs.lr),
        ("finetuning rate", config.finetune_lr or theirs.last_lr, theirs.last_lr),
        ("frame", config.frame or "as usual", recipe.frame or "as usual"),
        ("pretrained weights", config.weights or "none", recipe.weights or "none"),
    ]
