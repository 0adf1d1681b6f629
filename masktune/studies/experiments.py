"""The experiments that ``reproduce`` repeats: a recipe, and the arms it compares."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from masktune.checkpoints.settings import NOTHING_HIDDEN
from masktune.config import (
    MASKTUNE,
    Best,
    MaskingConfig,
    RivalConfig,
    RivalName,
    Statistics,
    TrainConfig,
    options,
)
from masktune.data.augment import NONE
from masktune.data.card import Stamp
from masktune.data.fills import FILLS
from masktune.errors import check_choice
from masktune.recipes import OTHER_WAY, RECIPES, TABLES, Recipe, Scale, one_epoch
from masktune.studies.figures_of_rivals import FIGURES
from masktune.studies.paper import Number, Printed, printed
from masktune.training.methods import RIVALS

ONE_MORE = "one more epoch"
"""Name of the arm that is always run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way that an experiment compares, by its name in tables.

    Without ``training`` of an ERM model of its own, or a ``stamp`` of its own on the pictures, it
    starts from the recipe's ERM model, like the others; without ``finetune_lr`` it takes the last
    rate of the ERM. A ``rival`` takes the epoch that is ``best`` on validation, with its settings;
    its ``training`` is its own and no ERM's.
    """

    name: str
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    rival: RivalName = MASKTUNE
    rival_settings: RivalConfig = field(default_factory=RivalConfig)
    best: Best = "last"
    training: TrainConfig | None = None
    finetune_lr: float | None = None
    stamp: Stamp | None = None

    @property
    def has_own_erm(self) -> bool:
        """Whether an ERM model is trained for this arm alone."""
        own = self.training is not None and self.rival == MASKTUNE
        return own or self.stamp is not None


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
        """Return the experiment at a scale; at scale paper rivals have their own figures."""
        recipe = self.recipe.at(scale)
        # Where the rate does not decay, its first is its last: no arm is run twice.
        last = recipe.training.last_lr
        usual = [arm.masking for arm in self.arms if arm.finetune_lr is None]
        usual.append(MaskingConfig(strategy="none"))
        arms = tuple(
            arm
            for arm in self.arms
            if arm.finetune_lr != last or arm.stamp is not None or arm.masking not in usual
        )
        if scale == "tiny":
            arms = tuple(
                replace(arm, training=arm.training and one_epoch(arm.training)) for arm in arms
            )
        if scale == "paper":
            arms = tuple(_as_published(arm, recipe) for arm in arms)
        return replace(self, recipe=recipe, arms=arms)


def _as_published(arm: Arm, recipe: Recipe) -> Arm:
    """Return a rival's arm with the figures of its own code, where these are known."""
    figures = FIGURES.get(recipe.name, {}).get(arm.rival)
    if figures is None:
        return arm
    of_training = {option.name for option in options(TrainConfig)}
    training = {name: value for name, value in figures.items() if name in of_training}
    settings = {name: value for name, value in figures.items() if name not in of_training}
    return replace(
        arm,
        training=replace(recipe.training, **training),
        rival_settings=replace(arm.rival_settings, **settings),
    )


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


def _other_way(usual: float = 2, *, judged: bool = True) -> Iterator[Arm]:
    """List what else may be hidden, and what may stand where pixels are hidden.

    Args:
        usual: the k of MaskTune.
        judged: whether the pictures say where their clue is.
    """
    yield Arm(name="MaskTune", masking=MaskingConfig(k=usual))
    yield _RANDOM
    for k in (usual, 0):
        yield Arm(name=f"cold, k = {k:g}", masking=MaskingConfig(strategy="cold", k=k))
        yield Arm(name=f"paste, k = {k:g}", masking=MaskingConfig(strategy="paste", k=k))
    if judged:
        known = MaskingConfig(strategy="judged")
        yield Arm(name="judged", masking=known)
        yield Arm(name="judged, mean colour", masking=replace(known, fill="mean"))
    for fill in FILLS.values():
        if fill.name != "black":
            name = f"MaskTune, {fill.title.lower()}"
            yield Arm(name=name, masking=MaskingConfig(k=usual, fill=fill.name))


def _unaugmented(recipe: Recipe) -> Arm:
    """Return MaskTune after an ERM that differs in this alone."""
    training = replace(recipe.training, augment=NONE)
    return Arm(name="MaskTune, no augmentation", masking=recipe.masking, training=training)


