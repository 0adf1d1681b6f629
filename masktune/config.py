"""The settings of a run: typed, checked when made, written to and read from ``config.json``."""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from masktune.data.augment import NONE, named
from masktune.data.card import (
    CORRELATED,
    HEEDABLE,
    Exceptions,
    Stamp,
    Validation,
    check_correlation,
)
from masktune.data.fills import FillName
from masktune.data.frame import frame
from masktune.data.normalisations import normalisation
from masktune.datasets.catalogue import CATALOGUE
from masktune.errors import ConfigError, check_choice

AUTO = "auto"
"""The architecture of a run that takes what its checkpoint says."""

BUNDLED = "bundled"
"""The model that comes with a demo."""


def names_code(arch: str) -> bool:
    """Tell whether building an architecture would run the user's own code.

    What comes over the network, a page's form or a stored run, must be refused by this.

    >>> names_code("mypackage.nets:make"), names_code("resnet18"), names_code("timm/resnet18")
    (True, False, False)
    """
    return ":" in arch


Strategy = Literal["heat", "random", "none", "soft", "global", "topk", "cold", "paste", "judged"]
"""What is hidden: MaskTune; RandMask; nothing (one more epoch); the paper's other three; the other
way round: all but what is hot, that on another picture; and where the clue is known to be.

See ``masktune.heat.strategies``."""

_WITH_K: frozenset[Strategy] = frozenset({"heat", "cold", "paste"})
_HEATED: frozenset[Strategy] = _WITH_K | {"soft", "global", "topk"}
_FILLED: frozenset[Strategy] = _HEATED - {"paste"} | {"random", "judged"}

Statistics = Literal["positive", "all"]
"""Which heat values mu and sigma are taken over: the authors' code, or the paper's text."""

Method = Literal[
    "xgradcam",
    "gradcam",
    "gradcam++",
    "layercam",
    "hirescam",
    "eigencam",
    "scorecam",
    "ablationcam",
]
"""The explainer that gives the heat; the first is the paper's. See ``masktune.heat.explainers``."""

RivalName = Literal[
    "masktune",
    "groupdro",
    "cvar-dro",
    "lff",
    "sd",
    "jtt",
    "divdis",
    "cim",
    "dfr",
    "afr",
    "dac",
    "selectivenet",
    "deep-gamblers",
    "osp",
]
"""What makes the model after: MaskTune; methods that train by the recipe; those that retrain the
last layer of the model before; those that learn when to abstain. See ``masktune.training.methods``.
"""

MASKTUNE: RivalName = "masktune"
LAST_LAYER: frozenset[RivalName] = frozenset({"dfr", "afr", "dac"})
BY_RECIPE: frozenset[RivalName] = frozenset(get_args(RivalName)) - LAST_LAYER - {MASKTUNE}
_MASKTUNE: frozenset[RivalName] = frozenset({MASKTUNE})
BY_HEAT: frozenset[RivalName] = frozenset({MASKTUNE, "dac"})

Start = Literal["scratch", "erm"]
"""Where a rival that trains by the recipe begins: as the ERM did, or with the model before."""

Unlabelled = Literal["validation", "test"]
"""Whose pictures, without their labels, a rival may look at."""

OptimizerName = Literal["sgd", "adam", "adamw"]

Schedule = Literal["steps", "cosine", "constant"]
"""How the rate of the ERM falls: by a factor after some epochs, along half a cosine, or never."""

COSINE_END = 0.01
"""Share of the rate that the cosine ends with: at zero, a finetune at the last rate would do
nothing."""

Best = Literal["last", "average", "worst-group"]
"""Which epoch's model the ERM gives: the last, or the best by accuracy on validation."""

Head = Literal["new", "kept"]
"""What becomes of the last layer of pretrained weights: a new one in its place, or it trains on."""

BatchNorm = Literal["learnt", "frozen"]
"""What becomes of batch norm's running mean and deviation in a training."""

BODY = "body"
"""Freezes all but the head, the last layer; NONE freezes nothing, other words name a layer."""

Device = Literal["auto", "cpu", "cuda", "mps"]

