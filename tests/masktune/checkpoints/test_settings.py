"""Whatever is set is used, refused or said: one test a row of the options' table."""

import argparse
import json
from dataclasses import replace
from typing import get_args

import pytest
import torch

from masktune.checkpoints.settings import (
    OPTIONS,
    add_options,
    arguments,
    given_by,
    run_config,
    settings,
)
from masktune.cli.main import parsed
from masktune.compute import DEVICES
from masktune.config import ERM_ONLY, LAST_LAYER, Device, MaskingConfig, RunConfig
from masktune.errors import ConfigError, ModelError
from masktune.models.build import build
from masktune.recipes import RECIPES

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
    "schedule": "cosine",
    "decay_at": "4,8",
    "decay_factor": 0.1,
    "warmup": 0.5,
    "best": "average",
    "patience": 3,
    "optimizer": "adamw",
    "momentum": 0.5,
    "weight_decay": 0.01,
    "label_smoothing": 0.1,
    "freeze": "features.4",
    "augment": "flip,rotate15",
    "strategy": "random",
    "k": 1.5,
    "statistics": "all",
    "rounds": 2,
    "accumulate": False,
    "top_fraction": 0.1,
    "method": "gradcam",
    "layer": "features",
    "fill": "mean",
    "regions": "boxes.csv",
    "root": "pictures",
    "title": "Birds of mine",
    "frame": "resize 32",
    "normalise": "half",
    "attributes": "attributes.csv",
    "class_names": "land bird,water bird",
    "class_order": "1,0",
    "validation": "test",
    "exceptions": "authors",
    "stamp": "one-sided",
    "correlation": 0.9,
    "model": "model.pth",
    "weights": "weights.pth",
    "head": "kept",
    "finetune_lr": 0.002,
    "batch_norm": "frozen",
    "erm_batch_norm": "frozen",
    "rival": "sd",
    "start": "erm",
    "group_step": 0.1,
    "group_adjustment": 2.0,
    "worst_share": 0.02,
    "bias_power": 0.5,
    "penalty": 3.0,
    "error_epochs": 2,
    "error_weight": 20,
    "heads": 3,
    "unlabelled": "test",
    "focus": 1.5,
    "easy_share": 0.4,
    "target_coverage": 0.8,
    "payoff": 1.5,
    "trade_off": 0.5,
    "seed": 7,
    "device": "cpu",
}
"""For each option a value that is not the usual one."""

NEEDS = {
    "accumulate": {"rounds": 2},
    "top_fraction": {"strategy": "topk"},
    "regions": {"strategy": "judged"},
    "decay_factor": {"decay_at": "6"},
    "patience": {"best": "average"},
    "stamp": {"dataset": "stamped-pets"},
    "correlation": {"dataset": "stamped-pets"},
    "start": {"rival": "jtt"},
    "class_order": {"model": "model.pth"},
    "head": {"weights": "weights.pth"},
    **{
        option.name: {"rival": min(option.rivals)}
        for option in OPTIONS.values()
        if option.within == "rival_settings"
    },
}
"""What an option is nothing without."""


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_changes_the_settings_and_nothing_but_its_own(name):
    before = settings({**TRAINED, **NEEDS.get(name, {})})

    after = settings({**TRAINED, **NEEDS.get(name, {}), name: OTHER[name]})

    assert OPTIONS[name].of(after) == OTHER[name] != OPTIONS[name].of(before)
    follow = {
        "dataset": {"recipe", "rounds", "epochs"},
        "model": {"arch"},
        "rival": {"strategy"},
    }.get(name, set())
    others = set(OPTIONS) - {name} - follow
    assert {o: OPTIONS[o].of(after) for o in others} == {o: OPTIONS[o].of(before) for o in others}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_words_that_repeat_a_run_make_the_same_settings(name):
    config = settings({**TRAINED, **NEEDS.get(name, {}), name: OTHER[name]})

    assert repeated(config) == config


def repeated(config):
    parser = argparse.ArgumentParser()
    add_options(parser)
    return settings(vars(parser.parse_args(arguments(config)[1:])))


def test_the_words_that_repeat_a_training_say_nothing_of_a_finetune():
    config = replace(settings({**TRAINED, "epochs": 3}), only_before=True)

    words = arguments(config)

    assert words[0] == "train"
    chosen = parsed([*words, "--out", "somewhere"])
    assert replace(run_config(chosen), only_before=True) == config
    assert not {"--k", "--strategy", "--rival", "--finetune-lr", "--model"} & {*words}
    assert words[words.index("--device") + 1] == "auto"


