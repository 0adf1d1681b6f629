import numpy as np
import pytest
import torch
from torch import nn

from masktune.compute import accelerator
from masktune.data.batches import by_position, in_order
from masktune.errors import ModelError
from masktune.models.predict import predict


class Brightness(nn.Module):
    """Answers by the mean of the picture: logits (0, mean)."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, images):
        mean = images.mean(dim=(1, 2, 3)) * self.scale
        return torch.stack([torch.zeros_like(mean), mean], dim=1)


def test_probabilities_are_the_softmax_in_the_order_of_the_split(toy):
    means = (toy.validation.images.pixels.float() / 255).mean(dim=(1, 2, 3))

    predictions = predict(Brightness(), toy.validation)

    assert predictions.probabilities[:, 1] == pytest.approx(torch.sigmoid(means).numpy(), abs=1e-6)
    assert predictions.labels.tolist() == toy.validation.labels.tolist()


def test_very_sure_answers_still_differ(toy):
    # Logit gaps of 18 and more are all exactly 1.0 in single precision.
    model = Brightness()
    model.scale.data.fill_(80.0)

    sure = predict(model, toy.validation).probabilities[:, 1]

    assert len(np.unique(sure[sure > 0.999])) > 1
    assert sure.dtype == np.float64


def test_the_model_keeps_its_mode(toy):
    model = Brightness().train()

    predict(model, toy.validation)

    assert model.training


def test_hidden_pixels_are_hidden_from_the_model(toy):
    def nothing(positions):
        return torch.zeros(len(positions), 28, 28, dtype=torch.bool)

    predictions = predict(Brightness(), toy.validation, keep=nothing)

    assert predictions.probabilities == pytest.approx(0.5)


def test_answers_that_are_not_numbers_are_explained(toy):
    model = Brightness()
    model.scale.data.fill_(float("nan"))

    with pytest.raises(ModelError, match="not numbers on 'validation'"):
        predict(model, toy.validation)


def test_rows_gathered_out_of_order_and_twice_land_where_they_belong():
    rows = [torch.tensor([[2.0], [0.0]]), torch.tensor([[1.0], [2.0]])]
    positions = [torch.tensor([2, 0]), torch.tensor([1, 2])]

    assert by_position(rows, positions, 3).tolist() == [[0.0], [1.0], [2.0]]


def test_a_split_is_read_once_first_to_last(toy):
    seen, told = [], []

    for batch in in_order(toy.train, compute=accelerator("cpu"), done=lambda *n: told.append(n)):
        seen += batch.positions.tolist()

    assert seen == list(range(96))
    assert told[-1][0] == told[-1][1]