Part = Literal["pictures", "model", "training", "masking", "finetune"]
"""What an option decides: what is looked at (the first two), or what is done with it."""


Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A setting that people can give, on the command line, on a page or in an address.

    Attributes:
        name: of the field.
        within: the field of RunConfig that holds it, "" for RunConfig itself.
        kind: str, int, float or bool.
        choices: all there are; empty where anything goes.
        help: what it is, in a few words.
        part: what it decides.
        used_by: the strategies that look at it; empty for all.
        rivals: the methods that look at it; empty for all.
    """

    name: str
    within: str = ""
    kind: type
    choices: tuple[str, ...]
    help: str
    part: Part
    used_by: frozenset[Strategy] = frozenset()
    rivals: frozenset[RivalName] = frozenset()

    @property
    def flag(self) -> str:
        """Return its name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    def of(self, config: "RunConfig") -> Value:
        """Return its value in some settings; several numbers are a text with commas between."""
        holder = getattr(config, self.within) if self.within else config
        value = getattr(holder, self.name)
        if isinstance(value, tuple):
            return ",".join(map(str, value)) or NONE
        said: Value = value
        return said

    def read(self, text: str) -> Value:
        """Return the value that a text says; a ValueError where it says none."""
        if self.kind is not bool:
            value: Value = self.kind(text)
            return value
        if text not in ("True", "False"):
            raise ValueError(f"'{text}' is neither True nor False")
        return text == "True"


def option(
    default: object = MISSING,
    *,
    help: str,
    part: Part | None = None,
    used_by: Iterable[Strategy] = (),
    rivals: Iterable[RivalName] = (),
    compare: bool = True,
) -> Any:  # noqa: ANN401 - as dataclasses.field, whose value stands for one of any type
    """Return a dataclass field that is an option of a run.

    The arguments are those of Option; what is left out is as ``shared`` of the class says. What is
    not to be compared decides nothing in a run.
    """
    told = {"part": part, "used_by": frozenset(used_by), "rivals": frozenset(rivals)}
    known = {"help": help, **{name: one for name, one in told.items() if one}}
    return field(default=default, metadata=known, compare=compare)