@pytest.fixture
def trained(tmp_path):
    """Give the folder of a training with other settings than the recipe's."""
    given = {**TRAINED, "seed": 3, "exceptions": "authors", "optimizer": "adamw", "epochs": 2}
    given |= {"normalise": "half", "title": "Mine"}
    config = replace(settings(given), only_before=True)
    (tmp_path / "config.json").write_text(json.dumps(config.to_json()))
    (tmp_path / "before.safetensors").write_bytes(b"")
    return tmp_path


def test_a_folder_given_as_the_model_is_looked_at_as_it_was_trained(trained):
    config = settings({**TRAINED, "model": str(trained)})

    assert config.model == str(trained / "before.safetensors")
    assert (config.seed, config.exceptions, config.normalise) == (3, "authors", "half")
    assert config.training.optimizer == "adamw"  # which the finetune goes on with
    assert config.training.epochs == 12  # the recipe's: nothing is trained
    assert config.title == "Mine"
    assert config.only_before is False


def test_what_is_given_counts_more_than_how_a_folder_was_trained(trained):
    config = settings({**TRAINED, "model": str(trained), "seed": 5, "optimizer": "sgd"})

    assert (config.seed, config.training.optimizer, config.normalise) == (5, "sgd", "half")


def test_a_folder_for_other_pictures_gives_its_model_only(trained):
    config = settings({"dataset": "two-squares-mnist-5k", "model": str(trained)})

    assert config.model == str(trained / "before.safetensors")
    assert (config.seed, config.normalise) == (0, None)


def test_a_folder_that_does_not_say_how_it_was_trained_gives_its_model_only(trained):
    (trained / "config.json").write_text("[]")

    assert settings({**TRAINED, "model": str(trained)}).seed == 0


def test_a_path_that_is_too_long_is_no_folder():
    long = "x" * 300

    assert settings({**TRAINED, "model": long}).model == long


@pytest.mark.parametrize("classes", [2, 7, 1000])
def test_weights_in_a_file_tell_their_architecture(tmp_path, classes):
    torch.save(build("resnet20", classes).state_dict(), tmp_path / "w.pth")

    assert settings({**TRAINED, "weights": str(tmp_path / "w.pth")}).arch == "resnet20"


def test_weights_without_a_last_layer_tell_their_architecture(tmp_path):
    state = build("resnet18", 5).state_dict()
    body = {name: value for name, value in state.items() if not name.startswith("fc.")}
    torch.save(body, tmp_path / "body.pth")

    assert settings({**TRAINED, "weights": str(tmp_path / "body.pth")}).arch == "resnet18"


def test_the_recipes_network_is_taken_where_the_weights_fit_two(tmp_path):
    # small-cnn and small-cnn-stride2 have the same tensors.
    torch.save(build("small-cnn", 7).state_dict(), tmp_path / "w.pth")

    assert settings({**TRAINED, "weights": str(tmp_path / "w.pth")}).arch == "small-cnn"


def test_weights_that_fit_nothing_are_refused_as_a_model_would_be(tmp_path):
    torch.save({"alpha.beta": torch.zeros(2, 2)}, tmp_path / "w.pth")

    with pytest.raises(ModelError, match="no architecture that we know resembles them"):
        settings({**TRAINED, "weights": str(tmp_path / "w.pth")})


@pytest.mark.parametrize(
    ("weights", "arch"),
    [
        ("ResNet50_Weights.IMAGENET1K_V2", "resnet50"),
        ("ViT_B_16_Weights.IMAGENET1K_V1", "vit_b_16"),
        ("timm/tf_efficientnet_lite0.in1k", "timm/tf_efficientnet_lite0"),
        ("NoSuch_Weights.V1", "small-cnn"),
    ],
)
def test_weights_by_name_belong_to_a_network(weights, arch):
    assert settings({**TRAINED, "weights": weights}).arch == arch


def test_what_becomes_of_the_last_layer_says_nothing_without_weights():
    with pytest.raises(ConfigError, match="--head kept would do nothing: training starts from no"):
        settings({**TRAINED, "head": "kept"})


@pytest.mark.parametrize("name", ["weights", "epochs", "lr", "arch"])
def test_with_the_bundled_model_what_only_a_training_heeds_is_refused(name):
    with pytest.raises(ConfigError, match=f"--{name} {OTHER[name]} would do nothing") as refused:
        settings({**BUNDLED, name: OTHER[name]})

    assert "Leave it out" in refused.value.remedy


