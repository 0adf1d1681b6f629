"""Weights in and out: safetensors with what is needed to rebuild the model beside them."""

import pickle
from dataclasses import dataclass
from pathlib import Path

import safetensors
import torch
from safetensors.torch import save
from torch import Tensor, nn

from masktune.errors import ModelError
from masktune.models import build

ASSETS = Path(__file__).resolve().parents[1] / "assets"
"""The bundled demo checkpoints."""

CONTAINERS = ("state_dict", "model", "model_state_dict", "net")
"""Keys under which checkpoints of other programs keep their weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A model and what its file says about it.

    Attributes:
        model: on the CPU, in evaluation mode.
        arch: the name ``build`` knows it by.
        classes: number of classes it tells apart.
        lr: the rate of its last training epoch, None where the file does not say.
    """

    model: nn.Module
    arch: str
    classes: int
    lr: float | None


def checkpoint_bytes(checkpoint: Checkpoint, **notes: str) -> bytes:
    """Give a checkpoint as the content of a safetensors file.

    Args:
        checkpoint: the model.
        notes: further text to keep beside the weights, such as how it was made.
    """
    tensors = {name: value.contiguous() for name, value in checkpoint.model.state_dict().items()}
    metadata = {"arch": checkpoint.arch, "classes": str(checkpoint.classes), **notes}
    if checkpoint.lr is not None:
        metadata["lr"] = repr(checkpoint.lr)
    return save(tensors, metadata)


def load_checkpoint(
    path: str | Path, *, arch: str | None = None, classes: int | None = None
) -> Checkpoint:
    """Read a model from a file; nothing in the file is ever executed.

    Args:
        path: a .safetensors file, or a PyTorch file that holds a state dict bare or under one of
            ``CONTAINERS``; "module." prefixes are dropped.
        arch: architecture, where the file does not name it.
        classes: number of classes it must tell apart; a file that differs is refused.

    Raises:
        ModelError: the file cannot be read safely, or its weights do not fit exactly.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"There is no checkpoint {path}.", "Give the path of a weights file.")
    tensors, notes = _read(path)
    arch = notes.get("arch") or arch
    if arch is None:
        raise ModelError(
            f"{path.name} does not say which architecture its weights belong to.",
            "Name it with --arch, such as --arch resnet18.",
        )
    counted = int(notes["classes"]) if "classes" in notes else _head_size(tensors)
    if classes is not None and counted not in (classes, 1 if classes == 2 else classes):
        raise ModelError(
            f"{path.name} tells {counted} classes apart, the dataset has {classes}.",
            "Use a checkpoint that was trained on this dataset's classes.",
        )
    model = build(arch, counted)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        wrong = str(error).splitlines()
        raise ModelError(
            f"The weights in {path.name} do not fit {arch}: {wrong[1].strip()}",
            "Name the architecture it was trained with by --arch.",
        ) from error
    rate = float(notes["lr"]) if "lr" in notes else None
    return Checkpoint(model=model.eval(), arch=arch, classes=counted, lr=rate)


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


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if path.suffix == ".safetensors":
        try:
            return read_tensors(path)
        except safetensors.SafetensorError as error:
            raise ModelError(
                f"{path.name} is not a whole safetensors file: {error}.",
                "Copy or download it again.",
            ) from error
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise ModelError(
            f"{path.name} holds more than weights, or is damaged; it was not opened.",
            "Save only the weights: torch.save(model.state_dict(), 'weights.pt').",
        ) from error
    if isinstance(content, dict):
        content = next((content[key] for key in CONTAINERS if key in content), content)
    if not isinstance(content, dict) or not all(isinstance(v, Tensor) for v in content.values()):
        raise ModelError(
            f"{path.name} holds no state dict that we recognise.",
            "Save only the weights: torch.save(model.state_dict(), 'weights.pt').",
        )
    return {key.removeprefix("module."): value for key, value in content.items()}, {}


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file: tensors by name and its text metadata."""
    with safetensors.safe_open(path, framework="pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
        return tensors, file.metadata() or {}


def _head_size(tensors: dict[str, Tensor]) -> int:
    """Read the number of classes off the last weight matrix."""
    matrices = [value for value in tensors.values() if value.ndim >= 2]
    if not matrices:
        raise ModelError("The checkpoint holds no weight matrix.", "Give a classifier's weights.")
    return len(matrices[-1])
