"""Which runs make up an experiment."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from masktune.config import AUTO, BY_RECIPE, MASKTUNE, Device, MaskingConfig, RunConfig, TrainConfig
from masktune.data.augment import NONE, RECIPE
from masktune.data.card import Exceptions, Stamp, Validation
from masktune.datasets.catalogue import card
from masktune.errors import ConfigError
from masktune.recipes import Scale
from masktune.runs.folder import BEFORE
from masktune.studies.experiments import ONE_MORE, Experiment, experiment
from masktune.studies.study import StudyRun

CHANGEABLE = ("exceptions", "stamp", "correlation", "arch", "freeze", "augment")
"""What can be asked for in place of a recipe's, by the names of a run's options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to repeat.

    Attributes:
        recipe: name of the experiment.
        seeds: how often; None for the recipe's own seeds.
        model: an ERM checkpoint to start from instead of training one.
        validation: "test" validates on half of the test pictures, for a model that saw the rest.
        weights: file of the pretrained weights, where there is no network to fetch them.
        exceptions: of the pictures; None for the recipe's, as with all below.
        stamp: on the pictures.
        correlation: share of a class that carries its stamp.
        arch: another network; the recipe's weights, their normalisation and the frozen layers do
            not belong to it.
        freeze: up to which layer nothing is learnt.
        augment: names of augmentations; "recipe" for the recipe's as well.
        given: released weights that the paper's table has rows of, by name and file.
    """

    recipe: str
    scale: Scale = "paper"
    seeds: int | None = None
    root: str | None = None
    model: str | None = None
    validation: Validation = "own"
    weights: str | None = None
    exceptions: Exceptions | None = None
    stamp: Stamp | None = None
    correlation: float | None = None
    arch: str | None = None
    freeze: str | None = None
    augment: str | None = None
    given: tuple[tuple[str, str], ...] = ()
    device: Device = "auto"

    def changes(self) -> dict[str, str]:
        """Return what is asked for in place of the recipe's, by the names of its options."""
        said = {name: getattr(self, name) for name in CHANGEABLE}
        return {name: str(value) for name, value in said.items() if value and value != RECIPE}

    def asked(self) -> Experiment:
        """Return the experiment at its scale, with what is changed in it."""
        found, changes = experiment(self.recipe).at(self.scale), self.changes()

        def changed(training: TrainConfig) -> TrainConfig:
            # An arm that is about augmentation keeps its own.
            as_usual = training.augment == found.recipe.training.augment
            asked = changes.get("augment", training.augment)
            training = replace(training, augment=asked if as_usual else training.augment)
            if self.arch:
                training = replace(training, freeze=NONE, erm_batch_norm="learnt")
            return replace(training, freeze=self.freeze or training.freeze)

        usual = found.recipe
        recipe = replace(
            usual,
            training=changed(usual.training),
            exceptions=self.exceptions or usual.exceptions,
            stamp=self.stamp or usual.stamp,
            correlation=self.correlation or usual.correlation,
        )
        if self.arch:
            recipe = replace(recipe, arch=self.arch, weights=None, normalise=None)
            recipe = replace(recipe, batch_norm="learnt")
        arms = (
            arm if arm.training is None else replace(arm, training=changed(arm.training))
            for arm in found.arms
        )
        return replace(found, recipe=recipe, arms=tuple(arms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(StudyRun):
    """One run of an experiment; ``method`` is the arm."""

    def to_json(self, *, out: Path) -> dict[str, Any]:
        """Give it as a JSON object; its folder from that of the experiment."""
        run = os.path.relpath(self.path, out)  # models before lie beside all experiments
        return {"arm": self.method, "seed": self.seed, "run": Path(run).as_posix()}


def plan(request: Request, *, out: Path) -> Iterator[Planned]:
    """List the runs of an experiment in order, within the folder of all experiments.

    For every seed the ERM model comes first, with the control of one more epoch; it lies where all
    recipes that need the same one find it. Then every arm, from that model or after one of its own.
    """
    asked = request.asked()
    base = asked.recipe
    weights = request.weights or base.weights
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
            normalise=base.normalise,
            exceptions=base.exceptions,
            stamp=base.stamp,
            correlation=base.correlation,
            batch_norm=base.batch_norm,
            model=request.model,
            weights=None if request.model else weights,
            seed=seed,
            device=request.device,
        )
        erm = _erm(first, name=ONE_MORE, out=out)
        yield erm
        for arm in asked.arms:
            start = erm
            if arm.has_own_erm:
                training, stamp = arm.training or first.training, arm.stamp or first.stamp
                trained = replace(first, training=training, stamp=stamp)
                start = _erm(trained, name=f"{ONE_MORE}: {arm.name}", out=out)
                yield start
            yield Planned(
                method=arm.name,
                seed=seed,
                config=replace(
                    first,
                    arch=AUTO,
                    stamp=start.config.stamp,
                    training=replace(arm.training or start.config.training, best=arm.best)
                    if arm.rival != MASKTUNE
                    else start.config.training,
                    masking=arm.masking,
                    rival=arm.rival,
                    rival_settings=arm.rival_settings,
                    model=str(start.path / BEFORE),
                    weights=weights if arm.rival in BY_RECIPE else None,
                    finetune_lr=arm.finetune_lr,
                ),
                path=folder_of(request, out=out) / f"seed-{seed}" / _slug(arm.name),
            )


_ALWAYS = ("optimizer", "momentum", "weight_decay", "decay_at", "decay_factor")
"""Settings of a training that there were from the first, beside those without a default."""


def _erm(config: RunConfig, *, name: str, out: Path) -> Planned:
    # By the dataset's recipe, not this one: the same run serves several recipes.
    shared = replace(config, recipe=card(config.dataset).recipe)
    # What decides an ERM model but the seed. What could not always be chosen only where it is, so
    # that the names of models trained before stay.
    told = (config.dataset, config.arch, config.root, config.frame, config.model, config.weights)
    late = ("validation", "exceptions", "normalise", "stamp", "correlation", "batch_norm")
    held = [
        getattr(config, option.name)
        for option in fields(config)
        if option.name in late and getattr(config, option.name) != option.default
    ]
    training = {
        option.name: getattr(config.training, option.name)
        for option in fields(config.training)
        if option.name in _ALWAYS or getattr(config.training, option.name) != option.default
    }
    content = json.dumps([told, *held, training])
    which = f"{config.dataset}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    path = out / "erm" / which / f"seed-{config.seed}"
    return Planned(method=name, seed=config.seed, config=shared, path=path)


def folder_of(request: Request, *, out: Path) -> Path:
    """Give the folder of an experiment."""
    return out / name_of(request.recipe, request.scale, request.changes())


def name_of(recipe: str, scale: str, changes: Mapping[str, str]) -> str:
    """Return what the folder and the table of an experiment are called.

    >>> name_of("cifar10-selective", "short", {"augment": "flip,crop4"})
    'cifar10-selective-short-augment-flip-crop4'
    """
    return _slug("-".join([recipe, scale, *(f"{name} {said}" for name, said in changes.items())]))


def _slug(name: str) -> str:
    """Give an arm's name as a folder name.

    >>> _slug("k = 2, all pixels")
    'k-2-all-pixels'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