@pytest.mark.parametrize("name", ERM_ONLY)
def test_with_a_model_of_ones_own_what_only_a_training_heeds_is_refused(name):
    with pytest.raises(ConfigError, match="the model is given, none is trained"):
        settings({**TRAINED, "model": "model.pth", **NEEDS.get(name, {}), name: OTHER[name]})


@pytest.mark.parametrize(
    "name", ["optimizer", "momentum", "weight_decay", "label_smoothing", "freeze", "batch_norm"]
)
def test_what_the_finetune_heeds_too_may_be_given_with_a_model(name):
    config = settings({**BUNDLED, name: OTHER[name]})

    assert OPTIONS[name].of(config) == OTHER[name]


@pytest.mark.parametrize(
    ("rival", "name"), [("sd", "weight_decay"), ("osp", "label_smoothing"), ("dfr", "batch_size")]
)
def test_what_a_rival_leaves_out_is_refused_where_no_erm_is_trained_by_it(rival, name):
    given = {"rival": rival, name: OTHER[name]}

    assert OPTIONS[name].of(settings({**TRAINED, **given})) == OTHER[name]
    with pytest.raises(ConfigError, match=f"{OPTIONS[name].flag} .* would do nothing"):
        settings({**BUNDLED, **given})


@pytest.mark.parametrize(
    ("given", "name", "why"),
    [
        ({"optimizer": "adam"}, "momentum", "adam has its own"),
        ({"schedule": "cosine"}, "decay_at", "the schedule is 'cosine'"),
        ({"schedule": "constant"}, "decay_factor", "the schedule is 'constant'"),
        ({}, "decay_factor", "no epoch at which the rate falls"),
        ({"epochs": 4}, "decay_at", "the training is over after 4 epochs"),
        ({}, "patience", "asks of no epoch"),
        ({"freeze": "body"}, "batch_norm", "the body is frozen"),
    ],
)
def test_what_the_other_settings_of_training_leave_without_effect_is_refused(given, name, why):
    with pytest.raises(ConfigError, match=f"{OPTIONS[name].flag} .* would do nothing: .*{why}"):
        settings({**TRAINED, **given, name: OTHER[name]})

    left = settings({**TRAINED, **given, name: OTHER[name]}, without_effect="left out")
    assert left == settings({**TRAINED, **given}, without_effect="left out")


def test_the_epochs_at_which_the_rate_falls_are_words_with_commas_between():
    assert settings({**TRAINED, "decay_at": "3, 6"}).training.decay_at == (3, 6)
    assert settings({"dataset": "biased-mnist", "decay_at": "none"}).training.decay_at == ()
    with pytest.raises(ConfigError, match="after the epochs '3;6'"):
        settings({**TRAINED, "decay_at": "3;6"})


def test_a_training_cut_short_may_end_before_the_rate_of_its_recipe_falls():
    cut = settings({"dataset": "biased-mnist", "epochs": 5})

    assert cut.training.decay_at == (25, 50, 75)
    assert settings(given_by(cut)) == cut


def test_a_fall_after_the_last_epoch_is_none_and_does_not_bring_the_recipes_back():
    own = {"dataset": "folder", "root": "a"}  # whose recipe's rate falls after 10 and 15 epochs

    never = settings({**own, "epochs": 12, "decay_at": "20"}, without_effect="left out")
    cut = settings({**own, "epochs": 4, "decay_at": "5"}, without_effect="left out")
    given = {**own, "model": "a.pt", "epochs": 12, "decay_at": "20"}

    assert never.training.decay_at == ()
    assert cut.training.decay_at == (10, 15)
    assert settings(given, without_effect="left out").training.last_lr == pytest.approx(1e-4)
    assert repeated(never) == never  # pages start their runs by these words
    assert repeated(cut) == cut


def test_what_a_recipe_freezes_is_a_layer_of_its_own_network(monkeypatch):
    usual = RECIPES[DEMO]
    layer = replace(usual, training=replace(usual.training, freeze="features.3"))
    monkeypatch.setitem(RECIPES, DEMO, layer)

    assert settings(TRAINED).training.freeze == "features.3"
    assert settings({**TRAINED, "arch": "resnet20"}).training.freeze == "none"
    assert settings({**TRAINED, "arch": "resnet20", "freeze": "body"}).training.freeze == "body"


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


def test_stamps_are_refused_where_none_are_planted():
    with pytest.raises(ConfigError, match="--stamp one-sided would do nothing"):
        settings({**TRAINED, "stamp": "one-sided"})
    with pytest.raises(ConfigError, match="would do nothing: no stamp is planted"):
        settings({"dataset": "stamped-pets", "stamp": "none", "correlation": 0.9})
    with pytest.raises(ConfigError, match="The correlation is"):
        settings({"dataset": "stamped-pets", "correlation": 0.3})


