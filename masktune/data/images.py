"""Pictures by position, in memory or in files, in the frame the model sees."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor
from torch.utils.data import get_worker_info

from masktune.data.frame import Frame, Size
from masktune.data.picture import open_picture


@dataclass(frozen=True, slots=True)
class TensorImages:
    """Pictures held in memory as bytes: floats would need four times the memory."""

    pixels: Tensor  # (N, 3, h, w) uint8
    frame: Frame | None = None  # brought into when asked for; None shows them as they are

    @property
    def files(self) -> Sequence[Path]:
        """Name the files they are in: none."""
        return ()

    def __len__(self) -> int:
        return len(self.pixels)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Return the pictures at ``positions`` as (N, 3, H, W) uint8."""
        chosen = self.pixels[torch.as_tensor(positions)]
        return chosen if self.frame is None else fit(chosen, self.frame)

    def take(self, positions: Tensor) -> Self:
        """Return some of them, (n,) int64."""
        return replace(self, pixels=self.pixels[positions])

    def join(self, other: Self) -> Self:
        """Return these and then those of another part of the same dataset."""
        return replace(self, pixels=torch.cat([self.pixels, other.pixels]))

    def in_frame(self, frame: Frame) -> Self:
        """Return them as seen in another frame."""
        return replace(self, frame=frame)


@dataclass(frozen=True, slots=True)
class FileImages:
    """Pictures that stay in their files and are read when asked for.

    Several threads decode at once: Pillow lets go of the interpreter meanwhile. In a worker
    process of a loader there are workers enough already.
    """

    paths: Sequence[Path]
    frame: Frame

    @property
    def files(self) -> Sequence[Path]:
        """Name the files they are in."""
        return self.paths

    def __len__(self) -> int:
        return len(self.paths)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Return the pictures at ``positions`` as (N, 3, H, W) uint8."""
        chosen = [self.paths[position] for position in positions]
        read = partial(read_framed, frame=self.frame)
        threads = min(len(chosen), os.cpu_count() or 1)
        if threads < 2 or get_worker_info() is not None:
            return torch.stack([read(path) for path in chosen])
        with ThreadPoolExecutor(threads) as pool:
            return torch.stack(list(pool.map(read, chosen)))

    def take(self, positions: Tensor) -> Self:
        """Return some of them, (n,) int64."""
        return replace(self, paths=[self.paths[position] for position in positions.tolist()])

    def join(self, other: Self) -> Self:
        """Return these and then those of another part of the same dataset."""
        return replace(self, paths=[*self.paths, *other.paths])

    def in_frame(self, frame: Frame) -> Self:
        """Return them as seen in another frame."""
        return replace(self, frame=frame)


Images = TensorImages | FileImages
"""Pictures in the frame the model sees, by position."""


def read_framed(path: Path, frame: Frame) -> Tensor:
    """Return the picture at ``path``, turned upright, in a frame, as (3, H, W) uint8 RGB."""
    picture = open_picture(path)
    if frame.cut is not None:
        picture = picture.crop(centre(picture.size[::-1], (frame.cut, frame.cut)))
    height, width = frame.resized(picture.size[::-1])
    picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    if frame.crop is not None:
        picture = picture.crop(centre((height, width), frame.crop))
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()


def fit(images: Tensor, frame: Frame) -> Tensor:
    """Bring pictures in memory, (N, 3, h, w) uint8, into a frame, (N, 3, H, W) uint8."""
    if frame.cut is not None:
        images = _cropped(images, (frame.cut, frame.cut))
    size = frame.resized((images.shape[2], images.shape[3]))
    if size != images.shape[2:]:
        images = F.interpolate(images, size, mode="bilinear", antialias=True)
    return images if frame.crop is None else _cropped(images, frame.crop)


def centre(size: Size, crop: Size) -> tuple[int, int, int, int]:
    """Return the box (left, top, right, bottom) of a centre crop; black beyond the picture."""
    top, left = (size[0] - crop[0]) // 2, (size[1] - crop[1]) // 2
    return left, top, left + crop[1], top + crop[0]


def _cropped(images: Tensor, crop: Size) -> Tensor:
    left, top, right, bottom = centre((images.shape[2], images.shape[3]), crop)
    height, width = images.shape[2:]
    return F.pad(images, (-left, right - width, -top, bottom - height))
