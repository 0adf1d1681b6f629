"""The model that a run starts from: given, pretrained or fresh."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from masktune.checkpoints.blueprint import blueprints
from masktune.checkpoints.checkpoint import Checkpoint, bundled_checkpoint, load_checkpoint
from masktune.config import AUTO, RunConfig
from masktune.data.card import DatasetCard
from masktune.errors import ConfigError, ModelError
from masktune.models.build import build


def pretrained(
    arch: str, classes: int, weights: str, *, size: tuple[int, int] | None = None, seed: int = 0
) -> nn.Module:
    """Make a model whose last layer is new and whose other layers have learnt already.

    ``weights`` is a file, or torchvision's name such as "ResNet50_Weights.IMAGENET1K_V1", which is
    downloaded once; the others are as for ``build``.

    Raises:
        ModelError: there are no such weights here, or they do not fit.
    """
    if arch not in blueprints():
        raise ModelError(
            f"Pretrained weights cannot be put into {arch}.",
            "Use one of the architectures that come with PyTorch's torchvision.",
        )
    learnt = (
        load_checkpoint(weights, arch=arch).model.state_dict()
        if Path(weights).exists()
        else _by_name(weights)
    )
    model = build(arch, classes, size=size, seed=seed)
    state = model.state_dict()
    body = [name for name in state if name not in blueprints()[arch].heads]
    unfit = [n for n in body if n not in learnt or learnt[n].shape != state[n].shape]
    if unfit:
        raise ModelError(
            f"The weights '{weights}' do not fit {arch}: {unfit[0]} is missing or of another "
            "shape.",
            f"Give weights of {arch}, or choose the architecture that they belong to.",
        )
    model.load_state_dict({**state, **{name: learnt[name] for name in body}})
    return model.train()


def _by_name(name: str) -> dict[str, Tensor]:
    import torchvision  # here only: importing it takes longer than importing PyTorch

    try:
        entry: Any = torchvision.models.get_weight(name)
    except ValueError as error:
        raise ModelError(
            f"There are no weights '{name}', neither a file nor a name of torchvision's.",
            "Give a file, or a name such as ResNet50_Weights.IMAGENET1K_V1.",
        ) from error
    try:
        state: dict[str, Tensor] = entry.get_state_dict(progress=False, check_hash=True)
    except (OSError, RuntimeError) as error:
        raise ModelError(
            f"The weights {name} cannot be downloaded: {error}.",
            f"Fetch {entry.url} where there is a network and give the file by --weights.",
        ) from error
    return state


def given_model(model: str, card: DatasetCard, *, config: RunConfig) -> Checkpoint:
    """Load the trained model, a checkpoint or "bundled", that a run starts from."""
    classes = len(card.classes)
    if model == "bundled":
        if config.seed != 0:
            raise ConfigError(
                "The bundled checkpoint was trained on the split of seed 0; with seed "
                f"{config.seed} it would be tested on pictures it has seen.",
                "Use --seed 0, or leave --model out to train one.",
            )
        return load_checkpoint(bundled_checkpoint(config.dataset), classes=classes)
    arch = None if config.arch == AUTO else config.arch
    found = load_checkpoint(model, arch=arch, classes=classes, pool=card.pool)
    # What this run shows it, whatever the file says: the run's own files then say that.
    return replace(found, mean=card.mean, std=card.std)


def start_model(config: RunConfig, card: DatasetCard) -> nn.Module:
    """Return the model that training starts from, pretrained or fresh."""
    classes = len(card.classes)
    if config.weights is None:
        return build(config.arch, classes, size=card.size, seed=config.seed)
    return pretrained(config.arch, classes, config.weights, size=card.size, seed=config.seed)
