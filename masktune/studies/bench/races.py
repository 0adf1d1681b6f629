"""What is timed against what, and on which pictures."""

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn

from masktune.compute import accelerator
from masktune.config import MaskingConfig, TrainConfig
from masktune.data.images import TensorImages
from masktune.data.preprocess import Keeper
from masktune.data.types import Split
from masktune.heat.explain import explain
from masktune.heat.keep import keep_masks
from masktune.heat.layers import cam_layer, name_of
from masktune.heat.strategies import Round, keeper
from masktune.heat.xgradcam import upsample, xgradcam
from masktune.models.build import build
from masktune.progress import Watcher
from masktune.seeds import stream
from masktune.studies.bench.race import Laps, race
from masktune.training.fit import finetune

SIDE = 28
"""Of the digits, in pixels."""


class Subject(NamedTuple):
    """A network that gives logits (N, 10), in evaluation mode, and a batch for it.

    Attributes:
        name: architecture and picture side, such as "resnet18@224".
        model: the network.
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


def race_heat(subject: Subject, *, laps: int, watcher: Watcher) -> Laps:
    """Time "heat" and "mask", from coarse heat to keep, beside a plain "forward" pass."""
    model, layer, images, size = subject.model, subject.layer, subject.images, subject.size
    coarse = xgradcam(model, layer, images)

    def forward() -> None:
        # As predict does it. inference_mode would be the same work for the same kernels.
        with torch.no_grad():
            model(images)

    return race(
        {
            "forward": forward,
            "heat": lambda: xgradcam(model, layer, images),
            "mask": lambda: keep_masks(upsample(coarse, size)),
        },
        laps=laps,
        stage=subject.name,
        watcher=watcher,
    )


def race_peer(subject: Subject, *, laps: int, watcher: Watcher) -> Laps:
    """Time pytorch-grad-cam's XGradCAM ("theirs") beside our heat at the same size ("ours")."""
    # Loading the package takes seconds.
    from pytorch_grad_cam import XGradCAM

    # Its hooks stay on a copy, or they would run in our passes too.
    model, layer = copy.deepcopy((subject.model, subject.layer))
    peer = XGradCAM(model, [layer])

    def theirs() -> None:
        with torch.enable_grad():
            peer(subject.images, targets=None)  # None: the arg-max logit

    def ours() -> None:
        upsample(xgradcam(subject.model, subject.layer, subject.images), subject.size)

    return race(
        {"ours": ours, "theirs": theirs},
        laps=laps,
        stage=f"{subject.name} grad-cam",
        watcher=watcher,
    )


def race_epochs(split: Split, *, training: TrainConfig, laps: int, watcher: Watcher) -> Laps:
    """Time an epoch of finetuning with pixels hidden by heat ("hidden") and with none ("plain")."""
    height, width = split.images.batch([0]).shape[2:]
    model = build("small-cnn", 2)
    layer = name_of(model, cam_layer(model, size=(height, width)))
    compute = accelerator("cpu")
    store = explain(model, split, layer=layer, compute=compute)
    masking, size, count = MaskingConfig(), (height, width), len(split)
    now = Round(masking=masking, store=store, size=size, count=count, number=1, seed=0)
    keep = keeper(now)

    def epoch(hidden: Keeper | None) -> None:
        finetune(model, split, keep=hidden, lr=training.lr, config=training, compute=compute)

    return race(
        {"plain": lambda: epoch(None), "hidden": lambda: epoch(keep)},
        laps=laps,
        stage="epoch",
        watcher=watcher,
    )
