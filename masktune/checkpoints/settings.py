"""The options of ``python -m masktune run`` and of its kin, and the settings they make."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from masktune.checkpoints.inspect import stored_normalisation
from masktune.compute import DEVICES
from masktune.config import AUTO, Method, RunConfig, Statistics, Strategy
from masktune.data.normalisations import FROM_CHECKPOINT, NORMALISATIONS
from masktune.datasets.catalogue import CATALOGUE, card
from masktune.errors import ConfigError
from masktune.recipes import RECIPES, recipe

BUNDLED = "bundled"


def add_run_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option of a run."""
    add_subject_arguments(
        command, model="checkpoint to start from, or 'bundled'; without it a model is trained"
    )
    add = command.add_argument
    add(
        "--weights",
        help="pretrained weights that training starts from: a file or torchvision's name",
    )
    add("--epochs", type=int, help="epochs of the ERM training")
    add("--lr", type=float, help="learning rate of the ERM training")
    add("--strategy", help=f"what is hidden: {', '.join(get_args(Strategy))}")
    add("--k", type=float, help="threshold in sigmas above the mean heat, 0 to 3")
    add("--rounds", type=int, help="how often to mask and finetune")
    add("--accumulate", action=argparse.BooleanOptionalAction, help="later rounds hide in addition")
    add("--top-fraction", type=float, help="share of the pixels that topk hides")
    add("--out", type=Path, help="run folder; by default a new one in $MASKTUNE_HOME/runs")


def add_subject_arguments(command: argparse.ArgumentParser, *, model: str) -> None:
    """Add what says which pictures, which model, how heat is read and how it is finetuned.

    Args:
        command: the command.
        model: what to say about the option ``--model``.
    """
    add = command.add_argument
    add("--dataset", required=True, help=f"one of {', '.join(CATALOGUE)}")
    add("--root", type=Path, help="where a dataset that is not bundled lies")
    add("--frame", help="what the model sees of a picture, such as 'shorter 256, crop 224'")
    add(
        "--normalise",
        help=f"{', '.join(NORMALISATIONS)}, '{FROM_CHECKPOINT}' or numbers as 'mean / std'",
    )
    add(
        "--validation",
        default="own",
        help="what validates: own, or test: half of the test pictures, for a model that has seen "
        "all others",
    )
    add("--model", help=model)
    add("--arch", help="architecture, such as small-cnn, resnet32 or a torchvision name")
    add("--layer", help="where heat is read; by default the last spatial feature map")
    add("--method", help=f"explainer: {', '.join(get_args(Method))}")
    add("--statistics", help=f"mu and sigma over: {', '.join(get_args(Statistics))}")
    add("--recipe", help=f"named settings, by default the dataset's: {', '.join(RECIPES)}")
    add("--batch-size", type=int, help="pictures a step")
    add("--finetune-lr", type=float, help="rate of the finetune; by default the ERM's last")
    add("--seed", type=int, default=0, help="the same seed gives the same result")
    add("--device", default="auto", help=f"one of {', '.join(DEVICES)}")


def run_config(chosen: argparse.Namespace) -> RunConfig:
    """Give the settings of a run: what was asked for, over the recipe."""
    base = recipe(chosen.recipe or card(chosen.dataset).recipe)
    return RunConfig(
        dataset=chosen.dataset,
        recipe=base.name,
        arch=chosen.arch or (base.arch if chosen.model in (None, BUNDLED) else AUTO),
        training=replace(base.training, **_given(chosen, "epochs", "batch_size", "lr")),
        masking=replace(
            base.masking,
            **_given(chosen, "strategy", "k", "statistics", "rounds", "accumulate"),
            **_given(chosen, "top_fraction", "method", "layer"),
        ),
        root=None if chosen.root is None else str(chosen.root),
        frame=chosen.frame,
        normalise=_stored(chosen.model)
        if chosen.normalise == FROM_CHECKPOINT
        else chosen.normalise,
        validation=chosen.validation,
        model=chosen.model,
        weights=getattr(chosen, "weights", None),
        finetune_lr=chosen.finetune_lr,
        seed=chosen.seed,
        device=chosen.device,
    )


def _stored(model: str | None) -> str:
    """Give the normalisation that a checkpoint file states, so that the run's settings say it."""
    if model in (None, BUNDLED):
        raise ConfigError(
            "There is no checkpoint file to take the normalisation from.",
            "Give one by --model, or name the normalisation.",
        )
    return stored_normalisation(Path(str(model)))


def _given(chosen: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Keep the settings that were given; the recipe decides those left out or not offered."""
    return {name: value for name in names if (value := getattr(chosen, name, None)) is not None}