@cache
def options(config: type) -> tuple[Option, ...]:
    """Return the options of a class of settings in the order of its fields, nested ones too.

    >>> [option.flag for option in options(TrainConfig)][:3]
    ['--epochs', '--batch-size', '--lr']
    """
    found: list[Option] = []
    kinds = get_type_hints(config)
    for own in dataclasses.fields(config):
        kind = kinds[own.name]
        if dataclasses.is_dataclass(kind):
            nested = options(kind)  # type: ignore[arg-type]
            found += [dataclasses.replace(option, within=own.name) for option in nested]
        elif own.metadata:
            if isinstance(kind, UnionType):
                kind = next(one for one in get_args(kind) if one is not NoneType)
            choices = get_args(kind) if get_origin(kind) is Literal else ()
            kind = str if choices or get_origin(kind) is tuple else kind
            known = {**getattr(config, "shared", {}), **own.metadata}
            found.append(Option(name=own.name, kind=kind, choices=choices, **known))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How the ERM model is trained, and with which optimiser it is finetuned."""

    shared: ClassVar = {"part": "training"}

    epochs: int = option(help="epochs of the ERM training")
    batch_size: int = option(help="pictures a step")
    lr: float = option(help="learning rate of the ERM training")
    augment: str = option(
        NONE, help="how training pictures change by chance after hiding, names with commas between"
    )
    optimizer: OptimizerName = option("sgd", help="rule of the steps, in ERM and finetune")
    momentum: float = option(0.9, help="share of its last step that sgd takes again, 0 to below 1")
    weight_decay: float = option(1e-4, help="pull of every weight towards zero")
    decay_at: tuple[int, ...] = option(
        (),
        help="epochs after which the rate is multiplied by --decay-factor, such as 25,50, or none",
    )
    decay_factor: float = option(0.5, help="what the rate is multiplied by at --decay-at")
    schedule: Schedule = option(
        "steps", help="how the rate of the ERM falls; cosine ends at a hundredth"
    )
    warmup: float = option(
        0.0, help="epochs, 0.5 for half of one, in which the rate rises step by step to --lr"
    )
    best: Best = option("last", help="whose model the ERM gives: the best epoch's on validation")
    patience: int | None = option(
        None, help="the ERM ends after so many epochs without a better one by --best"
    )
    label_smoothing: float = option(
        0.0, help="share of every label that is given to all classes alike, 0 to below 1"
    )
    freeze: str = option(
        NONE,
        help="what does not learn, in ERM and finetune: none, body (all but the last layer), or a "
        "layer and all before it",
    )
    erm_batch_norm: BatchNorm = option(
        "learnt",
        help="batch norm's running statistics in the ERM; frozen: as pretrained weights have them",
    )

    def __post_init__(self) -> None:
        _at_least_one("number of epochs", self.epochs)
        _at_least_one("batch size", self.batch_size)
        _positive("learning rate", self.lr)
        named(self.augment)
        _check_choices(self, best="best epoch", erm_batch_norm="batch norm")
        _share("momentum", self.momentum)
        _share("label smoothing", self.label_smoothing)
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ConfigError(
                f"The weight decay is {self.weight_decay}.", "Give 0 or a little, such as 0.0001."
            )
        if not 0 < self.decay_factor <= 1:
            raise ConfigError(
                f"The rate would be multiplied by {self.decay_factor}.",
                "Give a decay factor above 0 and up to 1, such as 0.1.",
            )
        if any(at < 1 for at in self.decay_at) or [*self.decay_at] != sorted({*self.decay_at}):
            raise ConfigError(
                f"The rate would fall after the epochs {', '.join(map(str, self.decay_at))}.",
                "Give each epoch once, from 1 up and in order, such as 25,50,75.",
            )
        if not 0 <= self.warmup < self.epochs:
            raise ConfigError(
                f"The warm-up takes {self.warmup:g} epochs and the training {self.epochs}.",
                "Give the warm-up fewer epochs, 0.5 for half of one or 0 for none.",
            )
        if self.patience is not None:
            _at_least_one("patience", self.patience)
        if not self.freeze.strip():
            raise ConfigError(
                "It is not said what is frozen.", f"Give {NONE}, {BODY} or the name of a layer."
            )

    def rate(self, moment: float, *, step: float = 0.0) -> float:
        """Return the learning rate of the step that begins at a moment.

        Both are in epochs, the moment from 0, and ``step`` is how long it takes.

        >>> config = TrainConfig(epochs=4, batch_size=1, lr=0.5, decay_at=(2,), warmup=1)
        >>> [config.rate(moment, step=0.25) for moment in (0.0, 0.25, 0.75, 1.75, 2.0)]
        [0.125, 0.25, 0.5, 0.5, 0.25]
        """
        rate = self.lr
        if self.schedule == "steps":
            # One after the other, as PyTorch's schedulers do: a power may differ in the last bit.
            for at in self.decay_at:
                rate *= self.decay_factor if at <= moment else 1.0
        elif self.schedule == "cosine" and moment > self.warmup:
            done = (moment - self.warmup) / (self.epochs - self.warmup)
            rate *= COSINE_END + (1 - COSINE_END) * (1 + math.cos(math.pi * done)) / 2
        warmed = moment + step  # at its end: a first step at rate 0 would be none
        return rate * warmed / self.warmup if warmed < self.warmup else rate

    @property
    def last_lr(self) -> float:
        """The rate that the schedule ends with: the paper's "last decayed learning rate".

        It is the same whichever epoch is the best one, or the last by patience.

        >>> TrainConfig(epochs=100, batch_size=128, lr=0.01, decay_at=(25, 50, 75, 100)).last_lr
        0.00125
        """
        if self.schedule == "cosine":
            return self.lr * COSINE_END
        falls = sum(at < self.epochs for at in self.decay_at) if self.schedule == "steps" else 0
        return self.lr * self.decay_factor**falls


def epochs_named(text: str) -> tuple[int, ...]:
    """Return the epochs that a text names; none for "none".

    >>> epochs_named("25, 50")
    (25, 50)

    Raises:
        ConfigError: it names something else.
    """
    try:
        return () if text == NONE else tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(
            f"The rate would fall after the epochs '{text}'.",
            f"Give whole numbers with commas between, such as 25,50,75, or {NONE}.",
        ) from error


def names_listed(text: str) -> tuple[str, ...]:
    """Return the names that a text lists with commas between.

    >>> names_listed("landbird, waterbird")
    ('landbird', 'waterbird')

    Raises:
        ConfigError: one is empty, or two are the same.
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ConfigError(
            f"The class names are '{text}'.",
            "Give each class a name of its own, with commas between, such as landbird,waterbird.",
        )
    return names


