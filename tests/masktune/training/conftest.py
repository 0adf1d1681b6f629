"""A tiny world whose given network sees thing and clue, and whose last layer leans on the clue."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.compute import accelerator
from masktune.config import MaskingConfig, RivalConfig, RunConfig, TrainConfig
from masktune.data.types import DatasetBundle, in_memory
from masktune.training.context import Context


class Leaning(nn.Module):
    """Gives the mean red, green and nothing of each quarter to a last layer.

    That answers by the green of the first quarter, above or below a half.
    """

    def __init__(self, logits=2, *, bias=True):
        super().__init__()
        self.maps = nn.Conv2d(3, 3, 1, bias=False)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(12, logits, bias=bias)
        with torch.no_grad():
            self.maps.weight.zero_()
            self.maps.weight[0, 0] = self.maps.weight[1, 1] = 1
            self.head.weight.zero_()
            self.head.weight[-1, 4] = 20
            if bias:
                self.head.bias.zero_()
                self.head.bias[-1] = -10

    def forward(self, images):
        cells = nn.functional.adaptive_avg_pool2d(self.maps(images), 2)  # (N, 3, 2, 2)
        return self.head(self.dropout(cells.flatten(1)))


def coloured(name, repeats, *, seed):
    """Pictures of 8 x 8: red tells the label, a green first quarter the attribute.

    ``repeats`` is how many there are of (label 0, plain), (0, green), (1, plain) and (1, green).
    """
    groups = torch.arange(4).repeat_interleave(torch.tensor(repeats))
    labels, attributes = groups // 2, groups % 2
    chance = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 60, (len(groups), 3, 8, 8), generator=chance)
    pixels[:, 0] += 60 + 60 * labels[:, None, None]
    pixels[:, 1, :4, :4] += 190 * attributes[:, None, None]
    return in_memory(name, pixels.to(torch.uint8), labels, attributes)


@pytest.fixture(scope="session")
def leaning_bundle(toy) -> DatasetBundle:
    """Green goes with label 1 but for some in validation; the test has all groups alike."""
    return DatasetBundle(
        card=replace(toy.card, size=(8, 8), tests=("test",)),
        train=coloured("train", (38, 2, 2, 38), seed=1),
        validation=coloured("validation", (40, 8, 6, 30), seed=2),
        tests={"test": coloured("test", (20, 20, 20, 20), seed=3)},
    )


@pytest.fixture
def leaning():
    """Give the model before, with so many logits and with or without a bias."""

    def made(logits=2, *, bias=True):
        model = Leaning(logits, bias=bias).eval()
        return Checkpoint(model=model, arch="small-cnn", classes=logits, lr=0.01)

    return made


@pytest.fixture
def last_layer_context(leaning_bundle):
    """Give a run of a rival that retrains the last layer."""

    def made(rival, *, bundle=leaning_bundle, masking=None, seed=0, settings=None, **more):
        config = RunConfig(
            dataset="toy",
            recipe="biased-mnist-5k",
            arch="small-cnn",
            training=TrainConfig(epochs=1, batch_size=32, lr=0.01),
            masking=masking or MaskingConfig(),
            rival=rival,
            rival_settings=settings or RivalConfig(),
            seed=seed,
            device="cpu",
        )
        return Context(config=config, bundle=bundle, compute=accelerator("cpu"), **more)

    return made


@pytest.fixture
def worst():
    """Give the accuracy of the worst group of the test pictures."""

    def of(context, checkpoint):
        test = context.bundle.tests["test"]
        right = torch.from_numpy(context.ask(checkpoint.model, test).correct())
        groups = test.labels * 2 + test.attributes
        return min(float(right[groups == group].double().mean()) for group in range(4))

    return of
