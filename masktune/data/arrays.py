"""What a dataset whose pictures lie together in a few files reads. Imports no PyTorch itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
