import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import RivalConfig, RunConfig, TrainConfig
from masktune.data.card import UNKNOWN
from masktune.data.types import Batch
from masktune.models.build import build
from masktune.seeds import stream
from masktune.training.context import Context
from masktune.training.fit import Best
from masktune.training.rivals.divdis import (
    DivDis,
    mutual_information,
    together,
    tune,
    without_labels,
)

CPU = accelerator("cpu")
CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=1, batch_size=32, lr=0.01),
    rival="divdis",
    device="cpu",
)


@pytest.fixture
def before():
    return Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)


def linear(*rows):
    layer = nn.Linear(2, 2)
    layer.load_state_dict({"weight": torch.tensor(rows), "bias": torch.zeros(2)})
    return layer


SAME, OTHER, UNSURE = ((50.0, 0.0), (0.0, 50.0)), ((0.0, 50.0), (50.0, 0.0)), ((0.0,) * 2,) * 2


def test_independent_answers_share_nothing_and_equal_ones_all():
    shares = torch.tensor([0.3, 0.7])

    assert mutual_information(shares[:, None] * shares).item() == pytest.approx(0, abs=1e-7)
    assert mutual_information(torch.eye(2) / 2).item() == pytest.approx(math.log(2))
    assert mutual_information(torch.eye(4) / 4).item() == pytest.approx(math.log(4))


def test_what_heads_share_is_counted_in_full_precision():
    one, other = (torch.rand(64, 2, generator=stream(n, "heads")) for n in (0, 1))

    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = together(one, other)

    assert found.dtype == torch.float32
    assert torch.equal(found, one.T @ other)


@pytest.mark.parametrize(
    ("further", "shared"),
    [((SAME,), math.log(2)), ((OTHER,), math.log(2)), ((UNSURE,), 0.0), ((SAME, UNSURE), None)],
)
def test_heads_pay_for_what_the_answer_of_one_tells_of_the_other(toy, further, shared):
    # The first pixel or the second: an answer is as good as its opposite to tell the other's.
    pictures = torch.eye(2)[:, None, None]
    shared = math.log(2) / 3 if shared is None else shared  # of three pairs one
    model = nn.Sequential(nn.Flatten(), linear(*SAME))
    objective = DivDis(
        "1",
        nn.ModuleList(linear(*rows) for rows in further),
        unlabelled=toy.validation,
        compute=CPU,
    )
    batch = Batch(torch.arange(2), torch.empty(0), torch.tensor([0, 1]), torch.zeros(2))

    loss, logits = objective.loss(model, pictures, batch, pictures)

    wrong = {SAME: 0.0, OTHER: 50.0, UNSURE: math.log(2)}  # cross entropy on these pictures
    errors = [0.0, *(wrong[rows] for rows in further)]
    assert loss.item() == pytest.approx(sum(errors) / len(errors) + 10 * shared, abs=1e-4)
    assert logits.shape == (2, 2)


def test_the_head_that_validation_prefers_becomes_the_last_layer(toy, before, monkeypatch):
    # Not trained: the model's own head says dark of all, the other tells bright from dark.
    def untrained(context, model, objective, **_):
        del context
        for layer in (model.head, *objective.further):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        model.hidden.weight.data.zero_()
        model.hidden.bias.data.fill_(1.0)
        objective.further[0].bias.data[1] = 1.0
        return model

    monkeypatch.setattr("masktune.training.rivals.divdis.learn_by", untrained)
    few = replace(toy.validation, labels=torch.ones_like(toy.validation.labels))
    tuned = tune(Context(config=CONFIG, bundle=replace(toy, validation=few), compute=CPU), before)

    assert tuned.after.model.head.bias.tolist() == [0.0, 1.0]
    assert tuned.facts["chosen head"] == 2
    assert tuned.facts["heads by worst group on validation"] == [0.0, 1.0]


def test_without_groups_heads_are_chosen_by_accuracy(toy, before):
    nobody = torch.full_like(toy.validation.attributes, UNKNOWN)
    bundle = replace(toy, validation=replace(toy.validation, attributes=nobody))

    tuned = tune(Context(config=CONFIG, bundle=bundle, compute=CPU), before)

    assert "heads by accuracy on validation" in tuned.facts


def test_heads_are_chosen_by_accuracy_where_the_epoch_is(toy, before):
    config = replace(CONFIG, training=replace(CONFIG.training, best="average"))

    tuned = tune(Context(config=config, bundle=toy, compute=CPU), before)

    assert "heads by accuracy on validation" in tuned.facts


def test_an_epoch_is_as_good_as_its_best_head(toy):
    objective = DivDis(
        "1",
        nn.ModuleList([linear(*OTHER), linear(*UNSURE)]),
        unlabelled=toy.validation,
        compute=CPU,
    )
    model = nn.Sequential(nn.Flatten(), linear(*SAME))

    best = objective.best(Best(lambda one: one[1].weight[1, 0].item()))

    assert best.score(model) == 50.0
    assert [one[1].weight.tolist() for one in objective.each(model)] == [
        [list(row) for row in rows] for rows in (SAME, OTHER, UNSURE)
    ]


@pytest.mark.parametrize(
    ("unlabelled", "set_aside", "name", "finding"),
    [
        ("validation", "", "validation", None),
        ("validation", "A fifth validates.", "validation", "set aside from training"),
        ("test", "A fifth validates.", "turned", "The first test set was looked at"),
    ],
)
def test_it_says_whose_pictures_were_looked_at(toy, before, unlabelled, set_aside, name, finding):
    config = replace(CONFIG, rival_settings=RivalConfig(unlabelled=unlabelled))
    bundle = replace(toy, set_aside=set_aside)

    facts = tune(Context(config=config, bundle=bundle, compute=CPU), before).facts

    assert facts["unlabelled pictures"] == name
    assert (finding in facts["finding"]) if finding else ("finding" not in facts)


def test_nothing_is_known_of_the_unlabelled_pictures(toy):
    found = without_labels(toy.validation)

    assert set(found.labels.tolist()) == set(found.attributes.tolist()) == {UNKNOWN}
    assert torch.equal(found.images.batch([3]), toy.validation.images.batch([3]))
