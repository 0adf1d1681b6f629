"""Try the verdict before the epoch, and keep what it says under docs/results/verdicts.

``python -m docs.verdicts cows-and-camels`` trains the model before over three seeds, or takes the
bundled one as well, judges it at several k and says which k and rate would be suggested;
``--root``, ``--model`` and ``--weights`` say where pictures, a public checkpoint and pretrained
weights lie. Models trained here are kept under
``$MASKTUNE_HOME/verdicts``. The page of results, made by ``masktune reproduce --results``, has them
in one table.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.checkpoints.settings import settings
from masktune.checkpoints.start import given_model, start_model
from masktune.compute import accelerator
from masktune.config import BUNDLED, RunConfig
from masktune.datasets.catalogue import card
from masktune.files import home, replace_file
from masktune.runs.load import load_for
from masktune.studies.verdicts import verdict_rows
from masktune.training.by_recipe import model_before
from masktune.training.context import Context

KEPT = Path(__file__).resolve().parent / "results" / "verdicts"
SEEDS = (0, 1, 2)
_SMALL = {"arch": "resnet18", "frame": "resize 96x96", "epochs": 6, "batch_size": 32, "lr": 0.01}

CASES: dict[str, dict[str, Any]] = {
    **{
        name: {"dataset": name}
        for name in (
            *("biased-mnist-5k", "two-squares-mnist-5k"),
            *("cows-and-camels", "cows-and-camels-stamp"),
        )
    },
    "cifar10": {"dataset": "cifar10", "validation": "test", "normalise": "imagenet"},
    "waterbirds": {"dataset": "waterbirds", "weights": "none", "augment": "none", **_SMALL},
    "waterbirds-pretrained": {"dataset": "waterbirds", "recipe": "waterbirds-pretrained"},
    "cats": {"dataset": "folder", **_SMALL},
    "stamped-pets": {"dataset": "stamped-pets"},
    "stamped-pets-one-sided": {"dataset": "stamped-pets", "recipe": "stamped-pets-one-sided"},
}
"""Settings of each case; all that a recipe says otherwise is the recipe's."""


def main() -> None:
    """Judge one case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=CASES)
    for option in ("root", "model", "weights"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--seeds", type=lambda text: [*map(int, text.split(","))], default=SEEDS)
    asked = parser.parse_args()
    where = {n: v for n in ("root", "model", "weights") if (v := getattr(asked, n)) is not None}
    rows = [row for found in judged(asked.case, where, asked.seeds) for row in found]
    words = "".join(f" --{name} {'DIR' if name == 'root' else 'FILE'}" for name in where)
    document = {
        "name": asked.case,
        "command": f"python -m docs.verdicts {asked.case}{words}",
        "rows": rows,
    }
    KEPT.mkdir(parents=True, exist_ok=True)
    with replace_file(KEPT / f"{asked.case}.json") as file:
        file.write((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


def judged(
    case: str, where: dict[str, str], seeds: tuple[int, ...]
) -> Iterator[list[dict[str, Any]]]:
    """Give the rows of each model: the bundled or given one, and one trained for each seed."""
    given = {**CASES[case], **where}
    if "model" not in given and card(given["dataset"]).bundled:
        bundled = {**given, "model": BUNDLED}
        yield from judged_model(bundled, "bundled")
    if "model" in given:
        yield from judged_model(given, "public")
        return
    for seed in seeds:
        context = opened(settings({**given, "seed": seed}))
        yield verdict_rows(context, trained(context, f"{case}-{seed}"), model=f"seed {seed}")


def judged_model(given: dict[str, Any], name: str) -> Iterator[list[dict[str, Any]]]:
    """Give the rows of a model that is there already."""
    context = opened(settings(given))
    before = given_model(given["model"], context.bundle.card, config=context.config)
    yield verdict_rows(context, before, model=name)


def opened(config: RunConfig) -> Context:
    """Return a run's pictures and settings."""
    return Context(config=config, bundle=load_for(config), compute=accelerator(config.device))


def trained(context: Context, name: str) -> Checkpoint:
    """Return the model of a seed, trained once."""
    path = home() / "verdicts" / f"{name}.pt"
    if not path.is_file():
        before = model_before(context)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as file:
            torch.save(before.model.state_dict(), file)
    model = start_model(context.config, context.bundle.card)
    model.load_state_dict(torch.load(path, weights_only=True))
    classes = len(context.bundle.card.classes)
    lr = context.config.training.last_lr
    return Checkpoint(model=model, arch=context.config.arch, classes=classes, lr=lr)


if __name__ == "__main__":
    main()