def test_a_recipes_backbone_comes_with_its_weights_and_their_normalisation():
    pets = {"dataset": "stamped-pets"}
    usual, other, own = settings(pets), settings({**pets, "arch": "resnet18"}), "imagenet"

    assert (usual.arch, usual.weights, usual.normalise) == (
        "timm/tf_efficientnet_lite0",
        "timm/tf_efficientnet_lite0.in1k",
        "0.498 / 0.502",
    )
    assert settings({**pets, "weights": "lite0.safetensors"}).normalise == "0.498 / 0.502"
    assert (other.weights, other.normalise) == (None, None)  # resnet18 as the dataset has it
    assert (usual.training.freeze, usual.training.erm_batch_norm) == ("blocks.4", "frozen")
    assert (other.training.freeze, other.training.erm_batch_norm) == ("none", "learnt")
    assert settings({**pets, "weights": "none"}).training.erm_batch_norm == "learnt"
    assert (usual.batch_norm, other.batch_norm) == ("frozen", "learnt")
    assert settings({**pets, "model": "before.safetensors"}).batch_norm == "frozen"
    assert settings({**pets, "normalise": own}).normalise == own
    assert settings(given_by(usual)) == usual


@pytest.mark.parametrize(
    ("more", "frozen"),
    [
        ({"rival": "groupdro"}, ("none", "learnt")),
        ({"rival": "groupdro", "weights": "lite0.safetensors"}, ("blocks.4", "frozen")),
        ({"rival": "groupdro", "start": "erm"}, ("blocks.4", "frozen")),
        ({"rival": "dfr"}, ("blocks.4", "frozen")),
        ({}, ("blocks.4", "frozen")),
    ],
)
def test_a_rival_that_begins_with_fresh_weights_freezes_none_of_them(more, frozen):
    found = settings({"dataset": "stamped-pets", "model": "before.safetensors", **more})

    assert (found.training.freeze, found.training.erm_batch_norm) == frozen
    assert settings(given_by(found)) == found  # so that a page can go on with it


def test_whether_later_rounds_hide_in_addition_needs_a_later_round():
    with pytest.raises(ConfigError, match="there is only one round"):
        settings({**BUNDLED, "accumulate": False})


def test_what_is_usual_anyway_may_be_said():
    said = {**BUNDLED, "arch": "small-cnn", "epochs": 12, "strategy": "random", "k": 2.0}

    assert settings(said) == settings({**BUNDLED, "strategy": "random"})


def test_a_page_leaves_out_what_would_do_nothing():
    given = {**OTHER, **BUNDLED, "rival": "masktune"}
    config = settings(given, without_effect="left out")

    assert config.training.epochs == 12
    assert config.arch == "small-cnn"
    assert config.weights is None
    random = MaskingConfig(strategy="random", rounds=2, accumulate=False, fill="mean")
    assert config.masking == random


def test_waterbirds_start_from_the_pretrained_weights_of_their_recipe():
    usual = settings({"dataset": "waterbirds", "root": "birds"})

    assert usual.weights == "ResNet50_Weights.IMAGENET1K_V1"
    assert settings({"dataset": "waterbirds", "weights": "none"}).weights is None
    assert settings({"dataset": "waterbirds", "arch": "resnet18"}).weights is None
    assert settings({"dataset": "waterbirds", "model": "birds.pth"}).weights is None
    assert settings(given_by(usual)) == usual


def test_pictures_and_model_are_told_apart_from_what_is_done_with_them():
    done = settings({**TRAINED, "model": "m.pth", "seed": 3, "k": 1.0, "finetune_lr": 0.5})

    assert settings(given_by(done, "pictures", "model")) == settings(
        {**TRAINED, "model": "m.pth", "seed": 3}
    )


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
    for name in (
        "title",
        "validation",
        "exceptions",
        "weights",
        "frame",
        "normalise",
        "attributes",
        "class_names",
        "class_order",
        "device",
        "stamp",
        "correlation",
    ):
        del stored[name]
    for name in ("method", "top_fraction", "accumulate"):
        del stored["masking"][name]
    del stored["batch_norm"]
    for name in ("augment", "schedule", "warmup", "best", "patience", "label_smoothing", "freeze"):
        del stored["training"][name]

    assert RunConfig.from_json(json.loads(json.dumps(stored))) == settings(BUNDLED)


