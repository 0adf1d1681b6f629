"""What a dataset whose pictures lie together in a few files reads. Imports no PyTorch itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from masktune.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures in memory.

    Attributes:
        pixels: (N, 3, H, W) uint8.
        labels: (N,) int64.
        attributes: (N,) int64; None when none is recorded.
    """

    pixels: Tensor
    labels: Tensor
    attributes: Tensor | None = None

    def at(self, positions: Tensor) -> Pictures:
        """Return a part."""
        known = None if self.attributes is None else self.attributes[positions]
        return Pictures(self.pixels[positions], self.labels[positions], known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """A dataset's pictures by part.

    Attributes:
        train: training pictures.
        validation: None lets a fifth of the training pictures validate, chosen by the seed.
        tests: test sets by name.
        findings: what reading the files found out.
    """

    train: Pictures
    validation: Pictures | None = None
    tests: Mapping[str, Pictures] = field(default_factory=dict)
    findings: tuple[str, ...] = ()


def checked(pictures: Pictures, *, classes: int, path: Path) -> Pictures:
    """Refuse labels that are no classes, naming the file they come from."""
    labels = pictures.labels
    if len(labels) != len(pictures.pixels):
        raise DataError(
            f"{path} holds {len(pictures.pixels):,} pictures but {len(labels):,} labels.",
            "Give one label for each picture.",
        )
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise DataError(
            f"{path} has labels from {int(labels.min())} to {int(labels.max())}.",
            f"Number the classes from 0 to {classes - 1}.",
        )
    return pictures
