from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import (
    BY_HEAT,
    MASKTUNE,
    MaskingConfig,
    RivalConfig,
    RivalName,
    RunConfig,
    TrainConfig,
)
from masktune.data.card import UNKNOWN
from masktune.errors import ConfigError, ModelError
from masktune.models.build import build
from masktune.training.by_recipe import beginning, best_of, layer_of
from masktune.training.context import Context
from masktune.training.masktune import tune
from masktune.training.methods import RIVALS

CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=1, batch_size=32, lr=0.01),
    masking=MaskingConfig(rounds=2),
    device="cpu",
)


@pytest.fixture
def before():
    return Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)


def context_of(bundle, **more):
    return Context(config=CONFIG, bundle=bundle, compute=accelerator("cpu"), **more)


def test_the_usual_method_is_the_papers():
    assert [*RIVALS] == list(get_args(RivalName))
    assert next(iter(RIVALS)) == MASKTUNE == "masktune"
    assert RIVALS[MASKTUNE].tune is tune
    assert all(name == rival.name for name, rival in RIVALS.items())


def test_a_rival_trains_by_the_recipe_and_saves_what_it_made(toy, before):
    told, saved = [], []
    context = context_of(toy, watcher=told.append, save=saved.append)
    RIVALS["sd"].check(toy, CONFIG)

    tuned = RIVALS["sd"].tune(context, before)

    assert {(p.stage, p.total) for p in told} == {("finetune", 3)}
    assert saved == [tuned]
    answers = context.ask_both(before, tuned.after)
    assert len(answers.tests["turned"].after.probabilities) == 40


def test_a_rival_begins_as_the_erm_did_or_with_its_model(toy, before):
    context = context_of(toy)
    other = replace(before, model=build("small-cnn", 2, seed=7))
    as_before = replace(context, config=replace(CONFIG, start="erm"))

    fresh = build("small-cnn", 2, size=toy.card.size, seed=CONFIG.seed)
    for one, wanted in ((context, fresh), (as_before, other.model)):
        found = beginning(one, other).model.state_dict()
        assert all(torch.equal(found[name], each) for name, each in wanted.state_dict().items())


def test_a_dataset_without_groups_is_refused_by_who_needs_them(toy):
    nobody = torch.full_like(toy.train.attributes, UNKNOWN)
    without = replace(toy, train=replace(toy.train, attributes=nobody))

    RIVALS[MASKTUNE].check(without, CONFIG)
    with pytest.raises(ConfigError, match="Group DRO needs training groups, and 'toy'") as error:
        RIVALS["groupdro"].check(without, CONFIG)

    assert "MaskTune" in error.value.remedy
    assert "--attributes" in error.value.remedy  # what pictures of one's own can be given


@pytest.mark.parametrize(
    ("rival", "refused"),
    [
        ("deep-gamblers", {"rival_settings": RivalConfig(payoff=2.5)}),
        ("selectivenet", {"training": replace(CONFIG.training, batch_size=1)}),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_anything_is_trained(toy, rival, refused):
    RIVALS[rival].check(toy, CONFIG)

    with pytest.raises(ConfigError, match=r"2 classes|one picture"):
        RIVALS[rival].check(toy, replace(CONFIG, **refused))


@pytest.mark.parametrize("rival", ["dfr", "sd", "dac", MASKTUNE])
def test_only_methods_that_read_heat_refuse_a_network_without_maps(toy, rival):
    height, width = toy.card.size
    flat = nn.Sequential(nn.Flatten(), nn.Linear(3 * height * width, 2))
    context = replace(context_of(toy), config=replace(CONFIG, rival=rival, masking=MaskingConfig()))

    if rival in BY_HEAT:
        with pytest.raises(ModelError):
            layer_of(context, flat)
    else:
        assert layer_of(context, flat) is None


@pytest.mark.parametrize(("best", "score"), [("average", 0.5), ("worst-group", 0.0)])
def test_the_best_epoch_is_told_by_all_validation_pictures_or_by_their_worst_group(
    toy, before, best, score
):
    # Fresh weights answer the same about every picture: right about one class, half of them.
    training = replace(CONFIG.training, best=best, patience=4)
    context = replace(context_of(toy), config=replace(CONFIG, training=training))

    found = best_of(context)

    assert (found.score(before.model), found.patience) == (score, 4)


def test_rounds_go_on_from_what_was_saved(toy, before):
    states = []
    whole = tune(context_of(toy, save=states.append), before)

    resumed = tune(context_of(toy, saved=states[0]), before)

    assert [len(state.records) for state in states] == [1, 2]
    assert len(states[0].store.rounds) == 1
    assert resumed.records == whole.records
    for one, other in zip(
        resumed.after.model.parameters(), whole.after.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)
