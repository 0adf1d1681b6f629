"""Tiny worlds for rivals: a network that says its pictures' pixels, and a biased set."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import MaskingConfig, RunConfig, TrainConfig
from masktune.data.types import Batch, DatasetBundle, in_memory
from masktune.models.build import build
from masktune.training.context import Context
from masktune.training.fit import Resume


class Says(nn.Module):
    """Answers with what it is given: images (N, K) are the logits, times a scale that learns."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, images):
        return images * self.scale


@pytest.fixture
def says():
    return Says()


@pytest.fixture(scope="session")
def compute():
    return accelerator("cpu")


@pytest.fixture
def logits_for():
    """Give one logit for each picture, so that a two-class head's p of class 1 is as wanted."""

    def made(*probabilities):
        return torch.logit(torch.tensor(probabilities, dtype=torch.float64)).float()[:, None]

    return made


@pytest.fixture
def batch_of():
    def made(labels, *, attributes=None, positions=None):
        labels = torch.tensor(labels)
        attributes = torch.zeros_like(labels) if attributes is None else torch.tensor(attributes)
        positions = torch.arange(len(labels)) if positions is None else torch.tensor(positions)
        return Batch(positions, torch.zeros(len(labels), 3, 1, 1), labels, attributes)

    return made


def biased(name, repeats, *, seed):
    """Pictures of 4 x 4: red tells the label faintly, green loudly but for the small groups.

    ``repeats`` is how many there are of (label 0, green 0), (0, 1), (1, 0) and (1, 1).
    """
    groups = torch.arange(4).repeat_interleave(torch.tensor(repeats))
    labels, attributes = groups // 2, groups % 2
    chance = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 20, (len(groups), 3, 4, 4), generator=chance)
    pixels[:, 0] += 100 + 20 * labels[:, None, None]
    pixels[:, 1] += 200 * attributes[:, None, None]
    return in_memory(name, pixels.to(torch.uint8), labels, attributes)


@pytest.fixture(scope="session")
def unfair(toy) -> DatasetBundle:
    """In training 5 in 100 of a class lack its green or absence of it; the test has all alike."""
    alike = biased("test", (25, 25, 25, 25), seed=3)
    return DatasetBundle(
        card=replace(toy.card, size=(4, 4), tests=("test",)),
        train=biased("train", (95, 5, 5, 95), seed=1),
        validation=biased("validation", (10, 10, 10, 10), seed=2),
        tests={"test": alike},
    )


def flat(classes=2):
    """A linear classifier of 4 x 4 pictures that begins with zeros."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, classes))
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


@pytest.fixture
def unfair_context(unfair):
    """Give a run on the biased set that begins with a linear model, which stands for its ERM."""
    training = TrainConfig(epochs=20, batch_size=20, lr=0.05, weight_decay=0.0)

    def made(rival, *, training=training, settings=None, **more):
        config = RunConfig(
            dataset="toy",
            recipe="biased-mnist-5k",
            arch="small-cnn",
            training=training,
            masking=MaskingConfig(strategy="none"),  # as rivals have it: no heat is needed
            rival=rival,
            start="erm",
            device="cpu",
            **({} if settings is None else {"rival_settings": settings}),
        )
        return Context(config=config, bundle=unfair, compute=accelerator("cpu"), **more)

    return made


@pytest.fixture
def linear():
    return Checkpoint(model=flat(), arch="small-cnn", classes=2, lr=0.01)


@pytest.fixture
def one_logit():
    return Checkpoint(model=flat(classes=1), arch="small-cnn", classes=2, lr=0.01)


@pytest.fixture
def interrupted(toy):
    """Train a rival on the toy set whole, and again from what it saved after its first epoch."""

    def both(tune, rival, **changes):
        training = TrainConfig(epochs=2, batch_size=32, lr=0.01, **changes)
        config = RunConfig(
            dataset="toy",
            recipe="biased-mnist-5k",
            arch="small-cnn",
            training=training,
            rival=rival,
            device="cpu",
        )
        before = Checkpoint(model=build("small-cnn", 2), arch="small-cnn", classes=2, lr=0.01)
        states = {}

        def keeping(part):
            saved = states.setdefault(part, [])
            return Resume(state=None, save=lambda state: saved.append(copy.deepcopy(state)))

        def going_on(part):
            return Resume(state=states[part][0], save=lambda _: None)

        run = Context(config=config, bundle=toy, compute=accelerator("cpu"))
        whole = tune(replace(run, resume=keeping), before)
        return whole, tune(replace(run, resume=going_on), before), states

    return both
