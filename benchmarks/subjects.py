"""What the benchmark runs on: two networks and pictures for them."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from masktune.data.images import TensorImages
from masktune.data.types import Split
from masktune.heat.layers import cam_layer
from masktune.models.build import build
from masktune.seeds import stream

SIDE = 28
"""Of the digits, in pixels."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A network in evaluation mode and a batch for it.

    Attributes:
        name: architecture and picture side, such as "resnet18@224".
        model: gives logits (N, 10).
        layer: where heat is read.
        images: (N, 3, H, W) float32.
    """

    name: str
    model: nn.Module
    layer: nn.Module
    images: Tensor

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of the pictures."""
        height, width = self.images.shape[2:]
        return height, width


def subject(arch: str, *, side: int, count: int) -> Subject:
    """Make a network with fresh weights and a batch of noise; time depends on neither's content."""
    model = build(arch, 10).eval()
    images = torch.rand(count, 3, side, side, generator=stream(0, "bench/batch"))
    return Subject(f"{arch}@{side}", model, cam_layer(model, size=(side, side)), images)


def noise_split(count: int, *, side: int) -> Split:
    """Make a split of two classes whose pictures are noise."""
    generator = stream(0, "bench/split")
    shape = (count, 3, side, side)
    return Split(
        name="noise",
        images=TensorImages(torch.randint(256, shape, dtype=torch.uint8, generator=generator)),
        labels=torch.randint(2, (count,), generator=generator),
        attributes=torch.zeros(count, dtype=torch.int64),
    )


def part(split: Split, count: int) -> Split:
    """Give the first ``count`` examples of a split."""
    return Split(
        name=split.name,
        images=TensorImages(split.images.batch(range(count))),
        labels=split.labels[:count],
        attributes=split.attributes[:count],
    )
