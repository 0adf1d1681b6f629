"""The settings of a run: typed, checked when made, written to and read from ``config.json``."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from masktune.data.frame import frame
from masktune.data.normalisations import normalisation
from masktune.data.splits import Validation, check_validation
from masktune.errors import ConfigError

AUTO = "auto"
"""The architecture of a run that takes what its checkpoint says."""

Strategy = Literal["heat", "random", "none", "soft", "global", "topk"]
"""What is hidden: MaskTune; RandMask; nothing (one more epoch); the paper's other three."""

HEATED: frozenset[Strategy] = frozenset({"heat", "soft", "global", "topk"})
"""The strategies that need heat."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How the ERM model is trained, and with which optimiser it is finetuned."""

    epochs: int
    batch_size: int
    lr: float
    optimizer: OptimizerName = "sgd"
    momentum: float = 0.9  # SGD only
    weight_decay: float = 1e-4
    decay_at: tuple[int, ...] = ()  # epochs after which the rate is multiplied by decay_factor
    decay_factor: float = 0.5

    def __post_init__(self) -> None:
        _at_least_one("number of epochs", self.epochs)
        _at_least_one("batch size", self.batch_size)
        _positive("learning rate", self.lr)
        _one_of("optimizer", self.optimizer, get_args(OptimizerName))

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

    strategy: Strategy = "heat"
    k: float = 2.0  # threshold, in standard deviations above the mean heat
    statistics: Statistics = "positive"  # the authors' code; "all" is the paper's text
    rounds: int = 1  # MaskTune as published; more for several clues
    accumulate: bool = True  # later rounds hide in addition to earlier ones
    top_fraction: float = 0.05  # topk: share of the pixels hidden
    method: Method = "xgradcam"
    layer: str | None = None  # None: the last spatial feature map

    def __post_init__(self) -> None:
        _one_of("strategy", self.strategy, get_args(Strategy))
        _one_of("statistics", self.statistics, get_args(Statistics))
        _one_of("method", self.method, get_args(Method))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Everything that decides a run's result."""

    dataset: str
    recipe: str
    arch: str  # a name that ``build`` knows, or AUTO
    training: TrainConfig
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    root: str | None = None  # where a dataset that is not bundled lies
    frame: str | None = None  # what the model sees of a picture; None: the dataset's usual frame
    normalise: str | None = None  # name or "mean / std"; None: the dataset's usual one
    validation: Validation = "own"  # "test": half of the test set, for models that saw the rest
    model: str | None = None  # checkpoint to start from, "bundled", or None to train one
    weights: str | None = None  # where training starts: a file or torchvision's name; None: afresh
    finetune_lr: float | None = None  # None: the rate of the ERM's last epoch
    seed: int = 0
    device: str = "auto"

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
        check_validation(self.validation)
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
            training = {**values["training"], "decay_at": tuple(values["training"]["decay_at"])}
            return cls(
                **{
                    **values,
                    "training": TrainConfig(**training),
                    "masking": MaskingConfig(**values["masking"]),
                }
            )
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"The stored configuration cannot be read: {error}.",
                "It was written by another version: start a new run.",
            ) from error


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ConfigError(f"The {name} is {value}.", "Give a whole number from 1 up.")


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"The {name} is {value}.", "Give a number above 0, such as 0.01.")


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"There is no {name} '{value}'.", f"Choose {', '.join(choices)}.")