def order_listed(text: str) -> tuple[int, ...]:
    """Return the class of each output of a model that a text lists.

    >>> order_listed("1, 0")
    (1, 0)

    Raises:
        ConfigError: these are not the numbers from 0 up, each once.
    """
    try:
        order = tuple(int(part) for part in text.split(","))
    except ValueError:
        order = ()
    if not order or sorted(order) != [*range(len(order))]:
        raise ConfigError(
            f"The order of the classes is '{text}'.",
            "Give for each output of the model the number of its class, from 0, each once and "
            "with commas between, such as 1,0.",
        )
    return order


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingConfig:
    """How the masked training set is made."""

    shared: ClassVar = {"part": "masking", "rivals": _MASKTUNE}

    strategy: Strategy = option("heat", help="what is hidden")
    k: float = option(2.0, help="threshold in sigmas above the mean heat, 0 to 3", used_by=_WITH_K)
    statistics: Statistics = option(  # the authors' code; "all" is the paper's text
        "positive", help="mu and sigma over", used_by={*_WITH_K, "global"}
    )
    rounds: int = option(1, help="how often to mask and finetune")
    accumulate: bool = option(True, help="later rounds hide in addition")
    top_fraction: float = option(0.05, help="share of the pixels that topk hides", used_by={"topk"})
    method: Method = option("xgradcam", help="explainer", rivals=BY_HEAT, used_by=_HEATED)
    layer: str | None = option(
        None,
        help="where heat is read; by default the last spatial feature map",
        rivals=BY_HEAT,
        used_by=_HEATED,
    )
    fill: FillName = option("black", help="what stands where pixels are hidden", used_by=_FILLED)
    regions: str | None = option(
        None,
        help="boxes of what judged hides, a CSV of the columns file, left, top, right, bottom; by "
        "default where the dataset says that the clue is",
        used_by={"judged"},
    )

    def __post_init__(self) -> None:
        _check_choices(self)
        if not (math.isfinite(self.k) and self.k >= 0):
            raise ConfigError(
                f"k is {self.k}.",
                "Give 0 (hides most) to 3; the paper's choice is 2.",
            )
        if self.rounds < 1:
            raise ConfigError(
                f"Masking needs at least one round, not {self.rounds}.",
                "Set rounds to 1 for MaskTune as published.",
            )
        if not 0 < self.top_fraction < 1:
            raise ConfigError(
                f"The hidden share of topk is {self.top_fraction}.",
                "Give a number between 0 and 1, such as 0.05.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalConfig:
    """What only rivals look at; usually as each method's own code has it."""

    shared: ClassVar = {"part": "finetune"}

    group_step: float = option(0.01, help="step size of Group DRO's weights", rivals={"groupdro"})
    group_adjustment: float = option(
        0.0,
        help="what Group DRO adds to a group's loss, divided by the root of its pictures",
        rivals={"groupdro"},
    )
    worst_share: float = option(
        0.1,
        help="share of each batch, the worst answered, that CVaR DRO learns from",
        rivals={"cvar-dro"},
    )
    bias_power: float = option(
        0.7,
        help="how much LfF's first network prefers what it finds easy, above 0 to 1",
        rivals={"lff"},
    )
    penalty: float | None = option(
        None,
        help="weight of what a method adds to the cross entropy; by default the method's own",
        rivals={"sd", "divdis", "cim", "afr", "selectivenet"},
    )
    error_epochs: int | None = option(
        None,
        help="epochs of ERM after which JTT collects errors; by default a fifth of --epochs",
        rivals={"jtt"},
    )
    error_weight: int = option(50, help="times that JTT shows an error of that ERM", rivals={"jtt"})
    heads: int = option(2, help="heads of DivDis", rivals={"divdis"})
    unlabelled: Unlabelled = option(
        "validation", help="whose pictures DivDis looks at without their labels", rivals={"divdis"}
    )
    focus: float = option(
        10.0,
        help="how strongly AFR weighs pictures that the model before is unsure of",
        rivals={"afr"},
    )
    easy_share: float = option(
        0.6, help="share of a class, the best answered, whose hot parts DaC pastes", rivals={"dac"}
    )
    target_coverage: float = option(
        0.9,
        help="share of the pictures that SelectiveNet learns to answer",
        rivals={"selectivenet"},
    )
    payoff: float | None = option(
        None,
        help="what Deep Gamblers win by a right answer, above 1 to the number of classes; by "
        "default 2.2, or that number where it is less",
        rivals={"deep-gamblers"},
    )
    trade_off: float = option(1.0, help="what OSP pays for a larger error", rivals={"osp"})

    def __post_init__(self) -> None:
        _check_choices(self)
        shares = ("bias_power", "worst_share", "easy_share", "target_coverage")
        for option in options(RivalConfig):
            value = getattr(self, option.name)
            number, problem = not option.choices and value is not None, f"{option.flag} is {value}."
            if number and not (math.isfinite(value) and value >= 0):
                raise ConfigError(problem, f"Give a number from 0 up: {option.help}.")
            if option.name in shares and not 0 < value <= 1:
                raise ConfigError(problem, "Give a number above 0 and up to 1.")
        if self.heads < 2:
            raise ConfigError(
                f"DivDis would have {self.heads} heads.", "Give 2 or more: they must disagree."
            )
        if self.payoff is not None and self.payoff <= 1:
            raise ConfigError(
                f"The payoff is {self.payoff}.",
                "Give more than 1: at 1, abstaining would cost nothing.",
            )
        if self.error_epochs is not None:
            _at_least_one("number of epochs before errors are collected", self.error_epochs)
        _at_least_one("number of times that an error is shown", self.error_weight)


_RENAMED = {
    name: f"{name}-random" for name in ("mnist-square", "mnist-randmask", "mnist-two-squares")
}
"""What recipes are called now that runs name from before their exceptions could be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Everything that decides a run's result, and what its pictures are called."""

    dataset: str = option(help="the pictures", part="pictures")
    recipe: str = option(help="named settings, by default the dataset's", part="training")
    arch: str = option(  # a name that ``build`` knows, or AUTO
        help="architecture, such as small-cnn, resnet32 or a torchvision name", part="model"
    )
    training: TrainConfig
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    root: str | None = option(
        None, help="where a dataset that is not bundled lies", part="pictures"
    )
    title: str | None = option(
        None,
        help="what the pictures are called; one's own by default as their folder is",
        part="pictures",
        compare=False,
    )
    frame: str | None = option(  # None: the dataset's usual frame
        None,
        help="what the model sees of a picture, such as 'shorter 256, crop 224'",
        part="pictures",
    )
    normalise: str | None = option(  # None: the dataset's usual one
        None, help="name, 'checkpoint' or numbers as 'mean / std'", part="pictures"
    )
    attributes: str | None = option(
        None,
        help="attributes of the pictures, a CSV of the columns file and attribute; in place of "
        "those that the dataset records",
        part="pictures",
    )
    class_names: str | None = option(
        None,
        help="what the classes are called, in their order, with commas between; by default as the "
        "dataset calls them",
        part="pictures",
    )
    validation: Validation = option(
        "own",
        help="what validates; test: half of the test pictures, for a model that has seen all "
        "others",
        part="pictures",
    )
    exceptions: Exceptions = option(
        "random",
        help="digits that go without the clue of their class: any, or 4s and 5s only as in the "
        "authors' code",
        part="pictures",
    )
    stamp: Stamp = option(
        "two-sided",
        help="what is planted on photographs: a stamp of its own on each class, one on the first "
        "only, or none",
        part="pictures",
    )
    correlation: float = option(
        CORRELATED,
        help="share of a class that carries its stamp in training, 0.5 to 1",
        part="pictures",
    )
    model: str | None = option(
        None,
        help="checkpoint to start from, or 'bundled'; without it a model is trained",
        part="model",
    )
    class_order: str | None = option(
        None,
        help="for a checkpoint whose classes are in another order: the number of the class that "
        "each of its outputs stands for, from 0, with commas between, such as 1,0",
        part="model",
    )
    weights: str | None = option(
        None,
        help="pretrained weights that training starts from: a file, a name of torchvision's or "
        "timm's, or 'none' where the recipe has some",
        part="training",
    )
    head: Head = option(
        "new",
        help="last layer of the pretrained weights: new, as for other classes, or kept and trained "
        "on",
        part="training",
    )
    finetune_lr: float | None = option(
        None,
        help="rate of the finetune; by default the ERM's last",
        part="finetune",
        rivals=_MASKTUNE,
    )
    batch_norm: BatchNorm = option(
        "learnt",
        help="batch norm's running statistics in the finetune",
        part="finetune",
        rivals=_MASKTUNE,
    )
    rival: RivalName = option(
        MASKTUNE, help="the method that makes the model after", part="finetune"
    )
    start: Start = option(
        "scratch",
        help="where a rival that trains by the recipe begins: as the ERM did, or with its model",
        part="finetune",
        rivals=BY_RECIPE,
    )
    rival_settings: RivalConfig = field(default_factory=RivalConfig)
    seed: int = option(0, help="the same seed gives the same result", part="pictures")
    device: Device = option("auto", help="where it is computed", part="finetune")
    only_before: bool = False  # of ``masktune train``: the model before is all that is made

    def __post_init__(self) -> None:
        if self.arch == AUTO and self.model is None:
            raise ConfigError(
                "A model that is to be trained needs an architecture.",
                "Name one with --arch, such as --arch resnet18, or give a checkpoint by --model.",
            )
        if self.frame is not None:
            frame(self.frame)
        if self.normalise is not None:
            normalisation(self.normalise)
        if self.class_names is not None:
            names_listed(self.class_names)
        if self.class_order is not None:
            order_listed(self.class_order)
        _check_choices(self, exceptions="kind of exceptions")
        check_correlation(self.correlation)
        if self.class_order is not None and self.rival in LAST_LAYER:
            raise ConfigError(
                "The classes of the checkpoint are taken in another order, and the method "
                f"'{self.rival}' retrains its last layer, which has them in its own.",
                "Choose a method that trains the whole network, or save the checkpoint with its "
                "classes in the order of the pictures'.",
            )
        if self.only_before and self.model is not None:
            raise ConfigError(
                f"The model '{self.model}' is trained already.",
                "Give it by --weights to train it further, or finetune it by masktune run --model.",
            )
        if self.finetune_lr is not None:
            _positive("finetuning rate", self.finetune_lr)
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"The seed is {self.seed}.", "Give a whole number from 0 up.")

    @property
    def error_epochs(self) -> int:
        """Epochs of the ERM whose errors JTT collects: as said, else a fifth of the training.

        The authors take 60 of 300 for Waterbirds and 1 of 50 for CelebA, chosen on validation.
        """
        return self.rival_settings.error_epochs or -(-self.training.epochs // 5)

    def to_json(self) -> dict[str, Any]:
        """Give the settings as JSON values."""
        values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Read what ``to_json`` gave, of which parts may have been read by ``part_from_json``."""
        try:
            if "exceptions" not in values:
                values = {**values, "recipe": _RENAMED.get(values["recipe"], values["recipe"])}
            told = {"rival_settings": {}, **values}
            parts = {
                name: told[name]
                if isinstance(told[name], kind)
                else part_from_json(name, told[name])
                for name, kind in PARTS.items()
            }
            made = cls(**{**values, **parts})
            hash(made)  # pages keep what they find out by it: a list in it would fail there
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigError(
                f"The stored configuration cannot be read: {error}.",
                "It was written by another version: start a new run.",
            ) from error
        return made


PARTS = {"training": TrainConfig, "masking": MaskingConfig, "rival_settings": RivalConfig}
"""Settings that have settings in them."""


def part_from_json(
    name: str, values: Mapping[str, Any]
) -> TrainConfig | MaskingConfig | RivalConfig:
    """Read one of ``PARTS``, as ``RunConfig.from_json`` does."""
    told = dict(values)
    if name == "training":
        told["decay_at"] = tuple(told["decay_at"])
    made: TrainConfig | MaskingConfig | RivalConfig = PARTS[name](**told)
    return made


ERM_ONLY = (
    *("weights", "head", "epochs", "lr", "schedule", "decay_at", "decay_factor", "warmup"),
    *("best", "patience", "erm_batch_norm"),
)
"""The options that decide how a model is trained, and nothing in its finetune."""

_TUNING: tuple[Part, ...] = ("masking", "finetune")


def idle(config: RunConfig) -> dict[str, str]:
    """Return the options that can change nothing in a run with these settings, and why."""
    strategy = config.masking.strategy
    found: dict[str, str] = {}
    if config.only_before:
        tuning = (o.name for o in options(RunConfig) if o.part in _TUNING and o.name != "device")
        found |= dict.fromkeys(tuning, "nothing is finetuned")
    found |= {
        option.name: f"the method '{config.rival}' does not look at it"
        for option in options(RunConfig)
        if option.rivals and config.rival not in option.rivals
    }
    if config.rival == MASKTUNE:
        found |= {
            option.name: f"the strategy '{strategy}' does not look at it"
            for option in options(RunConfig)
            if option.used_by and strategy not in option.used_by
        }
    pictures = CATALOGUE.get(config.dataset)
    if pictures is not None:
        unheeded = (name for name in HEEDABLE if name not in pictures.heeds)
        found |= dict.fromkeys(unheeded, f"'{config.dataset}' does not heed it")
    if config.stamp == "none":
        found["correlation"] = "no stamp is planted"
    if config.masking.rounds == 1:
        found["accumulate"] = "there is only one round"
    training = config.training
    if config.weights is None:
        found["head"] = "training starts from no weights"
    if training.optimizer != "sgd":
        found["momentum"] = f"{training.optimizer} has its own"
    if training.schedule != "steps":
        why = f"the schedule is '{training.schedule}', not 'steps'"
        found |= dict.fromkeys(("decay_at", "decay_factor"), why)
    elif not training.decay_at:
        found["decay_factor"] = "there is no epoch at which the rate falls"
    if training.best == "last":
        found["patience"] = "--best last asks of no epoch how good it is"
    if training.freeze == BODY:
        why = "the body is frozen, and its batch norm with it"
        found |= dict.fromkeys(("batch_norm", "erm_batch_norm"), why)
    if config.model is not None and config.rival in LAST_LAYER:
        why = "the model is given, and only its last layer learns"
        names = ("weights", "head", *(o.name for o in options(TrainConfig)))
        found |= dict.fromkeys(names, why)
    elif config.model is not None and config.rival not in BY_RECIPE:
        found |= dict.fromkeys(ERM_ONLY, "the model is given, none is trained")
    elif config.model is not None and config.start == "erm":
        why = "training begins with the model that is given"
        found |= dict.fromkeys(("weights", "head"), why)
    if config.model is not None and config.rival == "sd":
        found["weight_decay"] = "spectral decoupling has a penalty in its place"
    if config.model is not None and config.rival == "osp":
        found["label_smoothing"] = "one-sided prediction does not look at it"
    if config.model == BUNDLED:
        found["arch"] = "the bundled model has its own"
    if config.model in (None, BUNDLED):
        found["class_order"] = "the model learns, or has learnt, these classes in their order"
    return found


def _check_choices(config: object, **called: str) -> None:
    """Refuse a word that is no choice; ``called`` are options by other words than their names."""
    for option in options(type(config)):  # type: ignore[arg-type]
        if option.choices and not option.within:
            word = called.get(option.name, option.name.replace("_", " "))
            check_choice(word, getattr(config, option.name), option.choices)


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ConfigError(f"The {name} is {value}.", "Give a whole number from 1 up.")


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"The {name} is {value}.", "Give a number above 0, such as 0.01.")


def _share(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ConfigError(f"The {name} is {value}.", "Give a number from 0 to below 1.")
