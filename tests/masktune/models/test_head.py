import copy

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from masktune.errors import ModelError
from masktune.models.build import build
from masktune.models.class_map import with_class_map
from masktune.models.head import head_name, head_of, logits_and_features, with_head


def net(head, *, inside=()):
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), *inside, head).eval()


PROBE = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))


class Own(nn.Module):
    """A network that calls its backbone ``module``, as wrappers do."""

    def __init__(self, module):
        nn.Module.__init__(self)
        self.module = module

    def forward(self, images):
        return self.module(images)


class Wrapped(Own, DistributedDataParallel):
    """As the wrapper for several processes, without the processes."""


class Dict(Own):
    def forward(self, images):
        return {"logits": self.module(images)[:, 0]}


@pytest.mark.parametrize(
    ("arch", "name", "size"),
    [("small-cnn-bn", "head", 28), ("resnet20", "linear", 28), ("resnet18", "fc", 32)],
)
def test_the_last_layer_is_found_by_running_the_network(arch, name, size):
    model = build(arch, 2)  # in training
    probe = torch.rand(1, 3, size, size)
    state = copy.deepcopy(model.state_dict())

    assert head_name(model, probe) == name

    assert model.training
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "name", "size", "bias"),
    [
        ("vit_b_32", "heads.head", 32, True),
        ("swin_t", "head", 64, True),
        ("densenet121", "classifier", 64, True),
        ("maxvit_t", "classifier.5", 224, False),
    ],
)
def test_networks_of_torchvision_end_in_their_linear_layer(arch, name, size, bias):
    model = build(arch, 2, size=size)

    assert head_name(model, torch.rand(1, 3, size, size)) == name
    assert (head_of(model, name).bias is not None) == bias


class Token(nn.Module):
    """As a ViT: it holds a token, and so is done after its head."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.ones(1, 3))
        self.head = nn.Linear(3, 2)

    def forward(self, images):
        return self.head(images.mean(dim=(2, 3)) + self.token)


def test_a_network_with_weights_of_its_own_is_not_its_head():
    assert head_name(Token(), PROBE[:1]) == "head"


def test_one_logit_and_a_dict_of_logits_come_from_the_last_layer_too():
    assert head_name(Dict(net(nn.Linear(16, 1))), PROBE[:1]) == "module.2"


@pytest.mark.parametrize(
    "model",
    [
        build("squeezenet1_1", 2),
        net(nn.Sequential(nn.Linear(16, 2), nn.Softmax(dim=1))),
        net(nn.utils.spectral_norm(nn.Linear(16, 2))),
        net(nn.utils.parametrizations.weight_norm(nn.Linear(16, 2))),
        with_class_map(net(nn.Linear(16, 4)), (0, 0, 1, 1)),
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    ],
    ids=["convolution", "softmax", "spectral norm", "weight norm", "class map", "no weights"],
)
def test_logits_that_come_from_elsewhere_are_refused(model):
    probe = torch.rand(1, 3, 32, 32) if len(list(model.modules())) > 9 else PROBE[:1]

    with pytest.raises(ModelError, match="do not come from a linear last layer") as error:
        head_name(model, probe)

    assert "trains the whole network" in error.value.remedy


def test_features_are_what_goes_into_the_last_layer_and_no_hook_stays():
    model = net(nn.Linear(16, 2), inside=[nn.Dropout(0.5)])

    logits, features = logits_and_features(Wrapped(model), PROBE, head="3")

    assert features.shape == (2, 16)
    assert torch.equal(features, model[:2](PROBE))  # dropout rests in evaluation
    assert torch.equal(logits, model[3](features))
    assert features.requires_grad
    assert not model[3]._forward_pre_hooks


def test_a_network_that_has_a_module_of_its_own_is_taken_as_it_is():
    model = Own(net(nn.Linear(16, 2)))
    name = head_name(model, PROBE[:1])

    logits, features = logits_and_features(model, PROBE, head=name)

    assert name == "module.2"
    assert torch.equal(logits, head_of(model, name)(features))


def test_another_last_layer_is_put_into_a_copy():
    model = net(nn.Linear(16, 2))
    was = model[2].weight.clone()

    other = with_head(model, "2", weight=torch.ones(2, 16).double(), bias=torch.tensor([1.0, 2.0]))

    _, features = logits_and_features(model, PROBE, head="2")
    total = features.sum(dim=1)
    assert torch.allclose(other(PROBE), torch.stack([total + 1, total + 2], dim=1), atol=1e-5)
    assert torch.equal(model[2].weight, was)


def test_a_layer_without_bias_stays_so():
    model = net(nn.Linear(16, 2, bias=False))

    other = with_head(model, "2", weight=torch.ones(2, 16), bias=None)

    assert other.state_dict().keys() == model.state_dict().keys()
    assert other[2].weight.unique().tolist() == [1.0]
    with pytest.raises(ValueError, match="unlike"):
        with_head(model, "2", weight=torch.ones(2, 16), bias=torch.zeros(2))
    with pytest.raises(ValueError, match="unlike"):
        with_head(net(nn.Linear(16, 2)), "2", weight=torch.ones(2, 16), bias=None)
