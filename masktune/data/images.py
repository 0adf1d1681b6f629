"""Pictures by position, in memory or in files, in the frame the model sees."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

if TYPE_CHECKING:  # frame imports this module
    from masktune.data.frame import Frame


class Images(Protocol):
    """Pictures in the frame the model sees, by position."""

    def __len__(self) -> int:
        """Count the pictures."""

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Give the pictures at ``positions`` as (N, 3, H, W) uint8."""


@dataclass(frozen=True, slots=True)
class TensorImages:
    """Pictures held in memory as bytes.

    Attributes:
        pixels: (N, 3, H, W) uint8. They stay uint8: floats would need four times the memory.
    """

    pixels: Tensor

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.pixels)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Give the pictures at ``positions`` as (N, 3, H, W) uint8."""
        return self.pixels[torch.as_tensor(positions)]


@dataclass(frozen=True, slots=True)
class FileImages:
    """Pictures that stay in their files and are read when asked for.

    Several threads decode at once: Pillow lets go of the interpreter meanwhile. In a worker
    process of a loader there are workers enough already.
    """

    paths: Sequence[Path]
    frame: "Frame"

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.paths)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Give the pictures at ``positions`` as (N, 3, H, W) uint8."""
        chosen = [self.paths[position] for position in positions]
        threads = min(len(chosen), os.cpu_count() or 1)
        if threads < 2 or get_worker_info() is not None:
            return torch.stack([self.frame.read(path) for path in chosen])
        with ThreadPoolExecutor(threads) as pool:
            return torch.stack(list(pool.map(self.frame.read, chosen)))


@dataclass(frozen=True, slots=True)
class FramedImages:
    """Pictures held elsewhere, brought into a frame when asked for."""

    images: Images
    frame: "Frame"

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.images)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Give the pictures at ``positions`` as (N, 3, H, W) uint8."""
        return self.frame.fit(self.images.batch(positions))
