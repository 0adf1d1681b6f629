"""Folders as the Hugging Face hub has them: weights, and JSON files that say what they are."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masktune.errors import ModelError
from masktune.files import is_file

FILES = ("model.safetensors", "pytorch_model.bin")
"""What the weights are called, the better kind first."""

SHARDS = tuple(f"{name}.index.json" for name in FILES)
"""What lists the parts of weights that are cut into several files."""

CONFIG, PICTURES = "config.json", "preprocessor_config.json"
MOST_BYTES = 16 * 2**20
"""Of a JSON file that is read."""

SAME = {
    "downsample_in_first_stage": False,
    "downsample_in_bottleneck": False,
    "hidden_act": "relu",
}
"""Settings of a ResNet of transformers that change what it computes and no tensor's shape."""

OWN_CLASS = (
    "It is a {network} of the package transformers, and no network here has its tensors by these "
    "names. Let transformers build it, on the command line: write a file mynet.py of the line: "
    "from transformers import AutoConfig as C, AutoModelForImageClassification as M; make = lambda "
    "num_classes: M.from_config(C.from_pretrained({folder!r})); and add --arch mynet:make."
)
"""What to do with a network that is not known here; one line, as all remedies are."""

_STEM = re.compile(r"(?:resnet\.)?embedder\.embedder\.(convolution|normalization)\.")
_BLOCK = re.compile(
    r"(?:resnet\.)?encoder\.stages\.(\d+)\.layers\.(\d+)\.(?:layer\.(\d+)|shortcut)\."
    r"(convolution|normalization)\."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the JSON files beside some weights say of them; empty where they are silent.

    Attributes:
        says: the architecture by timm's name ("arch"), and "mean" and "std" of the pictures.
        class_names: by number.
        network: the class of transformers that it is, such as "ViTForImageClassification".
    """

    says: Mapping[str, Any]
    class_names: tuple[str, ...] = ()
    network: str = ""


def weights_file(path: Path) -> Path:
    """Return the file of weights in a folder of the hub; other paths as they are."""
    held = _held(path)
    return next((path / name for name in FILES if CONFIG in held and name in held), path)


def refuse_parts(path: Path) -> None:
    """Refuse a folder of the hub whose weights are cut into several files."""
    if {*SHARDS} & _held(path):
        raise ModelError(
            f"The weights in {path} are cut into several files.",
            "Save them as one, in Python: from transformers import AutoModelForImageClassification "
            f"as M; M.from_pretrained({str(path)!r}).save_pretrained('whole', "
            "max_shard_size='100GB').",
        )


def _held(path: Path) -> set[str]:
    return {name for name in (CONFIG, *FILES, *SHARDS) if is_file(path / name)}


def said_beside(path: Path) -> Beside:
    """Return what the files beside a file of weights say, if it lies in a folder of the hub.

    Raises:
        ModelError: they say that the network computes otherwise than its tensors tell.
    """
    if path.name not in FILES:
        return Beside(says={})
    config = _read(path.with_name(CONFIG))
    if not config:
        return Beside(says={})
    pictures = _read(path.with_name(PICTURES))
    cfg = config.get("pretrained_cfg")
    timm = cfg if isinstance(cfg, dict) else {}
    says: dict[str, Any] = {"arch": config.get("architecture")}
    if pictures.get("do_normalize", True):
        says["mean"] = pictures.get("image_mean", timm.get("mean"))
        says["std"] = pictures.get("image_std", timm.get("std"))
    classes = config.get("architectures")
    network = str(classes[0]) if isinstance(classes, list) and classes else ""
    if network.startswith("ResNet"):
        odd = [name for name, usual in SAME.items() if config.get(name, usual) != usual]
        if odd:
            raise ModelError(
                f"{path.parent.name} is a ResNet with {odd[0]} = {config[odd[0]]!r}, which "
                "torchvision's networks cannot be.",
                OWN_CLASS.format(network=network, folder=str(path.parent)),
            )
    return Beside(
        says={name: value for name, value in says.items() if value is not None},
        class_names=_names(config, timm),
        network=network,
    )


def as_torchvision(name: str) -> str:
    """Return what torchvision calls a tensor of a ResNet of transformers; others as they are.

    >>> as_torchvision("resnet.encoder.stages.0.layers.1.layer.0.convolution.weight")
    'layer1.1.conv1.weight'
    """
    if stem := _STEM.match(name):
        return f"{'conv1' if stem[1] == 'convolution' else 'bn1'}.{name[stem.end() :]}"
    if (found := _BLOCK.match(name)) is None:
        return name
    stage, block, layer, kind = found.groups()
    convolves = kind == "convolution"
    inner = f"downsample.{0 if convolves else 1}"
    if layer is not None:  # counted from 0 there
        inner = f"{'conv' if convolves else 'bn'}{int(layer) + 1}"
    return f"layer{int(stage) + 1}.{block}.{inner}.{name[found.end() :]}"


def _names(config: Mapping[str, Any], timm: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the classes; none where they are missing, or only numbered."""
    listed = config.get("id2label")
    if isinstance(listed, dict):
        try:
            numbers = sorted((int(number), str(name)) for number, name in listed.items())
        except ValueError:
            return ()
        names = tuple(name for _, name in numbers)
        whole = [number for number, _ in numbers] == [*range(len(numbers))]
        made_up = names == tuple(f"LABEL_{number}" for number in range(len(names)))
        return names if whole and not made_up and len(set(names)) == len(names) else ()
    given = config.get("label_names", timm.get("label_names"))
    return tuple(map(str, given)) if isinstance(given, list) else ()


def _read(path: Path) -> dict[str, Any]:
    """Return what a JSON file holds; nothing where there is none that can be read."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return {}
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
