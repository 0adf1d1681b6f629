"""Measure what heat and hiding cost beside what they are added to: ``python -m masktune bench``."""

import copy
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import torch
from safetensors.torch import save

from benchmarks.memory import peak_growth
from benchmarks.race import Race, race
from benchmarks.results import Ratios
from benchmarks.subjects import Subject, noise_split, part, subject
from masktune.cam import upsample, xgradcam
from masktune.compute import accelerator
from masktune.config import MaskingConfig
from masktune.data.base import Split
from masktune.data.catalogue import load
from masktune.explain import explain
from masktune.heatstore import HeatStore
from masktune.masking import keep_masks
from masktune.models import build, cam_layer, name_of
from masktune.progress import Progress, Watcher, unwatched
from masktune.recipes import recipe
from masktune.seeds import stream
from masktune.strategies import Keeper, keeper
from masktune.training import finetune

DEMO = "biased-mnist-5k"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is run.

    Attributes:
        laps: at most so many for each race.
        large_batch: pictures in ResNet-18's batch.
        small_batch: pictures in the small CNN's batch.
        epoch: pictures of the timed epochs.
        counts: the two sizes of a split between which the peak of memory is compared.
    """

    laps: int
    large_batch: int
    small_batch: int
    epoch: int
    counts: tuple[int, int]


FULL = Effort(laps=12, large_batch=16, small_batch=128, epoch=1024, counts=(1_000, 10_000))
QUICK = Effort(laps=2, large_batch=2, small_batch=32, epoch=128, counts=(600, 1_200))


def measure(*, quick: bool = False, watcher: Watcher = unwatched) -> Ratios:
    """Measure everything, side by side, on the CPU.

    Args:
        quick: small batches and few laps: shows that the benchmark works, not how fast the core is.
        watcher: told after every lap.
    """
    effort = QUICK if quick else FULL
    networks = (
        subject("resnet18", side=224, count=effort.large_batch),
        subject("small-cnn", side=28, count=effort.small_batch),
    )
    races = {net.name: _race_heat(net, laps=effort.laps, watcher=watcher) for net in networks}
    # Time does not depend on what the pictures show, and reading the digits takes seconds.
    split = noise_split(effort.epoch, side=28) if quick else part(load(DEMO).train, effort.epoch)
    epochs = _race_epochs(split, laps=effort.laps, watcher=watcher)
    return Ratios(
        heat_over_forward=_ratios(races, "heat", "forward"),
        gradcam_over_heat=_ratios(races, "peer", "heat and upsample"),
        mask_seconds_over_forward=_ratios(races, "mask", "forward"),
        store_bytes_per_image=store_bytes_per_image(),
        finetune_over_plain_epoch=epochs.ratio("hidden", "plain"),
        peak_bytes_per_image=peaks(effort.counts, watcher=watcher),
        notes={
            "clock": "CPU time, one thread, best of the laps",
            "medians": _medians(races, epochs),
            "laps": {name: one.count for name, one in (races | {"epoch": epochs}).items()},
            "effort": asdict(effort),
        },
    )


def _race_heat(net: Subject, *, laps: int, watcher: Watcher) -> Race:
    # Imported here: loading the package takes seconds.
    from pytorch_grad_cam import XGradCAM

    # The peer's hooks stay on a copy, or they would run in our passes too.
    model, layer = copy.deepcopy((net.model, net.layer))
    peer = XGradCAM(model, [layer])
    coarse = xgradcam(net.model, net.layer, net.images)

    def forward() -> None:
        # no_grad as in predict; inference_mode is no quicker here.
        with torch.no_grad():
            net.model(net.images)

    def ask_peer() -> None:
        with torch.enable_grad():
            peer(net.images, targets=None)  # None: the arg-max logit

    return race(
        {
            "forward": forward,
            "heat": lambda: xgradcam(net.model, net.layer, net.images),
            "mask": lambda: keep_masks(upsample(coarse, net.size)),
            "heat and upsample": lambda: upsample(
                xgradcam(net.model, net.layer, net.images), net.size
            ),
            "peer": ask_peer,
        },
        laps=laps,
        after_lap=_telling(watcher, net.name, laps),
    )


def _race_epochs(split: Split, *, laps: int, watcher: Watcher) -> Race:
    model = build("small-cnn", 2)
    size = (28, 28)
    layer = name_of(model, cam_layer(model, size=size))
    compute = accelerator("cpu")
    heat = explain(model, split, layer=layer, compute=compute)
    store = HeatStore(rounds=(), size=size, layer=layer, method="xgradcam").adding(heat)
    keep = keeper(MaskingConfig(), store, count=len(split), round_number=1, seed=0)
    training = recipe(DEMO).training

    def epoch(hidden: Keeper | None) -> None:
        finetune(model, split, keep=hidden, lr=training.lr, config=training, compute=compute)

    return race(
        {"plain": lambda: epoch(None), "hidden": lambda: epoch(keep)},
        laps=laps,
        after_lap=_telling(watcher, "epoch", laps),
    )


def store_bytes_per_image(count: int = 1_000, *, coarse: int = 7) -> float:
    """Give the size of ``heat.safetensors`` over the pictures it serves."""
    heat = torch.rand(count, coarse, coarse, generator=stream(0, "bench/heat"))
    store = HeatStore(rounds=(heat,), size=(224, 224), layer="layer4", method="xgradcam")
    return len(save(*store.to_tensors())) / count


def peaks(counts: tuple[int, int], *, watcher: Watcher = unwatched) -> dict[str, float]:
    """Measure the peak of memory for two counts of pictures; see ``Ratios``."""
    few, many = counts
    with ThreadPoolExecutor() as pool:  # of processes of their own, which do not meet in memory
        low, high = pool.map(peak_growth, counts)
    watcher(Progress(stage="memory", done=1, total=1))
    return {
        str(few): low / few,
        str(many): high / many,
        "ratio": (high / many) / (low / few),
        "each_further": (high - low) / (many - few),
    }


def _ratios(races: Mapping[str, Race], side: str, base: str) -> dict[str, float]:
    return {name: one.ratio(side, base) for name, one in races.items()}


def _medians(races: Mapping[str, Race], epochs: Race) -> dict[str, Any]:
    """Give the ratios of time once more, as medians over laps: far from the best means noise."""

    def of(side: str, base: str) -> dict[str, float]:
        return {name: round(one.median_ratio(side, base), 4) for name, one in races.items()}

    return {
        "heat_over_forward": of("heat", "forward"),
        "gradcam_over_heat": of("peer", "heat and upsample"),
        "mask_seconds_over_forward": of("mask", "forward"),
        "finetune_over_plain_epoch": round(epochs.median_ratio("hidden", "plain"), 4),
    }


def _telling(watcher: Watcher, stage: str, laps: int) -> Callable[[int], None]:
    return lambda lap: watcher(Progress(stage=stage, done=lap, total=laps))
