"""Measure what heat and hiding cost beside what they are added to: ``python -m masktune bench``."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import torch
from safetensors.torch import save

from benchmarks.memory import peak_growth
from benchmarks.race import Race
from benchmarks.races import race_epochs, race_heat, race_peer
from benchmarks.results import Ratios
from benchmarks.subjects import SIDE, noise_split, part, subject
from masktune.data.types import Split
from masktune.datasets.catalogue import load
from masktune.heat.store import HeatStore
from masktune.progress import Progress, Watcher, unwatched
from masktune.recipes import recipe
from masktune.seeds import stream

DEMO = "biased-mnist-5k"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A network and how long it is timed.

    Attributes:
        arch: name of the network.
        side: of its pictures, in pixels.
        batch: pictures in a batch.
        laps: at most so many for heat and masks.
        peer_laps: at most so many for pytorch-grad-cam.
    """

    arch: str
    side: int
    batch: int
    laps: int
    peer_laps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is run.

    Attributes:
        trials: the networks.
        epoch: pictures in a timed epoch.
        epoch_laps: at most so many epochs of each kind.
        counts: the two sizes of a split between which the peak of memory is compared.
    """

    trials: tuple[Trial, ...]
    epoch: int
    epoch_laps: int
    counts: tuple[int, int]


FULL = Effort(
    trials=(
        Trial(arch="resnet18", side=224, batch=8, laps=40, peer_laps=20),
        Trial(arch="small-cnn", side=SIDE, batch=128, laps=120, peer_laps=30),
    ),
    epoch=512,
    epoch_laps=40,
    counts=(1_000, 10_000),
)
QUICK = Effort(
    trials=(
        Trial(arch="resnet18", side=224, batch=2, laps=2, peer_laps=1),
        Trial(arch="small-cnn", side=SIDE, batch=32, laps=5, peer_laps=2),
    ),
    epoch=128,
    epoch_laps=2,
    counts=(600, 1_200),
)


def measure(*, quick: bool = False, watcher: Watcher = unwatched) -> Ratios:
    """Measure everything, side by side, on the CPU.

    Args:
        quick: small batches and few laps, to see that the benchmark works; the figures are rough.
        watcher: told after every lap.
    """
    effort = QUICK if quick else FULL
    heats: dict[str, Race] = {}
    peers: dict[str, Race] = {}
    for trial in effort.trials:
        chosen = subject(trial.arch, side=trial.side, count=trial.batch)
        heats[chosen.name] = race_heat(chosen, laps=trial.laps, watcher=watcher)
        peers[chosen.name] = race_peer(chosen, laps=trial.peer_laps, watcher=watcher)
    epochs = race_epochs(
        _pictures(effort.epoch, quick=quick),
        training=recipe(DEMO).training,
        laps=effort.epoch_laps,
        watcher=watcher,
    )
    return Ratios(
        heat_over_forward=_ratios(heats, "heat", "forward"),
        gradcam_over_heat=_ratios(peers, "theirs", "ours"),
        mask_seconds_over_forward=_ratios(heats, "mask", "forward"),
        store_bytes_per_image=store_bytes_per_image(1_000),
        finetune_over_plain_epoch=epochs.ratio("hidden", "plain"),
        peak_bytes_per_image=peaks(effort.counts, watcher=watcher),
        notes={
            "clock": "CPU time on one thread, best of the laps; medians over laps show the noise",
            "medians": {
                "heat_over_forward": _medians(heats, "heat", "forward"),
                "gradcam_over_heat": _medians(peers, "theirs", "ours"),
                "mask_seconds_over_forward": _medians(heats, "mask", "forward"),
                "finetune_over_plain_epoch": round(epochs.median_ratio("hidden", "plain"), 4),
            },
            "effort": asdict(effort),
        },
    )


def store_bytes_per_image(count: int, *, coarse: tuple[int, int] = (7, 7)) -> float:
    """Give the size of ``heat.safetensors`` over the pictures it serves."""
    heat = torch.rand(count, *coarse, generator=stream(0, "bench/heat"))
    store = HeatStore(rounds=(heat,), size=(224, 224), layer="layer4.1", method="xgradcam")
    return len(save(*store.to_tensors())) / count


def peaks(counts: tuple[int, int], *, watcher: Watcher = unwatched) -> dict[str, float]:
    """Measure the peak of memory for two counts of pictures; see ``Ratios``."""
    few, many = counts
    with ThreadPoolExecutor() as pool:  # each waits for a process of its own
        low, high = pool.map(peak_growth, counts)
    watcher(Progress(stage="memory", done=1, total=1))
    return {
        str(few): low / few,
        str(many): high / many,
        "ratio": (high / many) / (low / few),
        "each_further": (high - low) / (many - few),
    }


def _pictures(count: int, *, quick: bool) -> Split:
    # Time does not depend on what the pictures show, and reading the digits takes seconds.
    return noise_split(count, side=SIDE) if quick else part(load(DEMO).train, count)


def _ratios(races: Mapping[str, Race], side: str, base: str) -> dict[str, float]:
    return {name: race.ratio(side, base) for name, race in races.items()}


def _medians(races: Mapping[str, Race], side: str, base: str) -> dict[str, Any]:
    return {name: round(race.median_ratio(side, base), 4) for name, race in races.items()}
