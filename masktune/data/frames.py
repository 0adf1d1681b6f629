"""The one frame: what the model sees, from file to normalised tensor.

Heat, keep and hide live in this frame. The authors' code computes heat on a centre crop and
stretches the mask over the uncropped file, which hides the wrong place on Waterbirds and CelebA.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from masktune.errors import DataError
from masktune.masking import hide


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocess:
    """From bytes in the frame to what the network takes.

    Attributes:
        mean: per channel, of [0, 1] pixels.
        std: per channel.
    """

    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __call__(self, images: Tensor, keep: Tensor | None = None) -> Tensor:
        """Scale to [0, 1], hide, then normalise.

        Args:
            images: (N, 3, H, W) uint8.
            keep: (N, H, W) bool or float, None to hide nothing.

        Returns:
            (N, 3, H, W) float32.
        """
        pixels = images.float() / 255
        if keep is not None:
            pixels = hide(pixels, keep)
        if self.mean == (0.0, 0.0, 0.0) and self.std == (1.0, 1.0, 1.0):
            return pixels
        mean = torch.tensor(self.mean, device=pixels.device)[:, None, None]
        std = torch.tensor(self.std, device=pixels.device)[:, None, None]
        return (pixels - mean) / std


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A deterministic way from a picture file to the pixels the model sees.

    Attributes:
        resize: (H, W) the picture is stretched to first.
        crop: (H, W) cut from the centre afterwards; None keeps all of it.
    """

    resize: tuple[int, int]
    crop: tuple[int, int] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of the frame."""
        return self.crop or self.resize

    def read(self, path: Path) -> Tensor:
        """Give the picture at ``path``, turned upright, as (3, H, W) uint8 RGB."""
        try:
            with Image.open(path) as file:
                picture = ImageOps.exif_transpose(file).convert("RGB")
        except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
            raise DataError(
                f"{path} cannot be read as a picture.", "Replace it or leave it out."
            ) from error
        height, width = self.resize
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        if self.crop is not None:
            top, left = (height - self.crop[0]) // 2, (width - self.crop[1]) // 2
            picture = picture.crop((left, top, left + self.crop[1], top + self.crop[0]))
        return torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()


@dataclass(frozen=True, slots=True)
class FileImages:
    """Pictures that stay in their files and are read when asked for, by the loader's workers."""

    paths: Sequence[Path]
    frame: Frame

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.paths)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Give the pictures at ``positions`` as (N, 3, H, W) uint8."""
        return torch.stack([self.frame.read(self.paths[p]) for p in positions])
