import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from masktune.config import TrainConfig
from masktune.errors import ModelError
from masktune.models.build import build
from masktune.training.fit import finetune, train
from masktune.training.freeze import frozen_part, with_statistics

CONFIG = TrainConfig(epochs=1, batch_size=32, lr=0.01)


def frozen_names(model, upto, *, size=(28, 28)):
    """Name the parameters that do not learn."""
    part = frozen_part(model.eval(), upto, probe=torch.zeros(1, 3, *size))
    still = {id(parameter) for module in part for parameter in module.parameters(recurse=False)}
    return {name for name, parameter in model.named_parameters() if id(parameter) in still}


def test_a_layer_is_frozen_with_all_that_runs_before_it():
    # Of each convolution: the layer, its batch norm, ReLU. The second has the numbers 3, 4 and 5.
    model = build("small-cnn", 2, seed=0)

    found = frozen_names(model, "features.3")

    assert found == {
        f"features.{layer}.{kind}" for layer in (0, 1, 3) for kind in ("weight", "bias")
    }


def test_a_block_is_frozen_with_its_parts_and_the_shortcut_that_runs_after_them():
    model = build("resnet18", 2, seed=0)

    found = frozen_names(model, "layer2", size=(64, 64))

    early = ("conv1.", "bn1.", "layer1.", "layer2.")
    assert found == {name for name, _ in model.named_parameters() if name.startswith(early)}
    assert "layer2.0.downsample.0.weight" in found


def test_the_body_is_all_but_the_last_layer():
    model = build("small-cnn-bn", 2, seed=0)

    learns = {name for name, _ in model.named_parameters()} - frozen_names(model, "body")

    assert learns == {"head.weight", "head.bias"}


class Backwards(nn.Module):
    """Its head comes first in the list of its parts; its attention and a token are its own."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.stem = nn.Conv2d(3, 8, 4, stride=4)

    def forward(self, images):
        tokens = self.stem(images).flatten(2).transpose(1, 2) + self.token
        return self.head(self.attention(tokens, tokens, tokens)[0].mean(dim=1))


def test_before_means_in_the_order_in_which_layers_run():
    model = Backwards()

    assert frozen_names(model, "stem") == {"token", "stem.weight", "stem.bias"}
    # The projection inside the attention is never called: it goes with what holds it.
    assert "attention.out_proj.weight" in frozen_names(model, "attention")
    learns = {name for name, _ in model.named_parameters()} - frozen_names(model, "attention")
    assert learns == {"head.weight", "head.bias"}
    assert frozen_names(model, "body") == frozen_names(model, "attention")


@pytest.mark.parametrize("learn", [train, lambda *a, **k: finetune(*a, keep=None, lr=0.01, **k)])
def test_what_is_frozen_stays_bit_for_bit_and_the_rest_learns(learn, toy):
    model = build("small-cnn", 2, seed=0)

    tuned = learn(model, toy.train, config=replace(CONFIG, freeze="features.3"))

    was, now = model.state_dict(), tuned.state_dict()
    same = {name.rpartition(".")[0] for name in was if torch.equal(was[name], now[name])}
    # Batch norm 1 with its running mean and deviation, too; batch norm 4 comes after.
    assert same == {"features.0", "features.1", "features.3"}


def test_what_was_frozen_for_a_training_may_learn_in_the_next(toy):
    model = build("small-cnn", 2, seed=0)
    model.head.bias.requires_grad_(False)  # by somebody else: that stays

    tuned = train(model, toy.train, config=replace(CONFIG, freeze="features.3"))

    assert {n for n, p in tuned.named_parameters() if not p.requires_grad} == {"head.bias"}
    assert all(not m._forward_hooks and not m._forward_pre_hooks for m in tuned.modules())


def test_frozen_statistics_are_used_and_stay_while_weights_learn(toy):
    model = build("small-cnn", 2, seed=0)
    with torch.no_grad():
        model.features[1].running_mean.fill_(0.5)

    tuned = finetune(model, toy.train, keep=None, lr=0.01, config=CONFIG, batch_norm="frozen")

    norms, tuned_norms = (with_statistics(each.modules()) for each in (model, tuned))
    assert len(norms) == 4
    for was, now in zip(norms, tuned_norms, strict=True):
        assert torch.equal(was.running_mean, now.running_mean)
        assert torch.equal(was.running_var, now.running_var)
        assert not torch.equal(was.weight, now.weight)
    # They are what the network computes with: other statistics, another epoch.
    other = copy.deepcopy(model)
    other.features[1].running_mean.fill_(0.0)
    again = finetune(other, toy.train, keep=None, lr=0.01, config=CONFIG, batch_norm="frozen")
    assert not torch.equal(tuned.head.weight, again.head.weight)


def test_statistics_that_came_with_the_weights_stay_in_the_erm_too(toy):
    model = build("small-cnn", 2, seed=0)

    learnt, kept = (
        train(model, toy.train, config=replace(CONFIG, erm_batch_norm=how))
        for how in ("learnt", "frozen")
    )

    norms, moved, stayed = (with_statistics(each.modules()) for each in (model, learnt, kept))
    for was, other, now in zip(norms, moved, stayed, strict=True):
        assert torch.equal(was.running_mean, now.running_mean)
        assert not torch.equal(was.running_mean, other.running_mean)
        assert not torch.equal(was.weight, now.weight)


def test_a_model_without_batch_norm_has_no_statistics_to_freeze(toy):
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 2))

    with pytest.raises(ModelError, match="has no batch norm") as caught:
        finetune(model, toy.train, keep=None, lr=0.01, config=CONFIG, batch_norm="frozen")

    assert "--batch-norm" in caught.value.remedy


def test_a_layer_that_runs_twice_is_done_after_its_last_run():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other, self.head = (nn.Linear(2, 2) for _ in range(3))

        def forward(self, values):
            return self.head(self.one(self.other(self.one(values))))

    model = Twice()

    assert frozen_part(model, "one", probe=torch.zeros(1, 2)) == [model, model.one, model.other]


def test_a_layer_that_there_is_not_is_refused_and_others_are_named(toy):
    with pytest.raises(ModelError, match="no layer 'layer4'") as caught:
        train(build("small-cnn", 2), toy.train, config=replace(CONFIG, freeze="layer4"))

    assert "features, hidden, norm, head" in caught.value.remedy


def test_a_model_of_one_layer_has_no_body(toy):
    model = nn.Sequential(nn.Linear(2, 2))

    with pytest.raises(ModelError, match="Every parameter"):
        train(build("small-cnn", 2), toy.train, config=replace(CONFIG, freeze="head"))
    assert frozen_part(model, "body", probe=torch.zeros(1, 2)) == [model]
    with pytest.raises(ModelError, match="Nothing runs up to 'body'"):
        frozen_part(nn.Linear(2, 2), "body", probe=torch.zeros(1, 2))
