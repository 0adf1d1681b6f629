"""The experiments that ``reproduce`` repeats: a recipe, and the arms it compares."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

from masktune.config import MaskingConfig, Statistics, TrainConfig
from masktune.errors import ConfigError
from masktune.recipes import RECIPES, Recipe, Scale, one_epoch
from masktune.studies.paper import Number, Printed, printed

ONE_MORE = "one more epoch"
"""Name of the arm that is always run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way that an experiment compares, by its name in tables.

    Without ``training`` of an ERM model of its own it starts from the recipe's, like the others;
    without ``finetune_lr`` it takes the last rate of the ERM.
    """

    name: str
    masking: MaskingConfig
    training: TrainConfig | None = None
    finetune_lr: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """How the ERM model is trained, what is compared, and how often: the paper repeats three times.

    Beside the arms one more epoch with nothing hidden is always run.
    """

    recipe: Recipe
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...] = (0, 1, 2)

    @property
    def printed(self) -> dict[Number, Printed]:
        """What the paper prints for it, however its exceptions were made."""
        return printed(self.recipe.name.removesuffix("-random"))

    def at(self, scale: Scale) -> "Experiment":
        """Return the experiment at a scale."""
        recipe = self.recipe.at(scale)
        # Where the rate does not decay, its first is its last: no arm is run twice.
        arms = tuple(arm for arm in self.arms if arm.finetune_lr != recipe.training.last_lr)
        return replace(
            self, recipe=recipe, arms=tuple(map(_tiny, arms)) if scale == "tiny" else arms
        )


def _tiny(arm: Arm) -> Arm:
    return arm if arm.training is None else replace(arm, training=one_epoch(arm.training))


def _thresholds() -> Iterator[Arm]:
    """List the thresholds that the paper says it tried."""
    for k in (0, 1, 2, 3):
        for statistics in get_args(Statistics):
            over = "positive heat" if statistics == "positive" else "all pixels"
            yield Arm(name=f"k = {k}, {over}", masking=MaskingConfig(k=k, statistics=statistics))
    yield Arm(name="mean of all pictures", masking=MaskingConfig(strategy="global"))
    yield Arm(name="soft", masking=MaskingConfig(strategy="soft"))
    yield Arm(name="hottest 5%", masking=MaskingConfig(strategy="topk", top_fraction=0.05))


def _study(recipe: Recipe) -> Iterator[Arm]:
    """List one setting changed at a time."""
    training, masking = recipe.training, recipe.masking
    yield Arm(name="as in the recipe", masking=masking)
    for name, own in {
        "ERM of 1 epoch": replace(training, epochs=1),
        "ERM of 12 epochs": replace(training, epochs=12),
        "batch 128": replace(training, batch_size=128),
        "batch 128 at rate 0.04": replace(training, batch_size=128, lr=0.04),
    }.items():
        yield Arm(name=name, masking=masking, training=own)
    for rate in (0.005, 0.00125):
        yield Arm(name=f"finetune at rate {rate}", masking=masking, finetune_lr=rate)
    yield Arm(name="k = 1.5", masking=replace(masking, k=1.5))
    yield Arm(name="k = 2.5", masking=replace(masking, k=2.5))
    yield Arm(name="k = 2, all pixels", masking=replace(masking, statistics="all"))


_HEAT = Arm(name="MaskTune", masking=MaskingConfig())
_RANDOM = Arm(name="RandMask", masking=MaskingConfig(strategy="random"))
_TWICE = (
    Arm(name="accumulative", masking=MaskingConfig(rounds=3)),
    Arm(name="non-accumulative", masking=MaskingConfig(rounds=3, accumulate=False)),
)
# The paper says "the last decayed learning rate"; the authors' code never decays it.
_FIRST_RATE, _FIRST_RATE_TWICE = (
    replace(arm, name=f"{arm.name} at the first rate", finetune_lr=0.01)
    for arm in (_HEAT, _TWICE[0])
)
_ARMS = {
    "biased-mnist-5k": (_HEAT, _RANDOM),
    "thresholds-mnist-5k": tuple(_thresholds()),
    "two-squares-mnist-5k": _TWICE,
    "cows-and-camels": (_HEAT, _RANDOM),
    "cows-and-camels-stamp": (_HEAT, _RANDOM),
    "mnist-square": (_HEAT, _FIRST_RATE),
    "mnist-randmask": (_RANDOM,),
    "mnist-two-squares": (*_TWICE, _FIRST_RATE_TWICE),
    "mnist-square-random": (_HEAT, _FIRST_RATE),
    "mnist-randmask-random": (_RANDOM,),
    "mnist-two-squares-random": (*_TWICE, _FIRST_RATE_TWICE),
    "mnist-two-squares-study": tuple(_study(RECIPES["mnist-two-squares-study"])),
    "celeba": (_HEAT,),
    "waterbirds": (_HEAT,),
    "imagenet9": (_HEAT,),
    "cifar10-selective": (_HEAT,),
    "svhn-selective": (_HEAT,),
    "cats-vs-dogs-selective": (_HEAT,),
}
_FIVE_SEEDS = ("biased-mnist-5k", "two-squares-mnist-5k", "cows-and-camels-stamp")

EXPERIMENTS: dict[str, Experiment] = {
    name: Experiment(
        recipe=RECIPES[name], arms=arms, seeds=tuple(range(5 if name in _FIVE_SEEDS else 3))
    )
    for name, arms in _ARMS.items()
}
"""By the name of the recipe, in the order of the results page."""


def experiment(name: str) -> Experiment:
    """Return an experiment by name."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"There is no experiment '{name}'.", f"Choose {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]
