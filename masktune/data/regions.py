"""Where the clue or the thing itself lies in each picture, by position, in the model's frame.

A place in a picture is followed through the frame by its pixels' centres (the nearest pixel, no
blur), so that what is True in a region is where the same pixel of the file is seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from masktune.data.frame import Frame, Size
from masktune.data.images import FileImages, centre
from masktune.data.listing import Box, Boxes
from masktune.data.picture import upright_size


@dataclass(frozen=True, slots=True)
class TensorRegions:
    """Regions held in memory, for pictures in memory."""

    where: Tensor  # (N, h, w) bool, as large as the pictures before the frame
    frame: Frame | None = None  # brought into when asked for; None gives them as they are
    outside: bool = False  # whether all else is meant, as of a background

    def __len__(self) -> int:
        return len(self.where)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Return the regions at ``positions`` as (N, H, W) bool; all False where there is none."""
        chosen = self.where[torch.as_tensor(positions)]
        inside = chosen if self.frame is None else _in_frame(chosen, self.frame)
        return _all_but(inside) if self.outside else inside

    def take(self, positions: Tensor) -> Self:
        """Return some of them, (n,) int64."""
        return replace(self, where=self.where[positions])

    def join(self, other: Self) -> Self:
        """Return these and then those of another part of the same dataset."""
        return replace(self, where=torch.cat([self.where, other.where]))

    def in_frame(self, frame: Frame) -> Self:
        """Return them as seen in another frame."""
        return replace(self, frame=frame)


@dataclass(frozen=True, slots=True)
class BoxRegions:
    """Boxes over picture files, any number for each."""

    paths: Sequence[Path]
    boxes: Sequence[tuple[Box, ...]]  # of each file, in pixels of the upright file
    frame: Frame
    outside: bool = False  # whether all else is meant, as of a background

    def __len__(self) -> int:
        return len(self.paths)

    def batch(self, positions: Sequence[int]) -> Tensor:
        """Return the regions at ``positions`` as (N, H, W) bool; all False where there is none."""
        inside = torch.stack([self._framed(int(position)) for position in positions])
        return _all_but(inside) if self.outside else inside

    def _framed(self, position: int) -> Tensor:
        framed = torch.zeros(self.frame.size, dtype=torch.bool)
        if not self.boxes[position]:
            return framed
        rows, columns = (
            torch.where(seen < 0, torch.nan, seen + 0.5)
            for seen in _pixels_seen(upright_size(self.paths[position]), self.frame)
        )
        for left, top, right, bottom in self.boxes[position]:
            high, wide = (top <= rows) & (rows < bottom), (left <= columns) & (columns < right)
            framed |= high[:, None] & wide
        return framed

    def take(self, positions: Tensor) -> Self:
        """Return some of them, (n,) int64."""
        chosen = positions.tolist()
        return replace(
            self,
            paths=[self.paths[position] for position in chosen],
            boxes=[self.boxes[position] for position in chosen],
        )

    def join(self, other: Self) -> Self:
        """Return these and then those of another part of the same dataset."""
        paths, boxes = [*self.paths, *other.paths], [*self.boxes, *other.boxes]
        return replace(self, paths=paths, boxes=boxes)

    def in_frame(self, frame: Frame) -> Self:
        """Return them as seen in another frame."""
        return replace(self, frame=frame)


Regions = TensorRegions | BoxRegions
"""Where something lies in each picture, by position, (N, H, W) bool in the model's frame."""


def boxed(images: FileImages, boxes: Boxes) -> BoxRegions:
    """Give pictures their boxes by name; a picture that is not named has none.

    A name is a file's own or the end of its path with folders before it; the longer one counts.
    """

    def named(path: Path) -> tuple[Box, ...]:
        parts = path.parts
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        return tuple(next((boxes[end] for end in ends if end in boxes), ()))

    return BoxRegions(images.paths, [named(path) for path in images.paths], images.frame)


def _all_but(inside: Tensor) -> Tensor:
    """Return all else of each picture, (N, H, W) bool; nothing where no region is known."""
    return ~inside & inside.any(dim=2).any(dim=1)[:, None, None]


def _in_frame(where: Tensor, frame: Frame) -> Tensor:
    """Bring regions, (N, h, w) bool, into a frame, (N, H, W) bool."""
    rows, columns = _pixels_seen((where.shape[1], where.shape[2]), frame)
    framed = where[:, rows.clamp(min=0)][:, :, columns.clamp(min=0)]
    return framed & (rows >= 0)[:, None] & (columns >= 0)


def _pixels_seen(size: Size, frame: Frame) -> tuple[Tensor, Tensor]:
    """Return which row and column of a file of (h, w) each of a frame shows.

    Returns:
        (H,) and (W,) int64, -1 beyond the file, which a frame shows black.
    """
    cut = size if frame.cut is None else (frame.cut, frame.cut)
    stretched = frame.resized(cut)
    crop = frame.crop or stretched
    skipped, kept = centre(size, cut), centre(stretched, crop)
    seen = []
    for side in (0, 1):
        pixels = torch.arange(crop[side]) + kept[1 - side]
        source = (2 * pixels + 1) * cut[side] // (2 * stretched[side]) + skipped[1 - side]
        seen.append(torch.where((source >= 0) & (source < size[side]), source, -1))
    return seen[0], seen[1]
