import copy
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from masktune.config import RivalConfig, TrainConfig
from masktune.data.card import UNKNOWN
from masktune.errors import ConfigError
from masktune.seeds import stream
from masktune.training.by_recipe import learn_by
from masktune.training.fit import ERM, Resume
from masktune.training.rivals.jtt import Repeated, first_training, tune


def test_each_error_is_shown_so_many_times_and_every_other_picture_once(unfair):
    errors = torch.tensor([False, True, False, True])

    repeated = Repeated(errors, weight=3)

    first, second = (repeated.draw(unfair.train, stream(n, "order")) for n in (0, 1))
    assert Counter(first) == {0: 1, 1: 3, 2: 1, 3: 3}
    assert sorted(first) == sorted(second)
    assert first != second


def test_without_errors_it_is_plain_training(unfair):
    repeated = Repeated(torch.zeros(200, dtype=torch.bool), weight=50)

    assert repeated.draw(unfair.train, stream(0, "o")) == ERM().draw(unfair.train, stream(0, "o"))


def test_an_error_is_shown_at_least_once():
    with pytest.raises(ConfigError, match="an error is shown is 0"):
        RivalConfig(error_weight=0)


@pytest.mark.parametrize(
    ("epochs", "given", "expected"),
    [(20, None, 4), (12, None, 3), (4, None, 1), (20, 7, 7), (2, 10, 10)],
)
def test_errors_are_those_of_a_fifth_of_the_epochs_unless_said(
    unfair_context, epochs, given, expected
):
    training = TrainConfig(epochs=epochs, batch_size=20, lr=0.05, warmup=epochs / 2)
    context = unfair_context("jtt", training=training, settings=RivalConfig(error_epochs=given))

    first = first_training(context.config)

    assert first == replace(training, epochs=expected, warmup=expected / 2)


def test_it_trains_twice_and_the_second_time_on_the_errors_of_the_first(unfair_context, linear):
    told, settings = [], RivalConfig(error_epochs=2, error_weight=10)
    context = unfair_context("jtt", settings=settings, watcher=told.append)
    train = context.bundle.train

    tuned = tune(context, linear)

    # The first training fails at the small groups, 5 pictures each, and at nothing else.
    assert tuned.facts == {
        "errors": 10,
        "share of errors": {
            "dark, plain": 0.0,
            "dark, spot": 1.0,
            "bright, plain": 1.0,
            "bright, spot": 0.0,
        },
    }
    stages = Counter(p.stage for p in told if p.loss is not None)
    assert {p.stage for p in told} == {*stages}  # asking has no stage of its own
    # 200 pictures in batches of 20; then 190 and 10 times 10 in 15 batches, the last of 10.
    assert (stages["errors"], stages["finetune"]) == (2 * 10, 20 * 15)
    short = learn_by(
        context, linear.model, ERM(), part="errors", training=first_training(context.config)
    )
    errors = torch.from_numpy(~context.ask(short, train).correct())
    expected = learn_by(context, linear.model, Repeated(errors, weight=10))
    assert torch.equal(tuned.after.model[1].weight, expected[1].weight)


def test_it_beats_the_worst_group_of_erm(unfair_context, linear):
    context = unfair_context("jtt", settings=RivalConfig(error_epochs=2, error_weight=10))
    test = context.bundle.tests["test"]
    small = (test.labels != test.attributes).numpy()

    models = learn_by(context, linear.model, ERM()), tune(context, linear).after.model

    erm, after = (np.mean(context.ask(model, test).correct()[small]) for model in models)
    assert erm < 0.3
    assert after > 0.8


def test_where_no_attribute_is_known_errors_are_told_by_class(unfair_context, linear):
    context = unfair_context("jtt", settings=RivalConfig(error_epochs=2))
    train = context.bundle.train
    nobody = replace(train, attributes=torch.full_like(train.attributes, UNKNOWN))
    context = replace(context, bundle=replace(context.bundle, train=nobody))

    facts = tune(context, linear).facts

    assert facts["share of errors"] == {"dark": 0.05, "bright": 0.05}


@pytest.mark.parametrize("stopped", ["errors", "finetune"])
def test_each_training_goes_on_where_it_was_interrupted(unfair_context, linear, stopped):
    states = {}

    def keeping(part):
        saved = states.setdefault(part, [])
        return Resume(state=None, save=lambda s: saved.append(copy.deepcopy(s)))

    training = TrainConfig(epochs=3, batch_size=20, lr=0.05)
    settings = RivalConfig(error_epochs=2, error_weight=10)
    context = unfair_context("jtt", training=training, settings=settings)
    whole = tune(replace(context, resume=keeping), linear)
    assert [len(states[part]) for part in ("errors", "finetune")] == [2, 3]

    def going_on(part):
        finished = states[part][-1] if part != stopped and part == "errors" else None
        return Resume(state=states[part][0] if part == stopped else finished, save=lambda _: None)

    told = []
    resumed = tune(replace(context, resume=going_on, watcher=told.append), linear)

    assert torch.equal(whole.after.model[1].weight, resumed.after.model[1].weight)
    assert whole.facts == resumed.facts
    # 10 steps an epoch at first; 15 with the errors.
    done = Counter(p.stage for p in told if p.loss is not None)
    assert (done["errors"], done["finetune"]) == ((10, 45) if stopped == "errors" else (0, 30))
