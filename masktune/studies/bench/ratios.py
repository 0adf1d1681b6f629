"""What heat and hiding cost beside what they are added to: ``python -m masktune bench``.

A figure is a number by (name, part), such as ("heat_over_forward", "small-cnn@28"); the part is
empty for figures of one number. benchmarks/README.md says what each is.
"""

import copy
import os
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import torch
from safetensors.torch import save

from masktune.compute import accelerator
from masktune.config import MaskingConfig, TrainConfig
from masktune.data.augment import NONE
from masktune.data.images import TensorImages
from masktune.data.preprocess import Keeper
from masktune.data.splits import part
from masktune.data.types import Split
from masktune.datasets.catalogue import load
from masktune.heat.explain import explain
from masktune.heat.keep import keep_masks
from masktune.heat.layers import cam_layer, name_of
from masktune.heat.store import HeatStore
from masktune.heat.strategies import Round, keeper
from masktune.heat.xgradcam import upsample, xgradcam
from masktune.models.build import build
from masktune.progress import Progress, Watcher, unwatched
from masktune.recipes import recipe
from masktune.seeds import stream
from masktune.studies.bench.memory import peak_growth
from masktune.studies.bench.race import compare, race
from masktune.training.fit import finetune

DEMO = "biased-mnist-5k"
SIDE = 28
"""Of the digits, in pixels."""

Figures = dict[tuple[str, str], float]
"""Numbers by (figure, part)."""

Timed = dict[tuple[str, str], tuple[float, float]]
"""Likewise, of the best laps and the median over laps."""

GOALS: dict[tuple[str, str], tuple[str, float]] = {
    ("heat_over_forward", "resnet18@224"): ("<=", 1.05),
    ("heat_over_forward", "small-cnn@28"): ("<=", 1.3),
    ("gradcam_over_heat", "resnet18@224"): (">=", 3),
    ("mask_seconds_over_forward", "resnet18@224"): ("<=", 0.1),
    ("mask_seconds_over_forward", "small-cnn@28"): ("<=", 0.1),
    ("store_bytes_per_image", ""): ("<=", 256),
    ("finetune_over_plain_epoch", ""): ("<=", 1.1),
    ("augmented_over_plain_epoch", "resnet20@32"): ("<=", 1.15),
    ("peak_bytes_per_image", "ratio"): ("<=", 1),
    # The ratio falls by itself while one batch's working set is shared by more pictures. This does
    # not: a picture more may take less memory than its own 3 x 28 x 28 bytes.
    ("peak_bytes_per_image", "each_further"): ("<=", 3 * 28 * 28),
}
"""On which side of which limit a figure should lie; the limit itself is good enough."""

FULL: dict[str, Any] = {
    "trials": (
        {"arch": "resnet18", "side": 224, "batch": 8, "laps": 40, "peer_laps": 20},
        {"arch": "small-cnn", "side": SIDE, "batch": 128, "laps": 120, "peer_laps": 30},
    ),
    "epoch": 512,
    "epoch_laps": 40,
    "augmented": {"count": 256, "laps": 20},
    "counts": (1_000, 10_000),
}
"""How much is run: batches and laps at most by network, pictures and laps of the timed epochs, and
the two sizes of a split between which the peak of memory is compared."""

QUICK: dict[str, Any] = {
    "trials": (
        {"arch": "resnet18", "side": 224, "batch": 2, "laps": 2, "peer_laps": 1},
        {"arch": "small-cnn", "side": SIDE, "batch": 32, "laps": 5, "peer_laps": 2},
    ),
    "epoch": 128,
    "epoch_laps": 2,
    "augmented": {"count": 32, "laps": 2},
    "counts": (600, 1_200),
}


