from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from masktune.config import TrainConfig
from masktune.data.preprocess import Preprocess
from masktune.errors import ModelError
from masktune.heat.explainers import METHODS, explainer
from masktune.heat.xgradcam import xgradcam
from masktune.models.build import build
from masktune.models.logits import logits_of
from masktune.models.predict import predict
from masktune.training.fit import train

LOGITS = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
OTHER = torch.zeros(2, 7)

Exits = namedtuple("Exits", ["aux", "logits"])
Pair = namedtuple("Pair", ["first", "second"])


@dataclass
class Answer:
    features: torch.Tensor
    logits: torch.Tensor


@pytest.mark.parametrize(
    "output",
    [
        LOGITS,
        (LOGITS, OTHER),
        [LOGITS, OTHER],
        {"loss": OTHER, "logits": LOGITS},
        {"aux": OTHER, "out": LOGITS},
        OrderedDict(features=OTHER, output=LOGITS),
        Exits(aux=OTHER, logits=LOGITS),
        Pair(first=LOGITS, second=OTHER),
        Answer(features=OTHER, logits=LOGITS),
        SimpleNamespace(scores=LOGITS),
        ({"logits": LOGITS}, OTHER),
        {"out": OTHER, "logits": LOGITS},
    ],
)
def test_logits_are_found_wherever_a_model_puts_them(output):
    assert logits_of(output) is LOGITS


def test_one_logit_a_picture_may_come_without_a_second_dimension():
    assert logits_of(torch.tensor([1.0, -2.0])).tolist() == [[1.0], [-2.0]]


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (torch.zeros(2, 3, 4), r"shape \(2, 3, 4\)"),
        (torch.tensor(1.0), r"shape \(\)"),
        ({"loss": OTHER, "boxes": OTHER}, "type dict with loss, boxes"),
        ((), "type tuple"),
        (None, "type NoneType"),
        ((None, LOGITS), "type NoneType"),
    ],
)
def test_an_output_without_logits_is_refused(output, told):
    with pytest.raises(ModelError, match=told) as caught:
        logits_of(output)

    assert "one row of logits" in caught.value.remedy


class Wrapped(nn.Module):
    """A model that returns its logits in some wrapping."""

    def __init__(self, model, wrap):
        super().__init__()
        self.model, self.wrap = model, wrap

    def forward(self, x):
        return self.wrap(self.model(x))


WRAPPINGS = {
    "a tuple": lambda logits: (logits, logits.new_zeros(1)),
    "a dict": lambda logits: {"logits": logits},
    "a dataclass": lambda logits: Answer(features=logits.new_zeros(1), logits=logits),
}
wrappings = pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)


def tiny():
    torch.manual_seed(4)
    return nn.Sequential(
        nn.Conv2d(3, 5, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(20, 3)
    ).eval()


@wrappings
@pytest.mark.parametrize("method", METHODS)
def test_every_explainer_takes_a_model_with_wrapped_logits(method, wrap):
    model = tiny()
    images = torch.randn(2, 3, 9, 9, generator=torch.Generator().manual_seed(0))

    explain = explainer(method, Wrapped(model, wrap), model[1])
    heat = explain(images)

    assert heat.amax() > 0.9
    explain = explainer(method, model, model[1])
    assert torch.equal(heat, explain(images))


def test_a_single_logit_without_a_second_dimension_is_explained_on_its_side():
    torch.manual_seed(4)
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(245, 1)).eval()
    images = torch.randn(4, 3, 9, 9, generator=torch.Generator().manual_seed(0))

    heat = xgradcam(Wrapped(model, lambda logits: logits[:, 0]), model[1], images)

    assert heat.amax() > 0.9
    assert torch.equal(heat, xgradcam(model, model[1], images))


@wrappings
def test_training_and_predicting_take_wrapped_logits(toy, wrap):
    plain = build("small-cnn", 2)
    config = TrainConfig(epochs=1, batch_size=32, lr=0.01)

    trained = train(Wrapped(plain, wrap), toy.train, config=config, preprocess=Preprocess())

    expected = train(plain, toy.train, config=config, preprocess=Preprocess())
    for name, value in expected.state_dict().items():
        assert torch.equal(trained.model.state_dict()[name], value)
    answers, right = (predict(model, toy.validation) for model in (trained, expected))
    assert answers.probabilities.tolist() == right.probabilities.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "side"), [("googlenet", 96), ("inception_v3", 299)])
def test_networks_with_side_exits_train_by_their_main_one(arch, side):
    model = build(arch, 3, aux=True)
    images = torch.rand(2, 3, side, side)

    output = model(images)

    assert not isinstance(output, torch.Tensor)
    assert logits_of(output) is output.logits
