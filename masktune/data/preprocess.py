"""From bytes in the frame to what the network takes: scale, hide, normalise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from masktune.data.fills import Filled
from masktune.data.types import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocess:
    """From bytes in the frame to what the network takes."""

    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)  # per channel, of [0, 1] pixels
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __call__(
        self,
        images: Tensor,
        keep: Tensor | None = None,
        *,
        fill: Callable[[Tensor, Tensor], Tensor] | None = None,
        change: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Scale to [0, 1], hide, change, then normalise.

        Args:
            images: (N, 3, H, W) uint8.
            keep: (N, H, W) bool or float, None to hide nothing.
            fill: paints what is not kept, from pixels in [0, 1] and keep; None paints it black.
            change: augments the pictures, None to leave them as they are.

        Returns:
            (N, 3, H, W) float32.
        """
        pixels = images.float() / 255
        if keep is not None:
            pixels = (fill or hide)(pixels, keep)
        if change is not None:
            pixels = change(pixels)
        if self.mean == (0.0, 0.0, 0.0) and self.std == (1.0, 1.0, 1.0):
            return pixels
        mean = torch.tensor(self.mean, device=pixels.device)[:, None, None]
        std = torch.tensor(self.std, device=pixels.device)[:, None, None]
        return (pixels - mean) / std

    def of(
        self,
        batch: Batch,
        keep: "Keeper | None" = None,
        *,
        change: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Return what the network takes of a batch, (N, 3, H, W) float32: all that hides is here.

        ``keep`` says what survives and, if it is ``Filled``, what stands for the rest.
        """
        if keep is None:
            return self(batch.images, change=change)
        fill = partial(keep.paint, batch=batch) if isinstance(keep, Filled) else None
        return self(batch.images, keep(batch.positions), fill=fill, change=change)


def hide(images: Tensor, keep: Tensor) -> Tensor:
    """Paint black what is not kept.

    Args:
        images: (N, C, H, W) in pixel space, before normalisation: black is 0 there.
        keep: (N, H, W) bool, or float in [0, 1] for a soft mask.

    Returns:
        Like ``images``; with a soft keep, float.
    """
    keep = keep[:, None]
    # Multiplied by 0, a value that is no number would stay one.
    return (images * keep).masked_fill(keep == 0, 0)


Keeper = Callable[[Tensor], Tensor]
"""From positions (B,) int64 to their keep, (B, H, W) bool or float, on the positions' device."""