FASTER = 5
"""How much faster than the last rate of the ERM pretrained backbones are finetuned as well."""


def _faster(recipe: Recipe, arms: Iterable[Arm]) -> Iterator[Arm]:
    """Give arms, and one more epoch, at a faster rate.

    A pretrained backbone ends at a rate at which one epoch hardly moves it.
    """
    rate = FASTER * recipe.training.last_lr
    for arm in (*arms, Arm(name=ONE_MORE, masking=MaskingConfig(strategy="none"))):
        yield replace(arm, name=f"{arm.name}, rate x {FASTER}", finetune_lr=rate)


def _backbone(recipe: Recipe, ks: Sequence[float]) -> Iterator[Arm]:
    """List thresholds at the last rate and at a faster one, and the controls at the faster one."""
    at_k = [Arm(name=f"k = {k:g}", masking=MaskingConfig(k=k)) for k in ks]
    yield from at_k
    yield from _faster(recipe, [*at_k, _RANDOM])


def _other_way_backbone(recipe: Recipe) -> Iterator[Arm]:
    """List what else may be hidden on photographs that nobody has judged.

    On the coarse map of a backbone k = 2 hides nothing in many pictures, so that k = 1 is taken.
    """
    yield from _faster(recipe, _other_way(1, judged=False))


def _stamps(recipe: Recipe) -> Iterator[Arm]:
    """List the arms of a backbone, and the ceiling: the same cats without a stamp."""
    yield from _backbone(recipe, (0.5, 1, 2))
    yield Arm(
        name="without stamps",
        masking=MaskingConfig(k=1),
        finetune_lr=FASTER * recipe.training.last_lr,
        stamp="none",
    )


def _rival(name: RivalName, best: Best, *, said: str = "", **settings: float) -> Arm:
    """Return a rival's arm; the paper's tables tell apart how its epoch was chosen."""
    return Arm(
        name=f"{RIVALS[name].title}{said}",
        masking=NOTHING_HIDDEN,
        rival=name,
        rival_settings=RivalConfig(**settings),  # type: ignore[arg-type]
        best=best,
    )


def _against_groups(names: Sequence[RivalName]) -> Iterator[Arm]:
    """List rivals whose epoch is chosen by the groups of validation pictures."""
    for name in names:
        said = "" if RIVALS[name].needs else ", validation groups"
        yield _rival(name, "worst-group", said=said)


def _abstaining() -> Iterator[Arm]:
    """List rivals that learn when to abstain; SelectiveNet once for each coverage."""
    for share in (1.0, 0.95, 0.9):
        said = f" for {share:.0%}"
        yield _rival("selectivenet", "average", said=said, target_coverage=share)
    yield _rival("deep-gamblers", "average")
    yield _rival("osp", "average")


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
_WITHOUT_GROUPS: tuple[RivalName, ...] = ("cvar-dro", "lff", "jtt", "divdis")
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
    "stamped-pets": tuple(_stamps(RECIPES["stamped-pets"])),
    "stamped-pets-one-sided": tuple(_stamps(RECIPES["stamped-pets-one-sided"])),
    "waterbirds-pretrained": tuple(_backbone(RECIPES["waterbirds-pretrained"], (0, 1, 2))),
    "cifar10-selective": (_HEAT,),
    "cifar10-augment": (_HEAT, _unaugmented(RECIPES["cifar10-augment"])),
    "svhn-selective": (_HEAT,),
    "cats-vs-dogs-selective": (_HEAT,),
    "celeba-table": (
        _HEAT,
        *_against_groups(("groupdro", "cvar-dro", "lff", "sd", "jtt", "cim")),
        *(_rival(name, "average") for name in _WITHOUT_GROUPS),
    ),
    "waterbirds-table": (_HEAT, *_against_groups(("groupdro",))),
    "imagenet9-table": (_HEAT, _rival("cim", "average")),
    **{name: (_HEAT, *_abstaining()) for name in TABLES if name.startswith("selective-table")},
    **{name: tuple(_other_way()) for name in OTHER_WAY},
    "other-way-waterbirds": tuple(_other_way_backbone(RECIPES["other-way-waterbirds"])),
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
    check_choice("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