def measure(*, quick: bool = False, watcher: Watcher = unwatched) -> tuple[Figures, dict[str, Any]]:
    """Measure everything, side by side, on the CPU; return the figures and how they were measured.

    ``quick`` takes small batches and few laps, to see that it works; its figures are rough.
    """
    effort = QUICK if quick else FULL
    # Time does not depend on what the pictures show, and reading the digits takes seconds.
    count = effort["epoch"]
    split = noise_split(count) if quick else part(load(DEMO).train, torch.arange(count))
    timed: Timed = {}
    for trial in effort["trials"]:
        timed |= race_batch(**trial, watcher=watcher)
    timed |= race_epochs(split, laps=effort["epoch_laps"], watcher=watcher)
    timed |= race_augmented(**effort["augmented"], watcher=watcher)
    figures = {
        **{key: best for key, (best, _) in timed.items()},
        ("store_bytes_per_image", ""): store_bytes_per_image(1_000),
        **peaks(effort["counts"], watcher=watcher),
    }
    notes = {
        "clock": "CPU time on one thread, best of the laps; medians over laps show the noise",
        "medians": _nested({key: round(median, 4) for key, (_, median) in timed.items()}),
        "effort": effort,
    }
    order = [figure for figure, _ in GOALS]
    return dict(sorted(figures.items(), key=lambda item: order.index(item[0][0]))), notes


def noise_split(count: int, *, side: int = SIDE) -> Split:
    """Make a split of two classes whose pictures are noise."""
    generator = stream(0, "bench/split")
    shape = (count, 3, side, side)
    return Split(
        name="noise",
        images=TensorImages(torch.randint(256, shape, dtype=torch.uint8, generator=generator)),
        labels=torch.randint(2, (count,), generator=generator),
        attributes=torch.zeros(count, dtype=torch.int64),
    )


def race_batch(
    *, arch: str, side: int, batch: int, laps: int, peer_laps: int, watcher: Watcher = unwatched
) -> Timed:
    """Time heat and "mask", from coarse heat to keep, beside a plain forward pass and a peer.

    Fresh weights and a batch of noise: time depends on neither's content. The peer is
    pytorch-grad-cam's XGradCAM, beside our heat at the same size.
    """
    name, size = f"{arch}@{side}", (side, side)
    model = build(arch, 10).eval()
    layer = cam_layer(model, size=size)
    images = torch.rand(batch, 3, *size, generator=stream(0, "bench/batch"))
    coarse = xgradcam(model, layer, images)

    def forward() -> None:
        # As predict does it. inference_mode would be the same work for the same kernels.
        with torch.no_grad():
            model(images)

    sides = {
        "forward": forward,
        "heat": lambda: xgradcam(model, layer, images),
        "mask": lambda: keep_masks(upsample(coarse, size)),
    }
    heat = race(sides, laps=laps, stage=name, watcher=watcher)
    from pytorch_grad_cam import XGradCAM  # loading the package takes seconds

    # Its hooks stay on a copy, or they would run in our passes too.
    copied, its_layer = copy.deepcopy((model, layer))
    peer = XGradCAM(copied, [its_layer])

    def theirs() -> None:
        with torch.enable_grad():
            peer(images, targets=None)  # None: the arg-max logit

    both = {"ours": lambda: upsample(xgradcam(model, layer, images), size), "theirs": theirs}
    peers = race(both, laps=peer_laps, stage=f"{name} grad-cam", watcher=watcher)
    return {
        ("heat_over_forward", name): compare(heat, "heat", "forward"),
        ("gradcam_over_heat", name): compare(peers, "theirs", "ours"),
        ("mask_seconds_over_forward", name): compare(heat, "mask", "forward"),
    }


