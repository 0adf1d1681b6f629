"""What is told before the epoch, of a model that answers by brightness alone."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import BUNDLED, RunConfig, TrainConfig
from masktune.scores.class_order import OtherOrder
from masktune.scores.result import VALIDATION
from masktune.training import context as contexts
from masktune.training.context import Context
from masktune.training.foretell import foretell
from masktune.training.rates import FinetuneRate

CONFIG = RunConfig(
    dataset="toy",
    recipe="biased-mnist-5k",
    arch="small-cnn",
    model="m.pt",
    training=TrainConfig(epochs=1, batch_size=16, lr=0.01),
    device="cpu",
)


class Bright(nn.Module):
    """Says dark or bright, in one order of the two classes or the other."""

    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        self.turned = turned
        self.sign = nn.Parameter(torch.ones(()))  # so that it has a device

    def forward(self, images: Tensor) -> Tensor:
        light = self.sign * (images[:, 0, 10:].mean(dim=(1, 2)) - 75 / 255)  # (N,)
        logits = 100 * torch.stack([-light, light], dim=1)  # (N, 2)
        return logits.flip(1) if self.turned else logits


@pytest.fixture
def asked(monkeypatch):
    """List the pictures of every split that a model is asked about."""
    found = []

    def ask(model, split, **more):
        found.append(split.name)
        return was(model, split, **more)

    was = contexts.predict
    monkeypatch.setattr(contexts, "predict", ask)
    return found


@pytest.fixture
def told(toy):
    """Foretell of a model with some settings: what was told, the context, the model."""

    def tell(*, turned, **changes):
        heard = []
        model = Bright(turned=turned)
        before = Checkpoint(model=model, arch="small-cnn", classes=2, lr=0.01)
        config = replace(CONFIG, **changes)
        context = Context(config=config, bundle=toy, compute=accelerator("cpu"), tell=heard.append)
        return heard, foretell(context, before), before

    return tell


def test_a_model_with_its_classes_in_another_order_is_told_of_and_one_in_order_is_not(told):
    for turned in (False, True):
        (rate, *orders), _, _ = told(turned=turned)

        assert isinstance(rate, FinetuneRate)
        assert [found.order for found in orders] == ([(1, 0)] if turned else [])
    (found,) = orders
    assert isinstance(found, OtherOrder)
    assert (found.change.count, found.change.before, found.change.after) == (20, 0.0, 1.0)


def test_what_the_model_answered_about_validation_is_not_asked_again(told, asked):
    _, context, before = told(turned=False)
    assert asked == ["validation"]

    said = context.ask_both(before, replace(before, model=Bright(turned=True)))

    assert said.validation.before is context.said[VALIDATION]
    assert sorted(asked) == ["turned", "turned", "validation", "validation"]  # after: once each


@pytest.mark.parametrize("given", [{"class_order": "0,1"}, {"model": None}, {"model": BUNDLED}])
def test_nobody_asks_about_an_order_that_is_given_or_our_own(told, given, asked):
    heard, context, _ = told(turned=True, **given)

    assert [type(one) for one in heard] == [FinetuneRate]
    assert asked == []
    assert not context.said


def test_of_a_rival_no_rate_of_a_finetune_is_told(told):
    heard, _, _ = told(turned=True, rival="dfr")

    assert [type(one) for one in heard] == [OtherOrder]
