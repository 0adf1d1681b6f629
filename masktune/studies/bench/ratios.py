"""What heat and hiding cost beside what they are added to: ``python -m masktune bench``.

A figure is a number by (name, part), such as ("heat_over_forward", "small-cnn@28"); the part is
empty for figures of one number. benchmarks/README.md says what each is.
"""

import os
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from safetensors.torch import save

from masktune.data.splits import part
from masktune.data.types import Split
from masktune.datasets.catalogue import load
from masktune.heat.store import HeatStore
from masktune.progress import Progress, Watcher, unwatched
from masktune.recipes import recipe
from masktune.seeds import stream
from masktune.studies.bench.memory import peak_growth
from masktune.studies.bench.race import best_ratio, median_ratio
from masktune.studies.bench.races import (
    SIDE,
    noise_split,
    race_epochs,
    race_heat,
    race_peer,
    subject,
)

DEMO = "biased-mnist-5k"

Figures = dict[tuple[str, str], float]
"""Numbers by (figure, part)."""

GOALS: dict[tuple[str, str], tuple[str, float]] = {
    ("heat_over_forward", "resnet18@224"): ("<=", 1.05),
    ("heat_over_forward", "small-cnn@28"): ("<=", 1.3),
    ("gradcam_over_heat", "resnet18@224"): (">=", 3),
    ("mask_seconds_over_forward", "resnet18@224"): ("<=", 0.1),
    ("mask_seconds_over_forward", "small-cnn@28"): ("<=", 0.1),
    ("store_bytes_per_image", ""): ("<=", 256),
    ("finetune_over_plain_epoch", ""): ("<=", 1.1),
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
    "counts": (1_000, 10_000),
}
"""How much is run: batches and laps at most by network, pictures and laps of the timed epoch, and
the two sizes of a split between which the peak of memory is compared."""

QUICK: dict[str, Any] = {
    "trials": (
        {"arch": "resnet18", "side": 224, "batch": 2, "laps": 2, "peer_laps": 1},
        {"arch": "small-cnn", "side": SIDE, "batch": 32, "laps": 5, "peer_laps": 2},
    ),
    "epoch": 128,
    "epoch_laps": 2,
    "counts": (600, 1_200),
}


def measure(*, quick: bool = False, watcher: Watcher = unwatched) -> tuple[Figures, dict[str, Any]]:
    """Measure everything, side by side, on the CPU; return the figures and how they were measured.

    ``quick`` takes small batches and few laps, to see that it works; its figures are rough.
    """
    effort = QUICK if quick else FULL
    races = []
    for trial in effort["trials"]:
        chosen = subject(trial["arch"], side=trial["side"], count=trial["batch"])
        heat = race_heat(chosen, laps=trial["laps"], watcher=watcher)
        peer = race_peer(chosen, laps=trial["peer_laps"], watcher=watcher)
        races += [
            ("heat_over_forward", chosen.name, heat, "heat", "forward"),
            ("gradcam_over_heat", chosen.name, peer, "theirs", "ours"),
            ("mask_seconds_over_forward", chosen.name, heat, "mask", "forward"),
        ]
    epochs = race_epochs(
        _pictures(effort["epoch"], quick=quick),
        training=recipe(DEMO).training,
        laps=effort["epoch_laps"],
        watcher=watcher,
    )
    races.append(("finetune_over_plain_epoch", "", epochs, "hidden", "plain"))
    best = {(figure, name): best_ratio(laps, *sides) for figure, name, laps, *sides in races}
    medians = {(figure, name): median_ratio(laps, *sides) for figure, name, laps, *sides in races}
    figures = {
        **best,
        ("store_bytes_per_image", ""): store_bytes_per_image(1_000),
        **peaks(effort["counts"], watcher=watcher),
    }
    notes = {
        "clock": "CPU time on one thread, best of the laps; medians over laps show the noise",
        "medians": _nested({key: round(value, 4) for key, value in medians.items()}),
        "effort": effort,
    }
    order = [figure for figure, _ in GOALS]
    return dict(sorted(figures.items(), key=lambda item: order.index(item[0][0]))), notes


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


def _pictures(count: int, *, quick: bool) -> Split:
    # Time does not depend on what the pictures show, and reading the digits takes seconds.
    return noise_split(count, side=SIDE) if quick else part(load(DEMO).train, torch.arange(count))


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