def race_epochs(split: Split, *, laps: int, watcher: Watcher) -> Timed:
    """Time an epoch of finetuning with pixels hidden by heat beside one with none hidden."""
    size = (SIDE, SIDE)
    model, training = build("small-cnn", 2), recipe(DEMO).training
    layer = name_of(model, cam_layer(model, size=size))
    compute = accelerator("cpu")
    store = explain(model, split, layer=layer, compute=compute)
    masking, count = MaskingConfig(), len(split)
    now = Round(masking=masking, store=store, size=size, count=count, number=1, seed=0)
    keep = keeper(now)

    def epoch(hidden: Keeper | None) -> None:
        finetune(model, split, keep=hidden, lr=training.lr, config=training, compute=compute)

    sides = {"plain": lambda: epoch(None), "hidden": lambda: epoch(keep)}
    taken = race(sides, laps=laps, stage="epoch", watcher=watcher)
    return {("finetune_over_plain_epoch", ""): compare(taken, "hidden", "plain")}


def race_augmented(*, count: int, laps: int, watcher: Watcher = unwatched) -> Timed:
    """Time an epoch of a ResNet-20 with the authors' augmentation of CIFAR-10 beside one without.

    Larger networks spend the same on augmentation and more on all else.
    """
    split, model = noise_split(count, side=32), build("resnet20", 2)
    compute, augmented = accelerator("cpu"), recipe("cifar10-selective").training

    def epoch(training: TrainConfig) -> None:
        finetune(model, split, keep=None, lr=training.lr, config=training, compute=compute)

    sides = {
        "plain": lambda: epoch(replace(augmented, augment=NONE)),
        "augmented": lambda: epoch(augmented),
    }
    taken = race(sides, laps=laps, stage="augmented epoch", watcher=watcher)
    return {("augmented_over_plain_epoch", "resnet20@32"): compare(taken, "augmented", "plain")}


def store_bytes_per_image(count: int, *, coarse: tuple[int, int] = (7, 7)) -> float:
    """Return the size of ``heat.safetensors`` over the pictures it serves."""
    heat = torch.rand(count, *coarse, generator=stream(0, "bench/heat"))
    store = HeatStore(rounds=(heat,), size=(224, 224), layer="layer4.1", method="xgradcam")
    return len(save(*store.to_tensors())) / count


def peaks(counts: tuple[int, int], *, watcher: Watcher = unwatched) -> Figures:
    """Measure by how much heat for a whole split raises the peak of memory, in bytes a picture.

    "ratio" is the larger count's figure over the smaller's, and "each_further" what one picture
    more adds between them.
    """
    few, many = counts
    with ThreadPoolExecutor() as pool:  # each waits for a process of its own
        low, high = pool.map(peak_growth, counts)
    watcher(Progress(stage="memory", done=1, total=1))
    parts = {
        str(few): low / few,
        str(many): high / many,
        "ratio": (high / many) / (low / few),
        "each_further": (high - low) / (many - few),
    }
    return {("peak_bytes_per_image", name): value for name, value in parts.items()}


def met(value: float, goal: tuple[str, float]) -> bool:
    """Tell whether a value is good enough."""
    relation, limit = goal
    return value <= limit if relation == "<=" else value >= limit


def document(figures: Figures, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures, plain, and under "detail" the goals with their verdicts."""
    verdicts = {
        key: {
            "value": round(figures[key], 4),
            "goal": f"{goal[0]} {goal[1]:g}",
            "met": met(figures[key], goal),
        }
        for key, goal in GOALS.items()
    }
    machine = {
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    plain = _nested({key: round(value, 4) for key, value in figures.items()})
    return {**plain, "detail": {"goals": _nested(verdicts), **notes, "machine": machine}}


def text(figures: Figures) -> str:
    """Return a line for every figure, with its goal."""
    lines = []
    for key, value in figures.items():
        line = f"{key[0]:26} {key[1]:14} {value:12,.3f}"
        if (goal := GOALS.get(key)) is not None:
            word = "met" if met(value, goal) else "missed"
            line += f"   goal {goal[0]} {goal[1]:g}: {word}"
        lines.append(line)
    return "\n".join(lines)


def _nested(values: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Return values by figure, and within it by part unless it is one number."""
    nested: dict[str, Any] = {}
    for (figure, name), value in values.items():
        if name:
            nested.setdefault(figure, {})[name] = value
        else:
            nested[figure] = value
    return nested
