"""Whether it matters that the authors' code finetunes with the ERM's momentum; the paper is silent.

    python -m benchmarks.momentum --root DIR [--seeds 3] [--out FILE]

trains an ERM model on the two squares of all MNIST digits, by the short recipe, and finetunes it in
two accumulative rounds, once with fresh momentum (as MaskTune Studio does) and once going on with
the optimiser of the ERM. Both see the same pictures, hidden alike by their own heat, in their own
order. Writes a table as ``reproduce`` does, for docs/results.
"""

import argparse
import copy
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from masktune.compute import accelerator
from masktune.config import MaskingConfig, TrainConfig
from masktune.data.images import TensorImages
from masktune.data.preprocess import Keeper
from masktune.data.types import DatasetBundle, Split
from masktune.datasets.catalogue import load
from masktune.heat.explain import explain
from masktune.heat.layers import cam_layer, name_of
from masktune.heat.store import HeatStore
from masktune.heat.strategies import keeper
from masktune.models.build import build
from masktune.models.predict import predict
from masktune.recipes import Recipe, recipe
from masktune.studies.tables import Key, row_of
from masktune.training.fit import Resume, TrainingState, finetune, train

FRESH, RESTORED = "fresh momentum", "the ERM's momentum"
ROUNDS = 2

Tune = Callable[[nn.Module, Keeper | None, int], nn.Module]
"""One round: from a model, what is kept and the number of the round to the tuned model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """An ERM model and the state that its training ended in."""

    model: nn.Module
    state: TrainingState


def erm(chosen: Recipe, bundle: DatasetBundle, seed: int) -> Trained:
    """Train the model before and keep its optimiser."""
    states: list[TrainingState] = []
    start = build(chosen.arch, len(bundle.card.classes), size=bundle.card.size, seed=seed)
    model = train(
        start,
        bundle.train,
        config=chosen.training,
        seed=seed,
        resume=Resume(state=None, save=lambda state: states.append(copy.deepcopy(state))),
    )
    return Trained(model=model, state=states[-1])


def hidden(split: Split, keep: Keeper | None) -> Split:
    """Paint what is not kept black, once and for all."""
    if keep is None:
        return split
    parts = [
        split.images.batch(index.tolist()) * keep(index)[:, None]
        for index in torch.split(torch.arange(len(split)), 1024)
    ]
    return replace(split, images=TensorImages(torch.cat(parts).to(torch.uint8)))


def going_on(bundle: DatasetBundle, training: TrainConfig, state: TrainingState, seed: int) -> Tune:
    """Give the rounds that go on with the ERM's optimiser: training, one epoch longer, masked."""
    states = [state]

    def tune(model: nn.Module, keep: Keeper | None, number: int) -> nn.Module:
        longer = replace(training, epochs=training.epochs + number)
        resume = Resume(state=states[-1], save=states.append)
        return train(model, hidden(bundle.train, keep), config=longer, seed=seed, resume=resume)

    return tune


def afresh(bundle: DatasetBundle, training: TrainConfig, seed: int) -> Tune:
    """Give the rounds as MaskTune Studio does them."""

    def tune(model: nn.Module, keep: Keeper | None, number: int) -> nn.Module:
        return finetune(
            model,
            bundle.train,
            keep=keep,
            lr=training.last_lr,
            config=training,
            seed=seed,
            round_number=number,
        )

    return tune


def rounds(model: nn.Module, bundle: DatasetBundle, tune: Tune, seed: int) -> list[nn.Module]:
    """Hide and tune; give the model after each round."""
    masking = MaskingConfig(rounds=ROUNDS)
    store = HeatStore(
        rounds=(),
        size=bundle.card.size,
        layer=name_of(model, cam_layer(model, size=bundle.card.size)),
        method=masking.method,
    )
    keep: Keeper | None = None
    models = [model]
    for number in range(1, ROUNDS + 1):
        heat: Tensor = explain(models[-1], bundle.train, layer=store.layer, keep=keep)
        store = store.adding(heat)
        keep = keeper(masking, store, count=len(bundle.train), round_number=number, seed=seed)
        models.append(tune(models[-1], keep, number))
    return models[1:]


def accuracies(chosen: Recipe, bundle: DatasetBundle, seed: int) -> dict[Key, float]:
    """Do both with one seed; give the accuracy on every test set, before and after each round."""
    trained = erm(chosen, bundle, seed)
    ways = {
        FRESH: afresh(bundle, chosen.training, seed),
        RESTORED: going_on(bundle, chosen.training, trained.state, seed),
    }
    models = {(FRESH, 0): trained.model}
    for arm, tune in ways.items():
        for number, model in enumerate(rounds(trained.model, bundle, tune, seed), start=1):
            models[arm, number] = model
    return {
        Key(
            arm=arm,
            test=test,
            moment="after" if number else "before",
            measure="average",
            rounds=number or None,
        ): float(predict(model, split).correct().mean())
        for (arm, number), model in models.items()
        for test, split in bundle.tests.items()
    }


def table(chosen: Recipe, *, root: Path, seeds: int) -> dict[str, Any]:
    """Repeat over seeds; give a document as ``reproduce`` does."""
    start = time.monotonic()
    found = [
        accuracies(chosen, load(chosen.dataset, root=root, seed=seed), seed)
        for seed in range(seeds)
    ]
    return {
        "recipe": "momentum",
        "scale": "short",
        "dataset": chosen.dataset,
        "arch": chosen.arch,
        "epochs": chosen.training.epochs,
        "frame": None,
        "model": None,
        "seeds": list(range(seeds)),
        "rows": [row_of(key, [one[key] for one in found]) for key in found[0]],
        "findings": [],
        "seconds": round(time.monotonic() - start, 1),
        "device": accelerator().device.type,
        "versions": {"torch": version("torch")},
        "command": f"python -m benchmarks.momentum --root {root.name} --seeds {seeds}",
    }


def main() -> None:
    """Carry out the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the folder that holds MNIST/raw")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the table there instead of printing it")
    chosen = parser.parse_args()
    found = table(recipe("mnist-two-squares").at("short"), root=chosen.root, seeds=chosen.seeds)
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    if chosen.out is None:
        sys.stdout.write(text)
    else:
        chosen.out.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
