"""What is timed against what."""

import copy

import torch

from benchmarks.race import Race, race
from benchmarks.subjects import Subject
from masktune.compute import accelerator
from masktune.config import MaskingConfig, TrainConfig
from masktune.data.preprocess import Keeper
from masktune.data.types import Split
from masktune.heat.explain import explain
from masktune.heat.keep import keep_masks
from masktune.heat.layers import cam_layer, name_of
from masktune.heat.store import HeatStore
from masktune.heat.strategies import keeper
from masktune.heat.xgradcam import upsample, xgradcam
from masktune.models.build import build
from masktune.progress import Watcher
from masktune.training.fit import finetune


def race_heat(subject: Subject, *, laps: int, watcher: Watcher) -> Race:
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


def race_peer(subject: Subject, *, laps: int, watcher: Watcher) -> Race:
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


def race_epochs(split: Split, *, training: TrainConfig, laps: int, watcher: Watcher) -> Race:
    """Time one epoch of finetuning with pixels hidden by heat ("hidden") and with none ("plain").

    Args:
        split: pictures for the small CNN.
        training: optimiser, rate and batch size.
        laps: at most so many epochs of each kind.
        watcher: told after every lap.
    """
    height, width = split.images.batch([0]).shape[2:]
    model = build("small-cnn", 2)
    layer = name_of(model, cam_layer(model, size=(height, width)))
    compute = accelerator("cpu")
    heat = explain(model, split, layer=layer, compute=compute)
    store = HeatStore(rounds=(heat,), size=(height, width), layer=layer, method="xgradcam")
    keep = keeper(MaskingConfig(), store, count=len(split), round_number=1, seed=0)

    def epoch(hidden: Keeper | None) -> None:
        finetune(model, split, keep=hidden, lr=training.lr, config=training, compute=compute)

    return race(
        {"plain": lambda: epoch(None), "hidden": lambda: epoch(keep)},
        laps=laps,
        stage="epoch",
        watcher=watcher,
    )
