"""Weights in and out: safetensors with what is needed to rebuild the model beside them."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
from safetensors.torch import save
from torch import Tensor, nn

from masktune.checkpoints.fit import Fit, fill
from masktune.checkpoints.inspect import recognise
from masktune.checkpoints.origin import EXTRA_TENSOR, Origin, noted_origin
from masktune.errors import ModelError
from masktune.files import ASSETS
from masktune.models.class_map import with_class_map


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A model and what its file says about it.

    Attributes:
        model: on the CPU, in evaluation mode.
        arch: the name ``build`` knows it by.
        classes: number of logits; 1 is a sigmoid head for two classes.
        lr: the rate that its training ended with, None where the file does not say.
        channels: colour channels its first layer sees.
        size: (H, W) a transformer was made for, None where the model takes any.
        epoch: the epoch it was saved after, None where the file does not say.
        origin: layout of the file it came from, None where it was trained here.
        mean: of the normalisation it was trained with, one number a channel, None where the file
            does not say; ``std`` likewise.
        class_map: for each logit the class it answers in, empty where every logit is a class; see
            ``masktune.models.class_map``.
    """

    model: nn.Module
    arch: str
    classes: int
    lr: float | None
    channels: int = 3
    size: tuple[int, int] | None = None
    epoch: int | None = None
    origin: Origin | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    class_map: tuple[int, ...] = ()


def checkpoint_bytes(checkpoint: Checkpoint, **notes: str) -> bytes:
    """Return a checkpoint as the content of a safetensors file, with further text beside it."""
    tensors = dict(checkpoint.model.state_dict())
    metadata = {"arch": checkpoint.arch, "classes": str(checkpoint.classes), **notes}
    said = {name: getattr(checkpoint, name) for name in ("lr", "epoch", "mean", "std")}
    said["pool"] = checkpoint.class_map or None
    metadata |= {name: json.dumps(value) for name, value in said.items() if value is not None}
    if checkpoint.origin is not None:
        metadata["origin"] = checkpoint.origin.to_note()
        tensors |= {EXTRA_TENSOR + n: value for n, value in checkpoint.origin.tensors.items()}
    return safetensors_bytes(tensors, metadata)


def safetensors_bytes(tensors: Mapping[str, Tensor], notes: dict[str, str]) -> bytes:
    """Return the content of a safetensors file."""
    # Copies: safetensors refuses names that share numbers, as tied weights do.
    copies = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    return save(copies, notes)


class ClassCountError(ModelError):
    """A model that tells another number of classes apart than the dataset has.

    Attributes:
        arch: of the model.
        file: that it is in.
        finer: whether another dataset of the catalogue is the same for such models.
    """

    def __init__(self, path: Path, found: Fit, *, classes: int) -> None:
        self.arch, self.file = found.arch, path
        self.finer = (found.classes, classes) == (1000, 9)
        super().__init__(
            f"{path.name} tells {2 if found.classes == 1 else found.classes} classes apart, the "
            f"dataset has {classes}.",
            "Choose the dataset imagenet9-1000: it is the same for models of 1000 classes."
            if self.finer
            else "Use a checkpoint that was trained on this dataset's classes, or train it with a "
            f"new head, the last layer: masktune train --arch {found.arch} --weights "
            f"{shlex.quote(str(path))} --head new.",
        )


def load_checkpoint(
    path: str | Path,
    *,
    arch: str | None = None,
    classes: int | None = None,
    pool: tuple[int, ...] = (),
    order: tuple[int, ...] = (),
) -> Checkpoint:
    """Read a model from a file; nothing in the file is ever executed.

    Args:
        path: a safetensors or PyTorch file that holds a state dict, bare or inside the usual
            containers, with or without the usual prefixes.
        arch: architecture, where neither the file names it nor its tensors tell.
        classes: number of classes it must tell apart; a file that differs is refused.
        pool: for models with as many logits as this has numbers, the class of each: they answer
            in these classes.
        order: for each class of the model the class that it answers for, where they are in another
            order.

    Raises:
        ModelError: the file cannot be read safely, or its weights do not fit exactly; or the order
            is not one of as many classes.
    """
    path = Path(path)
    weights, found, origin, class_map = recognise(path, arch=arch)
    counted = found.classes
    class_map = class_map or (pool if len(pool) == counted else ())
    # A single logit, through a sigmoid, tells two classes apart.
    told = max(class_map) + 1 if class_map else 2 if counted == 1 and classes == 2 else counted
    if classes is not None and told != classes:
        raise ClassCountError(path, found, classes=classes)
    if order:
        if len(order) != told:
            raise ModelError(
                f"The order of the classes has {len(order)} numbers, {path.name} tells {told} "
                "classes apart.",
                "Give one number for each of its classes, or leave the order out.",
            )
        class_map = tuple(order[number] for number in class_map) or order
    model = fill(found, weights.tensors)
    return Checkpoint(
        model=with_class_map(model, class_map) if class_map else model,
        arch=found.arch,
        classes=counted,
        lr=weights.lr,
        channels=found.channels,
        size=found.size,
        epoch=weights.epoch,
        origin=origin,
        mean=weights.mean,
        std=weights.std,
        class_map=class_map,
    )


def bundled_checkpoint(dataset: str) -> Path:
    """Give the demo checkpoint of a bundled dataset."""
    path = ASSETS / f"{dataset}.safetensors"
    if not path.is_file():
        here = ", ".join(sorted(p.stem for p in ASSETS.glob("*.safetensors")))
        raise ModelError(
            f"No checkpoint is bundled for '{dataset}'.",
            f"Leave --model out to train one; bundled are {here}.",
        )
    return path


def read_origin(path: Path) -> Origin | None:
    """Return where the weights in one of our own files came from, without reading them."""
    with safetensors.safe_open(path, framework="pt") as file:
        note = (file.metadata() or {}).get("origin")
        return None if note is None else noted_origin(note, {}, state={*file.keys()})


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file: tensors by name and its text metadata."""
    with safetensors.safe_open(path, framework="pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
        return tensors, file.metadata() or {}
