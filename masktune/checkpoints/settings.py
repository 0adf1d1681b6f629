"""Settings of a run: what was given over its recipe, and the words that make them again."""

import argparse
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from masktune.checkpoints.hugging_face import weights_file
from masktune.checkpoints.trained import settings_of, trained_in
from masktune.config import (
    AUTO,
    BODY,
    BUNDLED,
    BY_RECIPE,
    ERM_ONLY,
    MASKTUNE,
    MaskingConfig,
    Part,
    RivalConfig,
    RunConfig,
    Value,
    epochs_named,
    idle,
    names_listed,
    options,
    order_listed,
)
from masktune.data.augment import COLOURS, MOVES, NONE, RECIPE, named
from masktune.data.normalisations import FROM_CHECKPOINT, NORMALISATIONS
from masktune.datasets.catalogue import CATALOGUE, card
from masktune.errors import ConfigError
from masktune.recipes import RECIPES, recipe

OPTIONS = {option.name: option for option in options(RunConfig)}
"""All options of a run, by name."""

NOTHING_HIDDEN = MaskingConfig(strategy="none")
"""The masking of a rival: it looks at the pictures as they are."""

NO_WEIGHTS = "none"
"""Says that training starts afresh, where the recipe starts from pretrained weights."""

MOST_K = 3.0
"""Thresholds above it hide next to nothing; runs of before may have one."""

NAMES: dict[str, Iterable[str]] = {
    "dataset": CATALOGUE,
    "recipe": RECIPES,
    "normalise": NORMALISATIONS,
    "augment": (NONE, RECIPE, *MOVES, *COLOURS),
}
"""What can be named where more is known than the option's type says."""


def add_options(command: argparse.ArgumentParser, *, without: frozenset[str] = frozenset()) -> None:
    """Add the options of a run to a command, without some by name."""
    for option in OPTIONS.values():
        if option.name not in without:
            how: dict[str, Any] = {"type": option.kind}
            if option.kind is bool:
                how = {"action": argparse.BooleanOptionalAction}
            names = option.choices or NAMES.get(option.name, ())
            text = f"{option.help}: {', '.join(names)}" if names else option.help
            command.add_argument(option.flag, required=option.name == "dataset", help=text, **how)


def run_config(chosen: argparse.Namespace) -> RunConfig:
    """Return the settings that a command line says."""
    return settings({name: getattr(chosen, name, None) for name in OPTIONS})


def settings(
    given: Mapping[str, Value], *, without_effect: Literal["refused", "left out"] = "refused"
) -> RunConfig:
    """Return the settings of a run: what was given, over the recipe.

    Args:
        given: values by the options' names; None and "" count as not given.
        without_effect: what becomes of options that can change nothing in this run.

    Raises:
        ConfigError: a value cannot be used, or would do nothing.
    """
    chosen = {name: value for name, value in given.items() if value not in (None, "")}
    usual = _resolved(chosen)
    config = _over_recipe(usual | chosen)
    reasons = idle(config)
    epochs, falls = config.training.epochs, config.training.decay_at
    if never := "decay_at" not in reasons and min(falls, default=0) >= epochs:
        # What a recipe's own are, too, in a training that is cut short.
        reasons["decay_at"] = f"the training is over after {epochs} epochs"
    heeded = {name: chosen[name] for name in chosen if name not in reasons}
    if "k" in heeded:
        check_k(config.masking.k)
    used = _over_recipe(usual | heeded)
    if without_effect == "left out":
        # In place of a fall that never comes, the recipe's would come.
        instead = never and min(used.training.decay_at, default=epochs) < epochs
        return _over_recipe({**usual, **heeded, "decay_at": NONE}) if instead else used
    for name, why in reasons.items():
        if name in chosen and OPTIONS[name].of(config) != OPTIONS[name].of(used):
            raise ConfigError(
                f"{OPTIONS[name].flag} {chosen[name]} would do nothing: {why}.",
                "Leave it out"
                + (", or give the rate of the finetune by --finetune-lr." if name == "lr" else "."),
            )
    return config


def check_k(k: float) -> None:
    """Refuse a threshold at which a run would hide next to nothing."""
    if k > MOST_K:
        raise ConfigError(
            f"k is {k:g}.", f"Give 0 (hides most) to {MOST_K:g}; the paper's choice is 2."
        )


def _resolved(chosen: dict[str, Any]) -> dict[str, Value]:
    """Put files in the place of folders that hold a model; return what goes with the files.

    A model in its folder is looked at as it was trained: pictures, seed, and what training and
    finetune share. Pretrained weights tell their architecture.
    """
    for name in ("model", "weights"):
        if (file := trained_in(chosen.get(name, BUNDLED))) is not None:
            chosen[name] = str(file)
            trained = settings_of(file)
            if name == "model" and trained is not None and trained.dataset == chosen["dataset"]:
                told = given_by(trained, "pictures", "training").items()
                return {n: v for n, v in told if n not in ERM_ONLY and v is not None}
        elif name in chosen and (held := weights_file(Path(chosen[name]))) != Path(chosen[name]):
            chosen[name] = str(held)
    begins = chosen.get("weights", NO_WEIGHTS) != NO_WEIGHTS
    if begins and not {"arch", "model"} & chosen.keys():
        from masktune.checkpoints.start import arch_of_weights  # imports PyTorch

        base = recipe(chosen.get("recipe") or card(chosen["dataset"]).recipe)
        return {"arch": arch_of_weights(chosen["weights"], likely=base.arch)}
    return {}


