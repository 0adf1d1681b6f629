import pytest
from torch import nn

from masktune.models.eval_mode import evaluating


@pytest.fixture
def model():
    """A network in training mode with a frozen batch norm inside a block."""
    network = nn.Sequential(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)), nn.Dropout())
    network.train()
    network[0][1].eval()
    return network


def modes(model):
    return [module.training for module in model.modules()]


def test_every_submodule_evaluates_inside_and_has_its_own_mode_afterwards(model):
    before = modes(model)

    with evaluating(model):
        inside = modes(model)

    assert inside == [False] * 5
    assert modes(model) == before == [True, True, True, False, True]


def test_modes_come_back_after_a_failure(model):
    before = modes(model)

    with pytest.raises(ZeroDivisionError), evaluating(model):
        raise ZeroDivisionError

    assert modes(model) == before


def test_a_model_that_already_evaluates_stays_so(model):
    model.eval()

    with evaluating(model):
        pass

    assert modes(model) == [False] * 5


def test_borrowing_twice_gives_back_once_each(model):
    before = modes(model)

    with evaluating(model):
        with evaluating(model):
            pass
        assert modes(model) == [False] * 5

    assert modes(model) == before
