"""Which runs make up an experiment, and carrying them out."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from masktune.config import AUTO, Device, MaskingConfig, RunConfig
from masktune.data.card import Validation
from masktune.datasets.catalogue import card
from masktune.errors import ConfigError
from masktune.pipeline import run
from masktune.progress import Progress, Watcher, unwatched
from masktune.recipes import Scale
from masktune.runs.folder import BEFORE
from masktune.scores.result import RunResult
from masktune.studies.experiments import ONE_MORE, experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to repeat.

    Attributes:
        recipe: name of the experiment.
        seeds: how often; None for the recipe's own seeds.
        model: an ERM checkpoint to start from instead of training one.
        validation: "test" validates on half of the test pictures, for a model that saw the rest.
        weights: file of the pretrained weights, where there is no network to fetch them.
    """

    recipe: str
    scale: Scale = "paper"
    seeds: int | None = None
    root: str | None = None
    model: str | None = None
    validation: Validation = "own"
    weights: str | None = None
    device: Device = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One run of an experiment."""

    arm: str
    seed: int
    config: RunConfig
    path: Path


def plan(request: Request, *, out: Path) -> Iterator[Planned]:
    """List the runs of an experiment in order, within the folder of all experiments.

    For every seed the ERM model comes first, with the control of one more epoch; it lies where all
    recipes that need the same one find it. Then every arm, from that model or after one of its own.
    """
    asked = experiment(request.recipe).at(request.scale)
    base = asked.recipe
    if request.seeds is not None and request.seeds < 1:
        raise ConfigError(f"There are {request.seeds} seeds.", "Give a whole number from 1 up.")
    for seed in asked.seeds if request.seeds is None else range(request.seeds):
        first = RunConfig(
            dataset=base.dataset,
            recipe=base.name,
            arch=base.arch if request.model is None else AUTO,
            training=base.training,
            masking=MaskingConfig(strategy="none"),
            root=request.root,
            frame=base.frame,
            validation=request.validation,
            model=request.model,
            weights=None if request.model else request.weights or base.weights,
            seed=seed,
            device=request.device,
        )
        erm = _erm(first, name=ONE_MORE, out=out)
        yield erm
        for arm in asked.arms:
            start = erm
            if arm.training is not None:
                trained = replace(first, training=arm.training)
                start = _erm(trained, name=f"{ONE_MORE}: {arm.name}", out=out)
                yield start
            yield Planned(
                arm=arm.name,
                seed=seed,
                config=replace(
                    first,
                    arch=AUTO,
                    training=start.config.training,
                    masking=arm.masking,
                    model=str(start.path / BEFORE),
                    weights=None,
                    finetune_lr=arm.finetune_lr,
                ),
                path=folder_of(request, out=out) / f"seed-{seed}" / _slug(arm.name),
            )


def _erm(config: RunConfig, *, name: str, out: Path) -> Planned:
    # By the dataset's recipe, not this one: the same run serves several recipes.
    shared = replace(config, recipe=card(config.dataset).recipe)
    # What decides an ERM model but the seed. Validation only where it is chosen, so that the names
    # of models trained before it could be stay.
    told = (config.dataset, config.arch, config.root, config.frame, config.model, config.weights)
    held = [] if config.validation == "own" else [config.validation]
    content = json.dumps([told, *held, asdict(config.training)])
    which = f"{config.dataset}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    path = out / "erm" / which / f"seed-{config.seed}"
    return Planned(arm=name, seed=config.seed, config=shared, path=path)


def folder_of(request: Request, *, out: Path) -> Path:
    """Give the folder of an experiment."""
    return out / f"{request.recipe}-{request.scale}"


def reproduce(
    request: Request, *, out: Path, watcher: Watcher = unwatched
) -> list[tuple[Planned, RunResult]]:
    """Do every run of an experiment that is not done yet, or go on where one was interrupted.

    The watcher hears the steps of each run, with the run before the stage.
    """
    done: list[tuple[Planned, RunResult]] = []
    runs = list(plan(request, out=out))
    for number, planned in enumerate(runs, start=1):
        name = f"{number}/{len(runs)} {planned.arm}, seed {planned.seed}: "

        def watch(progress: Progress, name: str = name) -> None:
            watcher(replace(progress, stage=name + progress.stage))

        done.append((planned, run(planned.config, out=planned.path, watcher=watch)))
    return done


def _slug(name: str) -> str:
    """Give an arm's name as a folder name.

    >>> _slug("k = 2, all pixels")
    'k-2-all-pixels'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
