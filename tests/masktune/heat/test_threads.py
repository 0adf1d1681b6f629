"""Several people at once: threads on one model and in one process, as sessions of the pages are."""

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from masktune.data.images import TensorImages
from masktune.data.types import Split
from masktune.heat.explain import explain
from masktune.heat.layers import cam_layer, name_of, usual_and_all
from masktune.heat.xgradcam import xgradcam
from masktune.models.class_map import with_class_map
from masktune.models.predict import predict


@pytest.fixture
def hurried():
    """Let threads take turns every ten microseconds instead of every five milliseconds."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.fixture(scope="module")
def model():
    """A network in training mode, with what acts otherwise there, that answers in pooled classes.

    Heat is read at its third layer; four logits become two classes by a hook of the model's own.
    """
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
        nn.Linear(4 * 36, 4),
    )  # fmt: skip
    return with_class_map(network.train(), (0, 1, 0, 1))


def pictures(seed):
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (3, 3, 8, 8), generator=generator, dtype=torch.uint8)
    zeros = torch.zeros(3, dtype=torch.int64)
    return Split(name=str(seed), images=TensorImages(pixels), labels=zeros, attributes=zeros)


def asked(model):
    """Give one call of each kind for each of five small sets, by name."""
    sets = [pictures(seed) for seed in range(5)]
    calls = {
        "layer": lambda: name_of(model, cam_layer(model, size=(8, 8))),
        "layers": lambda: usual_and_all(model, size=(8, 8))[1],
    }
    for split in sets:
        inputs = split.images.batch([0, 1, 2]).float() / 255
        calls |= {
            f"heat {split.name}": partial(xgradcam, model, model[2], inputs),
            f"explained {split.name}": lambda s=split: explain(model, s, layer="2").rounds[0],
            f"answers {split.name}": lambda s=split: predict(model, s).probabilities,
        }
    return calls


def same(found, expected):
    if isinstance(expected, torch.Tensor):
        return torch.equal(found, expected)
    return np.array_equal(found, expected)


@pytest.mark.parametrize("count", [170, pytest.param(2000, marks=pytest.mark.slow)])
def test_calls_in_eight_threads_give_what_each_gives_alone(count, model, hurried):
    calls = asked(model)
    alone = {name: call() for name, call in calls.items()}
    names = [list(calls)[i % len(calls)] for i in range(count)]

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda name: calls[name](), names))

    wrong = {n for n, found in zip(names, together, strict=True) if not same(found, alone[n])}
    assert wrong == set()
    assert len({value.tobytes() for n, value in alone.items() if n.startswith("answers")}) == 5


def test_the_modes_of_a_shared_model_are_never_switched(model, hurried):
    calls = asked(model)
    seen = set()

    def look(name):
        calls[name]()
        seen.add(tuple(module.training for module in model.modules()))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(look, list(calls) * 3))

    assert seen == {(True,) * 7}


def test_no_hook_is_put_on_a_shared_model(model):
    """Another thread that runs or copies the model would meet it."""
    split = pictures(0)
    heard = []
    handle = model[2].register_forward_hook(lambda *_: heard.append(len(model[2]._forward_hooks)))

    explain(model, split, layer="2")
    xgradcam(model, model[2], split.images.batch([0]).float())
    cam_layer(model, size=(8, 8))

    handle.remove()
    assert heard == [1, 1, 1]
