import pytest
import torch
from torch import nn

from masktune.models.eval_mode import borrowed, step_by_step


@pytest.fixture
def model():
    """A network in training mode with a frozen batch norm inside a block."""
    network = nn.Sequential(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)), nn.Dropout())
    network.train()
    network[0][1].eval()
    return network


def modes(model):
    return [module.training for module in model.modules()]


def test_a_borrowed_model_evaluates_and_the_one_given_keeps_its_modes(model):
    (own,) = borrowed(model)

    assert modes(own) == [False] * 5
    assert modes(model) == [True, True, True, False, True]


def test_a_borrowed_model_shares_every_weight_and_buffer(model):
    model.scale = torch.ones(1, requires_grad=True) * 2  # in the graph: it could not be copied
    (own,) = borrowed(model)

    theirs = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    ours = {**dict(own.named_parameters()), **dict(own.named_buffers())}
    assert list(ours) == list(theirs)
    assert len(ours) == 7
    assert all(ours[name] is theirs[name] for name in ours)
    assert own.scale is model.scale


def test_layers_come_as_those_of_the_borrowed_model(model):
    own, layer, stranger = borrowed(model, model[0][1], nn.ReLU())

    assert layer is own[0][1]
    assert layer is not model[0][1]
    assert stranger not in set(own.modules())


def test_hooks_of_the_model_come_along_and_new_ones_stay_here(model):
    heard = []
    model[0].register_forward_hook(lambda *_: heard.append("theirs"))
    (own,) = borrowed(model)
    own[0].register_forward_hook(lambda *_: heard.append("ours"))

    own(torch.ones(1, 1, 2, 2))
    model(torch.ones(1, 1, 2, 2))

    assert heard == ["theirs", "ours", "theirs"]


def test_attention_without_gradients_rounds_as_it_does_with_them():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, batch_first=True).eval()
    tokens = torch.randn(2, 9, 64)
    expected = layer(tokens)

    with torch.no_grad(), step_by_step(layer):
        stepped = layer(tokens)

    assert torch.equal(stepped, expected)
