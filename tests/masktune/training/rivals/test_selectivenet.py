import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import RivalConfig, RunConfig, TrainConfig
from masktune.data.types import Batch
from masktune.errors import ConfigError
from masktune.models.build import build
from masktune.training.context import Context
from masktune.training.rivals.selectivenet import SelectionHeads, SelectiveNet, tune

CPU = accelerator("cpu")
CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    training=TrainConfig(epochs=3, batch_size=32, lr=0.01),
    rival="selectivenet",
    device="cpu",
)


def as_it_is():
    """A network whose logits are its two pixels."""
    head = nn.Linear(2, 2)
    head.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
    return nn.Sequential(nn.Flatten(), head)


def heads():
    """The first pixel selects; the auxiliary head knows nothing."""
    made = SelectionHeads(2, 2)
    made["selection"] = nn.Linear(2, 1)
    made["selection"].load_state_dict(
        {"weight": torch.tensor([[1.0, 0.0]]), "bias": torch.zeros(1)}
    )
    for parameter in made["auxiliary"].parameters():
        nn.init.zeros_(parameter)
    return made


def batch_of(labels):
    labels = torch.tensor(labels)
    return Batch(torch.arange(len(labels)), torch.empty(0), labels, torch.zeros_like(labels))


PICTURES = torch.tensor([[math.log(3), 0.0], [0.0, 0.0]])[:, None, None]  # p_0 = 3/4 and 1/2


@pytest.mark.parametrize(("coverage", "short"), [(0.6, 0.0), (0.9, 0.275)])
def test_the_selective_risk_is_weighed_by_the_selection_and_pays_for_missing_coverage(
    coverage, short
):
    # Selected with 3/4 and 1/2: their mean is 0.625.
    objective = SelectiveNet("1", heads(), coverage=coverage, compute=CPU)

    loss, logits = objective.loss(as_it_is(), PICTURES, batch_of([0, 0]), None)

    risk = (0.75 * math.log(4 / 3) + 0.5 * math.log(2)) / 1.25
    assert loss.item() == pytest.approx((risk + 32 * short**2) / 2 + math.log(2) / 2)
    assert logits.tolist() == PICTURES[:, 0, 0].tolist()
    assert objective.score(as_it_is(), PICTURES).tolist() == pytest.approx([0.75, 0.5])


def test_the_selection_head_is_the_papers():
    selection = SelectionHeads(256, 10)["selection"]

    kinds = [type(layer) for layer in selection]
    assert kinds == [nn.Linear, nn.ReLU, nn.BatchNorm1d, nn.Linear]
    assert [(layer.in_features, layer.out_features) for layer in selection[::3]] == [
        (256, 512),
        (512, 1),
    ]


def test_the_selection_learns_the_coverage_that_is_asked_for(toy):
    before = Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)
    own = {}
    for coverage in (0.3, 1.0):
        settings = RivalConfig(target_coverage=coverage, penalty=300.0)
        config = replace(CONFIG, rival_settings=settings)
        tuned = tune(Context(config=config, bundle=toy, compute=CPU), before)
        own[coverage] = tuned.own["turned"]

    assert own[1.0].shape == (40,)
    assert 0 <= own[1.0].min() <= own[1.0].max() <= 1
    assert own[1.0].mean() > own[0.3].mean()


def test_steps_of_one_picture_are_refused_before_any_is_made(toy):
    before = Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)
    config = replace(CONFIG, training=replace(CONFIG.training, batch_size=1))

    with pytest.raises(ConfigError, match="cannot learn from one picture"):
        tune(Context(config=config, bundle=toy, compute=CPU), before)