@pytest.mark.parametrize(
    ("given", "name", "why"),
    [
        ({"rival": "jtt"}, "k", "the method 'jtt' does not look at it"),
        ({"rival": "jtt"}, "strategy", "the method 'jtt' does not look at it"),
        ({"rival": "jtt"}, "group_step", "the method 'jtt' does not look at it"),
        ({"rival": "jtt"}, "finetune_lr", "the method 'jtt' does not look at it"),
        ({}, "group_step", "the method 'masktune' does not look at it"),
        ({}, "start", "the method 'masktune' does not look at it"),
        ({"rival": "dfr"}, "start", "the method 'dfr' does not look at it"),
        (
            {"rival": "dfr", **BUNDLED},
            "epochs",
            "the model is given, and only its last layer learns",
        ),
        (
            {"rival": "dfr", **BUNDLED},
            "batch_size",
            "the model is given, and only its last layer learns",
        ),
        (
            {"rival": "jtt", **BUNDLED, "start": "erm"},
            "weights",
            "training begins with the model that is given",
        ),
    ],
)
def test_what_a_method_does_not_look_at_is_refused(given, name, why):
    with pytest.raises(ConfigError, match=f"would do nothing: {why}"):
        settings({**TRAINED, **given, name: OTHER[name]})


@pytest.mark.parametrize("name", ["epochs", "lr", "batch_size", "best", "augment"])
def test_a_rival_that_trains_heeds_the_recipe_although_the_model_is_given(name):
    config = settings({**BUNDLED, "rival": "groupdro", name: OTHER[name]})

    assert OPTIONS[name].of(config) == OTHER[name]
    assert config.masking.strategy == "none"


def test_dac_takes_its_heat_from_another_explainer_and_layer():
    config = settings({**BUNDLED, "rival": "dac", "method": "gradcam", "layer": "features"})

    assert (config.masking.method, config.masking.layer) == ("gradcam", "features")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("worst_share", 0.0),
        ("bias_power", 1.5),
        ("heads", 1),
        ("payoff", 1.0),
        ("error_epochs", 0),
        ("penalty", -1.0),
        ("focus", float("nan")),
        ("unlabelled", "train"),
    ],
)
def test_a_rivals_setting_that_makes_no_sense_is_refused(name, value):
    with pytest.raises(ConfigError) as refused:
        settings({**TRAINED, **NEEDS[name], name: value})

    assert refused.value.remedy.startswith(("Give ", "Choose "))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("class_order", "1,1", "The order of the classes is '1,1'"),
        ("class_order", "1,2", "The order of the classes is '1,2'"),
        ("class_order", "dog,cat", "The order of the classes is 'dog,cat'"),
        ("class_names", "cat,,dog", "The class names are 'cat,,dog'"),
        ("class_names", "cat, cat", "The class names are 'cat, cat'"),
    ],
)
def test_names_and_orders_that_tell_no_classes_apart_are_refused(name, text, problem):
    with pytest.raises(ConfigError, match=problem):
        settings({**TRAINED, "model": "model.pth", name: text})


def test_an_order_of_classes_is_nothing_to_a_model_that_learns_them_here():
    with pytest.raises(ConfigError, match="--class-order 1,0 would do nothing"):
        settings({**TRAINED, "class_order": "1,0"})
    with pytest.raises(ConfigError, match="--class-order 1,0 would do nothing"):
        settings({**BUNDLED, "class_order": "1,0"})


@pytest.mark.parametrize("rival", sorted(LAST_LAYER))
def test_a_method_that_retrains_the_last_layer_is_refused_where_its_classes_are_reordered(rival):
    given = {**TRAINED, "model": "model.pth", "rival": rival}
    settings(given)

    with pytest.raises(ConfigError, match="taken in another order"):
        settings({**given, "class_order": "1,0"})


def test_blanks_after_commas_make_no_other_settings():
    spaced = settings({**TRAINED, "class_names": "land bird, water bird"})

    assert spaced == settings({**TRAINED, "class_names": "land bird,water bird"})


def test_a_threshold_beyond_3_is_refused_where_a_run_has_one():
    with pytest.raises(ConfigError, match="k is 99"):
        settings({"dataset": "biased-mnist-5k", "k": 99.0})

    idle = {"dataset": "biased-mnist-5k", "k": 99.0, "strategy": "none"}
    assert settings(idle, without_effect="left out").masking.k == 2.0
    assert settings({"dataset": "biased-mnist-5k", "k": 3.0}).masking.k == 3.0
