"""What tensors an architecture has, without the cost of making it."""

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from masktune.config import names_code
from masktune.models.build import TIMM, architectures, build

TABLE = Path(__file__).with_name("blueprints.json")
"""A row for each architecture: to build all of them takes seven seconds, to read this none."""

EXTRA = re.compile(
    r"^origin/|(^|\.)(n_averaged$|num_batches_tracked$|(normalizer|normalize|normalise)\."
    r"|0\.(mean|std)$|AuxLogits\.|aux1\.|aux2\.|aux_classifier\.)"
)
"""Tensors that come and go: averaging and batch counts, normalisation, heads used in training."""

_DRAWS = (torch.Tensor.normal_, torch.Tensor.uniform_)


class Unallocated(TorchFunctionMode):
    """Within this, new layers have shapes but no numbers, in this thread only.

    ``torch.device("meta")`` would also empty the arithmetic with which RegNet finds its widths;
    accelerate's ``init_empty_weights`` changes ``nn.Module`` for all threads of the app.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 (as PyTorch has it)
        """Make memory that nothing has been written to yet on the device that has none."""
        kwargs = kwargs or {}
        # To draw no numbers at all, PyTorch would first import its compiler: two seconds.
        if func in _DRAWS and args[0].is_meta:
            return args[0]
        if func is torch.empty:
            kwargs = {**kwargs, "device": "meta"}
        return func(*args, **kwargs)


def outline(
    arch: str, classes: int, *, channels: int = 3, size: tuple[int, int] | None = None
) -> nn.Module:
    """Do as ``build``, without numbers in the weights unless others' code makes them."""
    others = arch.startswith(TIMM) or names_code(arch)
    with nullcontext() if others else Unallocated():
        return build(arch, classes, channels=channels, size=size)


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Give the shape of every tensor of a model's state dict by name."""
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """What tells an architecture by the names of its tensors.

    Attributes:
        digest: of all names, apart from those that come and go.
        tensors: how many names that are.
        roots: first parts of the names.
        heads: tensors whose shape depends on the classes; the first is the weight.
        stem: the weight that sees the colour channels.
    """

    digest: str
    tensors: int
    roots: tuple[str, ...]
    heads: tuple[str, ...]
    stem: str


def is_extra(name: str) -> bool:
    """Tell whether a model can be whole without this tensor.

    >>> is_extra("bn1.num_batches_tracked"), is_extra("AuxLogits.fc.weight"), is_extra("fc.weight")
    (True, True, False)
    """
    return EXTRA.search(name) is not None


def digest(names: Iterable[str]) -> str:
    """Sum names up, whatever their order and however often.

    >>> digest(["a", "b"]) == digest(["b", "a", "b.num_batches_tracked"])
    True
    """
    judged = sorted({name for name in names if not is_extra(name)})
    return hashlib.sha256("\n".join(judged).encode()).hexdigest()[:16]


def roots(names: Iterable[str]) -> tuple[str, ...]:
    """Give the first parts of names, sorted.

    >>> roots(["layer1.0.weight", "fc.weight", "fc.bias"])
    ('fc', 'layer1')
    """
    return tuple(sorted({name.partition(".")[0] for name in names if not is_extra(name)}))


def heads(arch: str) -> tuple[str, ...]:
    """Find the tensors whose shape depends on the classes, by building it for 7 and for 11."""
    base, other = shapes(outline(arch, 7)), shapes(outline(arch, 11))
    found = [name for name, shape in base.items() if other[name] != shape]
    return tuple(sorted(found, key=lambda name: -len(base[name])))


def draw(arch: str) -> Blueprint:
    """Make the blueprint of an architecture by building it four times."""
    base, grey = shapes(outline(arch, 7)), shapes(outline(arch, 7, channels=1))
    return Blueprint(
        digest=digest(base),
        tensors=sum(not is_extra(name) for name in base),
        roots=roots(base),
        heads=heads(arch),
        stem=next(name for name, shape in base.items() if grey[name] != shape),
    )


@functools.cache
def blueprints() -> dict[str, Blueprint]:
    """Read the rows of all architectures that were known when the table was written."""
    rows: dict[str, dict[str, Any]] = json.loads(TABLE.read_text("utf-8"))
    return {
        arch: Blueprint(**row | {name: tuple(row[name]) for name in ("roots", "heads")})
        for arch, row in rows.items()
    }


@functools.cache
def newer() -> dict[str, Blueprint]:
    """Draw what another torchvision has beyond the table."""
    return {arch: draw(arch) for arch in architectures() if arch not in blueprints()}


def table() -> str:
    """Return ``TABLE`` drawn anew; write it there after an architecture was added."""
    rows = {arch: asdict(draw(arch)) for arch in architectures()}
    return "{\n" + ",\n".join(f'"{a}": {json.dumps(row)}' for a, row in rows.items()) + "\n}\n"
