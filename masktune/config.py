"""The settings of a run: typed, checked when made, written to and read from ``config.json``."""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from masktune.data.augment import NONE, named
from masktune.data.card import Exceptions, Validation
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


Strategy = Literal["heat", "random", "none", "soft", "global", "topk"]
"""What is hidden: MaskTune; RandMask; nothing (one more epoch); the paper's other three.

See ``masktune.heat.strategies``."""

_HEATED: frozenset[Strategy] = frozenset({"heat", "soft", "global", "topk"})

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

OptimizerName = Literal["sgd", "adam"]

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
    """

    name: str
    within: str = ""
    kind: type
    choices: tuple[str, ...]
    help: str
    part: Part
    used_by: frozenset[Strategy]

    @property
    def flag(self) -> str:
        """Return its name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    def of(self, config: "RunConfig") -> Value:
        """Return its value in some settings."""
        holder = getattr(config, self.within) if self.within else config
        value: Value = getattr(holder, self.name)
        return value

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
    part: Part,
    used_by: Iterable[Strategy] = (),
    compare: bool = True,
) -> Any:  # noqa: ANN401 - as dataclasses.field, whose value stands for one of any type
    """Return a dataclass field that is an option of a run.

    The arguments are those of Option; what is not to be compared decides nothing in a run.
    """
    known = {"help": help, "part": part, "used_by": frozenset(used_by)}
    return field(default=default, metadata=known, compare=compare)


@cache
def options(config: type) -> tuple[Option, ...]:
    """Return the options of a class of settings in the order of its fields, nested ones too.

    >>> [option.flag for option in options(TrainConfig)]
    ['--epochs', '--batch-size', '--lr', '--augment']
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
            kind = str if choices else kind
            found.append(Option(name=own.name, kind=kind, choices=choices, **own.metadata))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How the ERM model is trained, and with which optimiser it is finetuned."""

    epochs: int = option(help="epochs of the ERM training", part="training")
    batch_size: int = option(help="pictures a step", part="training")
    lr: float = option(help="learning rate of the ERM training", part="training")
    augment: str = option(
        NONE,
        help="how training pictures change by chance after hiding, names with commas between",
        part="training",
    )
    optimizer: OptimizerName = "sgd"
    momentum: float = 0.9  # SGD only
    weight_decay: float = 1e-4
    decay_at: tuple[int, ...] = ()  # epochs after which the rate is multiplied by decay_factor
    decay_factor: float = 0.5

    def __post_init__(self) -> None:
        _at_least_one("number of epochs", self.epochs)
        _at_least_one("batch size", self.batch_size)
        _positive("learning rate", self.lr)
        named(self.augment)
        check_choice("optimizer", self.optimizer, get_args(OptimizerName))

    @property
    def last_lr(self) -> float:
        """The rate of the last epoch: the paper's "last decayed learning rate".

        >>> TrainConfig(epochs=100, batch_size=128, lr=0.01, decay_at=(25, 50, 75, 100)).last_lr
        0.00125
        """
        return self.lr * self.decay_factor ** sum(at < self.epochs for at in self.decay_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskingConfig:
    """How the masked training set is made."""

    strategy: Strategy = option("heat", help="what is hidden", part="masking")
    k: float = option(
        2.0,
        help="threshold in sigmas above the mean heat, 0 to 3",
        part="masking",
        used_by={"heat"},
    )
    statistics: Statistics = option(  # the authors' code; "all" is the paper's text
        "positive", help="mu and sigma over", part="masking", used_by={"heat", "global"}
    )
    rounds: int = option(1, help="how often to mask and finetune", part="masking")
    accumulate: bool = option(True, help="later rounds hide in addition", part="masking")
    top_fraction: float = option(
        0.05, help="share of the pixels that topk hides", part="masking", used_by={"topk"}
    )
    method: Method = option("xgradcam", help="explainer", part="masking", used_by=_HEATED)
    layer: str | None = option(
        None,
        help="where heat is read; by default the last spatial feature map",
        part="masking",
        used_by=_HEATED,
    )

    def __post_init__(self) -> None:
        check_choice("strategy", self.strategy, get_args(Strategy))
        check_choice("statistics", self.statistics, get_args(Statistics))
        check_choice("method", self.method, get_args(Method))
        if not (math.isfinite(self.k) and self.k >= 0):
            raise ConfigError(
                f"k is {self.k}.",
                "Give a number from 0 (hides most) to 3; the paper's choice is 2.",
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
    model: str | None = option(
        None,
        help="checkpoint to start from, or 'bundled'; without it a model is trained",
        part="model",
    )
    weights: str | None = option(
        None,
        help="pretrained weights that training starts from: a file, torchvision's name, or 'none' "
        "where the recipe has some",
        part="training",
    )
    finetune_lr: float | None = option(
        None, help="rate of the finetune; by default the ERM's last", part="finetune"
    )
    seed: int = option(0, help="the same seed gives the same result", part="pictures")
    device: Device = option("auto", help="where it is computed", part="finetune")

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
        check_choice("validation", self.validation, get_args(Validation))
        check_choice("exceptions", self.exceptions, get_args(Exceptions))
        check_choice("device", self.device, get_args(Device))
        if self.finetune_lr is not None:
            _positive("finetuning rate", self.finetune_lr)
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"The seed is {self.seed}.", "Give a whole number from 0 up.")

    def to_json(self) -> dict[str, Any]:
        """Give the settings as JSON values."""
        values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Read what ``to_json`` gave."""
        try:
            if "exceptions" not in values:
                values = {**values, "recipe": _RENAMED.get(values["recipe"], values["recipe"])}
            training = {**values["training"], "decay_at": tuple(values["training"]["decay_at"])}
            masking = MaskingConfig(**values["masking"])
            return cls(**{**values, "training": TrainConfig(**training), "masking": masking})
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"The stored configuration cannot be read: {error}.",
                "It was written by another version: start a new run.",
            ) from error


def idle(config: RunConfig) -> dict[str, str]:
    """Return the options that can change nothing in a run with these settings, and why."""
    strategy = config.masking.strategy
    found = {
        option.name: f"the strategy '{strategy}' does not look at it"
        for option in options(RunConfig)
        if option.used_by and strategy not in option.used_by
    }
    pictures = CATALOGUE.get(config.dataset)
    if pictures is not None and "exceptions" not in pictures.heeds:
        found["exceptions"] = f"'{config.dataset}' makes none"
    if config.masking.rounds == 1:
        found["accumulate"] = "there is only one round"
    if config.model is not None:
        found |= dict.fromkeys(("weights", "epochs", "lr"), "the model is given, none is trained")
    if config.model == BUNDLED:
        found["arch"] = "the bundled model has its own"
    return found


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ConfigError(f"The {name} is {value}.", "Give a whole number from 1 up.")


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"The {name} is {value}.", "Give a number above 0, such as 0.01.")
