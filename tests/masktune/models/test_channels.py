import copy

import pytest
import torch
from PIL import Image
from torch import nn

from masktune.errors import ModelError
from masktune.models.build import build
from masktune.models.channels import one_channel, takes_grey


def seen(images):
    """What a model of one channel is given."""
    return takes_grey(nn.Identity(), channels=1)(images)


def test_red_green_and_blue_become_their_brightness():
    # 0.299 * 1 + 0.587 * 0.5 + 0.114 * 0.25 = 0.299 + 0.2935 + 0.0285 = 0.621
    pixel = torch.tensor([1.0, 0.5, 0.25]).view(1, 3, 1, 1)

    assert seen(pixel).shape == (1, 1, 1, 1)
    assert seen(pixel).item() == pytest.approx(0.621)


def test_the_brightness_is_pillows():
    pixels = torch.randint(0, 256, (3, 8, 8), generator=torch.Generator().manual_seed(0))
    picture = Image.fromarray(pixels.permute(1, 2, 0).byte().numpy(), "RGB")

    luma = seen(pixels[None].float())[0, 0]

    assert luma.flatten().tolist() == pytest.approx(list(picture.convert("L").tobytes()), abs=0.51)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_grey_picture_passes_as_it_is(dtype):
    images = torch.rand(2, 1, 4, 4, dtype=dtype)

    assert seen(images) is images
    assert seen(images.expand(-1, 3, -1, -1)).dtype == dtype


def test_a_model_of_three_channels_stays_as_it_is():
    model = takes_grey(nn.Identity(), channels=3)

    assert not model._forward_pre_hooks


@pytest.mark.parametrize("arch", ["resnet18", "squeezenet1_1"])
def test_a_grey_network_answers_grey_pictures_as_its_colour_twin_does(arch):
    grey, colour = build(arch, 3, channels=1).eval(), build(arch, 3).eval()
    images = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(0))
    as_rgb = images.expand(-1, 3, -1, -1)

    with torch.no_grad():
        expected = colour(as_rgb)
        assert expected.abs().amax() > 0.01
        assert grey(images).numpy() == pytest.approx(expected.numpy(), abs=1e-4)
        assert grey(as_rgb).numpy() == pytest.approx(expected.numpy(), abs=1e-4)
    assert list(grey.state_dict()) == list(colour.state_dict())


@pytest.mark.parametrize("arch", ["small-cnn", "resnet20"])
def test_own_grey_networks_take_coloured_pictures(arch):
    model = copy.deepcopy(build(arch, 2, channels=1)).eval()
    images = torch.rand(2, 3, 32, 32)
    luma = (images * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)

    with torch.no_grad():
        assert torch.equal(model(images), model(luma))


def test_everything_of_the_first_convolution_but_its_colours_stays():
    old = nn.Conv2d(3, 4, (3, 5), stride=2, padding=(1, 2), dilation=2, padding_mode="reflect")
    model = nn.Sequential(nn.Sequential(old), nn.Conv2d(4, 3, 1), nn.Conv2d(3, 2, 1)).double()
    images = torch.rand(1, 1, 16, 16, dtype=torch.float64)
    expected = model(images.expand(-1, 3, -1, -1))

    one_channel(model)

    assert [m.in_channels for m in model.modules() if isinstance(m, nn.Conv2d)] == [1, 4, 3]
    assert model(images).detach().numpy() == pytest.approx(expected.detach().numpy())
    assert model[0][0].bias is old.bias


def test_a_network_without_a_convolution_over_colours_is_refused():
    with pytest.raises(ModelError, match="no convolution over three colour channels"):
        one_channel(nn.Sequential(nn.Conv2d(4, 2, 1), nn.Flatten(), nn.Linear(3, 2)))
