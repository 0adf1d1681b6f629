import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import RivalConfig, RunConfig, TrainConfig
from masktune.errors import ConfigError
from masktune.models.build import build
from masktune.pipeline import run
from masktune.runs import load as loading
from masktune.runs.open import OpenRun
from masktune.training.context import Context
from masktune.training.fit import Best
from masktune.training.rivals.deep_gamblers import (
    Abstaining,
    DeepGamblers,
    gamblers_loss,
    payoff_of,
    tune,
)

CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=3, batch_size=32, lr=0.01),
    rival="deep-gamblers",
    device="cpu",
)


def test_the_loss_of_a_batch_is_that_of_a_bet():
    # Laid: 1/3 on each, and 1/2, 1/4, 1/4. Of what is abstained with a payoff of 2 half counts.
    laid = torch.tensor([[1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 4, 1 / 4]]).log()

    loss = gamblers_loss(laid, torch.tensor([0, 1]), payoff=2.0)

    expected = -(math.log(1 / 3 + 1 / 6) + math.log(1 / 4 + 1 / 8)) / 2
    assert loss.item() == pytest.approx(expected)


def test_an_output_that_is_never_laid_on_leaves_the_cross_entropy():
    logits = torch.tensor([[1.0, -2.0, -1e4], [0.5, 0.25, -1e4]])
    labels = torch.tensor([1, 0])

    loss = gamblers_loss(logits, labels, payoff=2.0)

    assert loss.item() == pytest.approx(nn.functional.cross_entropy(logits[:, :2], labels).item())


def test_the_payoff_is_at_most_the_number_of_classes():
    assert [payoff_of(None, classes=classes) for classes in (2, 3, 10)] == [2.0, 2.2, 2.2]
    assert payoff_of(5.0, classes=10) == 5.0
    with pytest.raises(ConfigError, match=r"The payoff is 2\.5, and there are 2 classes"):
        payoff_of(2.5, classes=2)


@pytest.fixture
def before():
    return Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)


@pytest.mark.parametrize(("epochs", "plain"), [(1, 0), (3, 1), (7, 2)])
def test_the_first_third_of_the_epochs_does_not_gamble(toy, epochs, plain):
    objective = DeepGamblers("head", Abstaining(256), payoff=2.0, plain=epochs // 3)
    gambled = []

    for _ in range(epochs):
        objective.draw(toy.train, torch.Generator())
        gambled.append(objective.gambles)

    assert gambled == [False] * plain + [True] * (epochs - plain)


def test_an_epoch_that_did_not_gamble_is_never_the_best(toy):
    objective = DeepGamblers("head", Abstaining(256), payoff=2.0, plain=3)
    accuracies = iter((0.0, 0.0))  # of the two epochs that gamble
    best = objective.best(Best(lambda _: next(accuracies), patience=1))
    epochs = []

    for number in range(1, 6):
        objective.draw(toy.train, torch.Generator())
        best.look(nn.Linear(1, 1), nn.ModuleDict(), epoch=number)
        epochs.append(best.epoch)

    # The plain ones do not use up the patience either.
    assert epochs == [1, 2, 3, 4, 4]
    assert objective.best(None) is None


def test_a_model_of_one_logit_gambles_with_two_classes(toy):
    one = Checkpoint(model=build("small-cnn", 1), arch="small-cnn", classes=1, lr=0.01)
    config = replace(CONFIG, start="erm")

    tuned = tune(Context(config=config, bundle=toy, compute=accelerator("cpu")), one)

    objective = DeepGamblers("head", Abstaining(256), payoff=2.0)
    outputs = objective.outputs(tuned.after.model, torch.zeros(4, 3, 28, 28))
    assert outputs.shape == (4, 3)
    assert outputs[:, 0].tolist() == [0.0] * 4


def test_a_payoff_above_the_number_of_classes_is_refused(toy, before):
    config = replace(CONFIG, rival_settings=RivalConfig(payoff=2.5))

    with pytest.raises(ConfigError, match="2 classes") as error:
        tune(Context(config=config, bundle=toy, compute=accelerator("cpu")), before)

    assert "up to 2, the number of classes" in error.value.remedy


def test_the_score_of_its_own_stands_beside_the_others_in_all_files_of_a_run(
    toy, tmp_path, monkeypatch
):
    monkeypatch.setattr(loading, "load", lambda _, **__: toy)

    result = run(CONFIG, out=tmp_path / "run")

    document = json.loads((result.folder / "result.json").read_text())
    rows = document["selective"]["turned"]
    assert {row["score"] for row in rows} == {"joint", "before", "after", "own"}
    assert set(document["risk_coverage"]["turned"]) == {"joint", "before", "after", "own"}
    assert document["rival"] == {"payoff": 2.0, "epochs of plain cross entropy": 1}
    with np.load(result.folder / "predictions.npz") as file:
        for name, count in (("validation", 40), ("test/turned", 40)):
            own = file[f"{name}/after-score"]
            assert own.shape == (count,)
            assert -1 < own.min() < own.max() < 0
    opened = OpenRun(result.folder)
    assert opened.predictions.tests["turned"].own.tolist() == own.tolist()
    assert opened.result.to_json() == document
    assert "its own score" in (result.folder / "report.html").read_text()
