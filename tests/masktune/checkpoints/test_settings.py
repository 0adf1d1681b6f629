"""Whatever is set is used, refused or said: one test a row of the options' table."""

import argparse
import json
from typing import get_args

import pytest

from masktune.checkpoints.settings import (
    OPTIONS,
    add_options,
    arguments,
    given_by,
    settings,
    subject,
)
from masktune.compute import DEVICES
from masktune.config import Device, MaskingConfig, RunConfig
from masktune.errors import ConfigError

DEMO = "biased-mnist-5k"
TRAINED = {"dataset": DEMO}
BUNDLED = {"dataset": DEMO, "model": "bundled"}
OTHER = {
    "dataset": "two-squares-mnist-5k",
    "recipe": "thresholds-mnist-5k",
    "arch": "resnet20",
    "epochs": 3,
    "batch_size": 16,
    "lr": 0.5,
    "augment": "flip,rotate15",
    "strategy": "random",
    "k": 1.5,
    "statistics": "all",
    "rounds": 2,
    "accumulate": False,
    "top_fraction": 0.1,
    "method": "gradcam",
    "layer": "features",
    "root": "pictures",
    "title": "Birds of mine",
    "frame": "resize 32",
    "normalise": "half",
    "validation": "test",
    "exceptions": "authors",
    "model": "model.pth",
    "weights": "weights.pth",
    "finetune_lr": 0.002,
    "seed": 7,
    "device": "cpu",
}
"""For each option a value that is not the usual one."""

NEEDS = {"accumulate": {"rounds": 2}, "top_fraction": {"strategy": "topk"}}
"""What an option is nothing without."""


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_changes_the_settings_and_nothing_but_its_own(name):
    before = settings({**TRAINED, **NEEDS.get(name, {})})

    after = settings({**TRAINED, **NEEDS.get(name, {}), name: OTHER[name]})

    assert OPTIONS[name].of(after) == OTHER[name] != OPTIONS[name].of(before)
    follow = {"dataset": {"recipe", "rounds", "epochs"}, "model": {"arch"}}.get(name, set())
    others = set(OPTIONS) - {name} - follow
    assert {o: OPTIONS[o].of(after) for o in others} == {o: OPTIONS[o].of(before) for o in others}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_words_that_repeat_a_run_make_the_same_settings(name):
    config = settings({**TRAINED, **NEEDS.get(name, {}), name: OTHER[name]})
    parser = argparse.ArgumentParser()
    add_options(parser)

    again = settings(vars(parser.parse_args(arguments(config)[1:])))

    assert again == config


@pytest.mark.parametrize("name", ["weights", "epochs", "lr", "arch"])
def test_with_the_bundled_model_what_only_a_training_heeds_is_refused(name):
    with pytest.raises(ConfigError, match=f"--{name} {OTHER[name]} would do nothing") as refused:
        settings({**BUNDLED, name: OTHER[name]})

    assert "Leave it out" in refused.value.remedy


@pytest.mark.parametrize("name", ["weights", "epochs", "lr"])
def test_with_a_model_of_ones_own_what_only_a_training_heeds_is_refused(name):
    with pytest.raises(ConfigError, match="the model is given, none is trained"):
        settings({**TRAINED, "model": "model.pth", name: OTHER[name]})


def test_a_model_of_ones_own_may_be_given_its_architecture_and_batch_size():
    config = settings({**TRAINED, "model": "model.pth", "arch": "resnet20", "batch_size": 16})

    assert (config.arch, config.training.batch_size) == ("resnet20", 16)


@pytest.mark.parametrize(
    ("strategy", "refused"),
    [
        ("heat", {"top_fraction"}),
        ("random", {"k", "statistics", "method", "layer", "top_fraction"}),
        ("none", {"k", "statistics", "method", "layer", "top_fraction"}),
        ("soft", {"k", "statistics", "top_fraction"}),
        ("global", {"k", "top_fraction"}),
        ("topk", {"k", "statistics"}),
    ],
)
def test_what_a_strategy_does_not_look_at_is_refused(strategy, refused):
    for name in ("k", "statistics", "method", "layer", "top_fraction"):
        given = {**BUNDLED, "strategy": strategy, name: OTHER[name]}
        if name in refused:
            with pytest.raises(ConfigError, match="would do nothing"):
                settings(given)
        else:
            assert OPTIONS[name].of(settings(given)) == OTHER[name]