def _over_recipe(chosen: Mapping[str, Any]) -> RunConfig:
    pictures = card(chosen["dataset"])
    base = recipe(chosen.get("recipe") or pictures.recipe)
    model = chosen.get("model")
    usual: dict[str, Any] = {
        "recipe": base.name,
        "arch": base.arch if model in (None, BUNDLED) else AUTO,
        "frame": base.frame,
    }
    # A model that is given may be the recipe's network, unless another one is named.
    another = chosen.get("arch", AUTO) not in (AUTO, base.arch)
    # Pretrained weights belong to the recipe's network, and to a model that is trained here.
    if not another:
        usual["batch_norm"] = base.batch_norm
        if model is None:
            usual |= {"weights": base.weights, "normalise": base.normalise}
    usual |= {name: getattr(base, name) for name in pictures.heeds}
    own, training, masking, rival_settings = (
        {name: value for name, value in chosen.items() if OPTIONS[name].within == within}
        for within in ("", "training", "masking", "rival_settings")
    )
    rival = own.get("rival", MASKTUNE)
    begins_anew = rival in BY_RECIPE and own.get("start", "scratch") == "scratch"
    if "root" in own:
        own["root"] = str(Path(own["root"]))  # without a slash at the end
    if "decay_at" in training:
        training["decay_at"] = epochs_named(training["decay_at"])
    # A layer belongs to the recipe's network, statistics that do not change to its weights.
    if another and base.training.freeze != BODY:
        training.setdefault("freeze", NONE)
    if (model is None or begins_anew) and {**usual, **own}.get("weights") in (None, NO_WEIGHTS):
        training.setdefault("erm_batch_norm", "learnt")
        if model is not None:  # what is frozen in it has learnt, a new network has not
            training.setdefault("freeze", NONE)
    if (said := training.pop("augment", RECIPE)) != RECIPE:
        training["augment"] = ",".join(named(said)) or NONE  # without spaces
    if own.get("weights") == NO_WEIGHTS:
        own["weights"] = None
    for name, listed in (("class_names", names_listed), ("class_order", order_listed)):
        if name in own:
            own[name] = ",".join(map(str, listed(own[name])))  # without spaces
    if own.get("normalise") == FROM_CHECKPOINT:
        from masktune.checkpoints.inspect import stored_normalisation  # imports PyTorch

        own["normalise"] = stored_normalisation(model or own.get("weights"))
    return RunConfig(
        **{**usual, **own},
        training=replace(base.training, **training),
        masking=replace(base.masking if rival == MASKTUNE else NOTHING_HIDDEN, **masking),
        rival_settings=RivalConfig(**rival_settings),
    )


def given_by(config: RunConfig, *parts: Part) -> dict[str, Value]:
    """Return what must be given to get settings again; of some parts only, if they are named."""
    unused = idle(config)
    found = {
        name: option.of(config)
        for name, option in OPTIONS.items()
        if name not in unused and (not parts or option.part in parts)
    }
    if found.get("weights", "") is None:
        found["weights"] = NO_WEIGHTS
    return found


def same(one: RunConfig, other: RunConfig, *parts: Part, but: Collection[str] = ()) -> bool:
    """Tell whether two runs agree in some parts of their settings, whatever they are called.

    ``but`` names options in which they may differ.
    """
    first, second = (
        {name: value for name, value in _told(config, parts).items() if name not in but}
        for config in (one, other)
    )
    return first == second


@lru_cache(maxsize=8192)  # a page asks it of every run in the home
def _told(config: RunConfig, parts: tuple[Part, ...]) -> Mapping[str, Value]:
    # Settings that differ in their title are equal, and so one entry: it is not told.
    return {name: value for name, value in given_by(config, *parts).items() if name != "title"}


def arguments(config: RunConfig) -> list[str]:
    """Return the words after ``python -m masktune`` that make these settings again.

    >>> arguments(settings({"dataset": "biased-mnist-5k", "model": "bundled"}))[:5]
    ['run', '--dataset', 'biased-mnist-5k', '--recipe', 'biased-mnist-5k']
    """
    return ["train" if config.only_before else "run", *words_of(given_by(config))]


def words_of(given: Mapping[str, Value]) -> list[str]:
    """Return options as they are written on a command line; those that are None are left out.

    >>> words_of({"k": 1.5, "accumulate": False, "root": None})
    ['--k', '1.5', '--no-accumulate']
    """
    words: list[str] = []
    for name, value in given.items():
        flag = OPTIONS[name].flag
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        elif value is not None:
            words += [flag, str(value)]
    return words
