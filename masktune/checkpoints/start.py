"""The model that a run starts from: given, pretrained or fresh."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from masktune.checkpoints.blueprint import blueprints, heads, is_extra
from masktune.checkpoints.checkpoint import Checkpoint, bundled_checkpoint, load_checkpoint
from masktune.checkpoints.find import find_weights
from masktune.checkpoints.fit import fit
from masktune.checkpoints.inspect import arch_of, refuse_broken
from masktune.checkpoints.read import RefusedError
from masktune.config import AUTO, BUNDLED, Head, RunConfig, order_listed
from masktune.data.card import DatasetCard
from masktune.data.download import fetch
from masktune.errors import ConfigError, DataError, ModelError
from masktune.files import home, is_file, is_there
from masktune.models.build import TIMM, build
from masktune.models.makers import timm_address
from masktune.progress import Watcher, unwatched
from masktune.seeds import isolated


def pretrained(
    arch: str,
    classes: int,
    weights: str,
    *,
    head: Head = "new",
    size: tuple[int, int] | None = None,
    seed: int = 0,
    watcher: Watcher = unwatched,
) -> nn.Module:
    """Make a model whose last layer is new and whose other layers have learnt already.

    The last layer is every tensor whose shape depends on the number of classes, whatever the
    weights have in its place; all others must be among them in their shape. A ``head`` that is
    kept must be, too.

    ``weights`` is a file; torchvision's name, such as "ResNet50_Weights.IMAGENET1K_V1"; or timm's,
    such as "timm/tf_efficientnet_lite0.in1k". By name they are downloaded once, of which the
    watcher hears where they are timm's. The others are as for ``build``.

    Raises:
        ModelError: there are no such weights here, or they do not fit.
    """
    model = build(arch, classes, size=size, seed=seed)
    last = blueprints()[arch].heads if arch in blueprints() else heads(arch)
    if not last:
        raise ModelError(
            f"{arch} has no layer whose shape depends on the number of classes, so none can be "
            "new.",
            "Let the factory take the number of classes, as in def make(num_classes).",
        )
    learnt = _learnt(arch, weights, watcher)
    if head == "kept":
        told = next((len(learnt[name]) for name in last if name in learnt), None)
        if told != classes:
            has = "no last layer" if told is None else f"a last layer for {told} classes"
            raise ModelError(
                f"The weights '{weights}' have {has}, the dataset has {classes}.",
                "Give them a new one: --head new.",
            )
        last = ()
    elif arch.startswith(TIMM):
        # timm starts the last layer of an EfficientNet within 1 / sqrt(classes): for two classes
        # so far out that the first steps at rate 0.01 undo what was learnt (loss 2 to 200).
        own: Any = model
        with isolated(seed, "head"):
            own.reset_classifier(classes)
    state = model.state_dict()
    # Old files do not count batches.
    body = [n for n in state if n not in last and (n in learnt or not is_extra(n))]
    unfit = [n for n in body if n not in learnt or learnt[n].shape != state[n].shape]
    if unfit:
        raise ModelError(
            f"The weights '{weights}' do not fit {arch}: {unfit[0]} is missing or of another "
            "shape.",
            f"Give weights of {arch}, or choose the architecture that they belong to.",
        )
    model.load_state_dict({**state, **{name: learnt[name] for name in body}})
    return model.train()


def named_weights() -> dict[str, str]:
    """Return torchvision's weights by name, each with the architecture that it belongs to."""
    import torchvision  # here only: importing it takes longer than importing PyTorch

    tv: Any = torchvision.models
    return {str(w): arch for arch in tv.list_models(module=tv) for w in tv.get_model_weights(arch)}


def arch_of_weights(weights: str, *, likely: str) -> str:
    """Return the architecture of weights, a file or a name; ``likely`` where nothing else fits.

    Raises:
        RefusedError: the file cannot be read safely, or nothing fits, or more than one thing does.
    """
    if is_file(weights):
        return arch_of(Path(weights), likely=likely)
    if weights.startswith(TIMM):
        return weights.partition(".")[0]  # as in timm/resnet18.a1_in1k
    return named_weights().get(weights, likely)


def _learnt(arch: str, weights: str, watcher: Watcher) -> dict[str, Tensor]:
    """Return the tensors of some weights by the names that they have in an architecture."""
    if is_there(weights):
        return _in_file(arch, Path(weights))
    if weights.startswith(TIMM):
        return _in_file(arch, _fetched(weights, watcher))
    return _named(arch, _by_name(weights))


def _in_file(arch: str, path: Path) -> dict[str, Tensor]:
    held = find_weights(path)
    # Other networks may have the same tensors; files of ours say what they are.
    noted = held.notes.get("arch", arch) if "classes" in held.notes else arch
    if noted != arch:
        raise RefusedError(
            f"The weights '{path}' do not fit {arch}: they were trained as {noted}.",
            f"Use --arch {noted}, or give weights of {arch}.",
        )
    learnt = _named(arch, held.tensors)
    refuse_broken(path.name, learnt)
    return learnt


def _named(arch: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    found = fit(tensors, arch)
    return {ours: tensors[theirs] for theirs, ours in found.names.items()}


def _fetched(weights: str, watcher: Watcher) -> Path:
    """Download weights of timm's by name, once."""
    name = weights.removeprefix(TIMM)
    address = timm_address(name)
    try:
        to = home() / "weights" / f"{name}{Path(address).suffix}"
        return fetch(address, to=to, watcher=watcher)
    except DataError as error:
        raise ModelError(
            f"The weights {weights} cannot be downloaded: {error.problem}",
            f"Fetch {address} where there is a network and give the file by --weights.",
        ) from error


def _by_name(name: str) -> dict[str, Tensor]:
    import torchvision  # here only: importing it takes longer than importing PyTorch

    try:
        entry: Any = torchvision.models.get_weight(name)
    except ValueError as error:
        raise ModelError(
            f"There are no weights '{name}', neither a file nor a name of torchvision's.",
            "Give a file, or a name such as ResNet50_Weights.IMAGENET1K_V1; timm's begin with "
            "timm/.",
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
    if model == BUNDLED:
        if config.seed != 0:
            raise ConfigError(
                "The bundled checkpoint was trained on the split of seed 0; with seed "
                f"{config.seed} it would be tested on pictures it has seen.",
                "Use --seed 0, or leave --model out to train one.",
            )
        return load_checkpoint(bundled_checkpoint(config.dataset), classes=classes)
    arch = None if config.arch == AUTO else config.arch
    order = () if config.class_order is None else order_listed(config.class_order)
    found = load_checkpoint(model, arch=arch, classes=classes, pool=card.pool, order=order)
    # What this run shows it, whatever the file says: the run's own files then say that.
    return replace(found, mean=card.mean, std=card.std)


def start_model(config: RunConfig, card: DatasetCard, *, watcher: Watcher = unwatched) -> nn.Module:
    """Return the model that training starts from, pretrained or fresh."""
    classes = len(card.classes)
    if config.weights is None:
        return build(config.arch, classes, size=card.size, seed=config.seed)
    return pretrained(
        config.arch,
        classes,
        config.weights,
        head=config.head,
        size=card.size,
        seed=config.seed,
        watcher=watcher,
    )