def test_exceptions_are_refused_where_the_pictures_have_none_to_choose():
    with pytest.raises(ConfigError, match="--exceptions authors would do nothing"):
        settings({"dataset": "cows-and-camels", "exceptions": "authors"})

    # A recipe of other pictures does not make them have some.
    given = {"dataset": "cows-and-camels", "recipe": "mnist-square"}
    assert settings(given).exceptions == "random"


def test_whether_later_rounds_hide_in_addition_needs_a_later_round():
    with pytest.raises(ConfigError, match="there is only one round"):
        settings({**BUNDLED, "accumulate": False})


def test_what_is_usual_anyway_may_be_said():
    said = {**BUNDLED, "arch": "small-cnn", "epochs": 12, "strategy": "random", "k": 2.0}

    assert settings(said) == settings({**BUNDLED, "strategy": "random"})


def test_a_page_leaves_out_what_would_do_nothing():
    config = settings({**OTHER, **BUNDLED}, without_effect="left out")

    assert config.training.epochs == 12
    assert config.arch == "small-cnn"
    assert config.weights is None
    assert config.masking == MaskingConfig(strategy="random", rounds=2, accumulate=False)


def test_waterbirds_start_from_the_pretrained_weights_of_their_recipe():
    usual = settings({"dataset": "waterbirds", "root": "birds"})

    assert usual.weights == "ResNet50_Weights.IMAGENET1K_V1"
    assert settings({"dataset": "waterbirds", "weights": "none"}).weights is None
    assert settings({"dataset": "waterbirds", "arch": "resnet18"}).weights is None
    assert settings({"dataset": "waterbirds", "model": "birds.pth"}).weights is None
    assert settings(given_by(usual)) == usual


def test_pictures_and_model_are_told_apart_from_what_is_done_with_them():
    done = settings({**TRAINED, "model": "m.pth", "seed": 3, "k": 1.0, "finetune_lr": 0.5})

    assert subject(done) == settings({**TRAINED, "model": "m.pth", "seed": 3})


def test_augmentation_is_the_recipes_unless_it_is_said():
    photos = {"dataset": "cifar10"}
    usual = settings(photos).training.augment

    assert usual == "flip,rotate15,shift10"
    assert settings({**photos, "augment": "recipe"}).training.augment == usual
    assert settings({**photos, "augment": "none"}).training.augment == "none"
    assert settings({**photos, "augment": "flip, crop4"}).training.augment == "flip,crop4"
    assert settings({**TRAINED, "augment": "recipe"}).training.augment == "none"
    with pytest.raises(ConfigError, match="There is no augmentation 'turn'"):
        settings({**photos, "augment": "turn"})


def test_a_given_model_is_finetuned_with_augmentation():
    assert settings({**BUNDLED, "augment": "flip"}).training.augment == "flip"


def test_an_option_that_does_not_exist_is_a_mistake_of_the_programmer():
    with pytest.raises(KeyError):
        settings({**TRAINED, "epoch": 3})


def test_the_devices_of_the_settings_are_those_that_compute_knows():
    assert get_args(Device) == DEVICES


def test_settings_of_an_older_version_take_the_usual_value_of_what_they_lack():
    stored = settings(BUNDLED).to_json()
    for name in ("title", "validation", "exceptions", "weights", "frame", "normalise", "device"):
        del stored[name]
    for name in ("method", "top_fraction", "accumulate"):
        del stored["masking"][name]
    del stored["training"]["augment"]

    assert RunConfig.from_json(json.loads(json.dumps(stored))) == settings(BUNDLED)
