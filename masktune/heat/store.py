"""The heat of a whole training set: coarse, one array a round, a few hundred bytes a picture.

A keep map is a pure function of this heat and a rule, so trying another threshold, counting hidden
pixels over the set and finetuning at any k all read the same store, and no masked file is written.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from masktune.errors import ModelError
from masktune.heat.xgradcam import upsample

BATCH = 256
"""Pictures upsampled at once when the whole set is read; bounds the memory, nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatStore:
    """Heat by round and picture.

    Attributes:
        rounds: one (N, h, w) float32 array in [0, 1] for each finished round.
        size: (H, W) of the frame.
        layer: name of the layer the heat was read at.
        method: which explainer made it.
    """

    rounds: tuple[Tensor, ...]
    size: tuple[int, int]
    layer: str
    method: str

    def __len__(self) -> int:
        """Count the pictures."""
        return len(self.rounds[0]) if self.rounds else 0

    def adding(self, heat: Tensor) -> "HeatStore":
        """Return a store with one more round, (N, h, w) float32; the same N as earlier rounds."""
        if not torch.isfinite(heat).all():
            raise ModelError(
                "The model's heat holds values that are not numbers.",
                "Its weights or activations overflow: train with a smaller learning rate.",
            )
        return replace(self, rounds=(*self.rounds, heat.float().cpu()))

    def fine(self, index: Tensor, *, round_number: int = 1, device: str = "cpu") -> Tensor:
        """Return the heat of some pictures at the frame's size, (B, H, W) float64 in [0, 1].

        ``index`` is (B,) int64 positions; round 1 is the first.
        """
        return upsample(self.rounds[round_number - 1][index.cpu()].to(device), self.size)

    def chunks(self) -> Iterator[Tensor]:
        """Give all positions in order, ``BATCH`` at a time."""
        yield from torch.split(torch.arange(len(self)), BATCH)

    def to_tensors(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Give named tensors and text metadata, the content of ``heat.safetensors``."""
        tensors = {f"round_{r}": heat.contiguous() for r, heat in enumerate(self.rounds, start=1)}
        height, width = self.size
        return tensors, {"size": f"{height}x{width}", "layer": self.layer, "method": self.method}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], metadata: dict[str, str]) -> "HeatStore":
        """Read what ``to_tensors`` gave."""
        height, width = (int(n) for n in metadata["size"].split("x"))
        return cls(
            rounds=tuple(tensors[f"round_{r}"] for r in range(1, len(tensors) + 1)),
            size=(height, width),
            layer=metadata["layer"],
            method=metadata["method"],
        )
