import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from masktune.heat.feature_map import Layout, attends, layout_of


class Attention(nn.Module):
    pass


class SwinTransformer(nn.Module):
    pass


class WithClassToken(nn.Module):
    def __init__(self):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, 4))


class WithPrefix(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.num_prefix_tokens = tokens


PLAIN = nn.Identity()


def seen(shape, size, model=PLAIN):
    return layout_of(torch.zeros(shape, device="meta"), model=model, count=shape[0], size=size)


@pytest.mark.parametrize(
    ("shape", "size", "order", "grid", "prefix"),
    [
        ((2, 512, 7, 7), (224, 224), "first", (7, 7), 0),
        ((2, 7, 7, 512), (224, 224), "last", (7, 7), 0),
        ((2, 512, 7, 14), (224, 448), "first", (7, 14), 0),
        ((2, 7, 14, 512), (224, 448), "last", (7, 14), 0),
        ((2, 14, 7, 512), (448, 224), "last", (14, 7), 0),
        ((2, 8, 8, 8), (32, 32), "first", (8, 8), 0),  # either; maps are the rule
        ((2, 512, 7, 7), (224, 448), "first", (7, 7), 0),  # pooled to a fixed size
        ((2, 3, 9, 20), (20, 31), "first", (9, 20), 0),  # unpadded convolutions
        ((2, 16, 5, 7), (38, 50), "first", (5, 7), 0),
        ((2, 1, 1, 64), (32, 32), "last", (1, 1), 0),
        ((2, 64, 1, 1), (32, 32), "first", (1, 1), 0),
        ((2, 196, 768), (224, 224), "tokens", (14, 14), 0),
        ((2, 197, 768), (224, 224), "tokens", (14, 14), 1),
        ((2, 201, 768), (224, 224), "tokens", (14, 14), 5),
        ((2, 99, 768), (224, 448), "tokens", (7, 14), 1),
        ((2, 99, 768), (448, 224), "tokens", (14, 7), 1),
        ((2, 3 * 4, 8), (50, 64), "tokens", (3, 4), 0),  # 16 pixels a patch, the rest cut off
    ],
)
def test_places_are_recognised_by_the_shape(shape, size, order, grid, prefix):
    layout = seen(shape, size)

    assert (layout.order, layout.grid, layout.prefix) == (order, grid, prefix)
    assert layout.places == grid[0] * grid[1]


@pytest.mark.parametrize(
    "shape", [(2, 10), (2, 3, 4, 5, 6), (2, 1, 768), (2, 2, 768), (2, 203, 768)]
)
def test_other_shapes_have_no_places(shape):
    assert seen(shape, (224, 224)) is None


@pytest.mark.parametrize("output", [None, (torch.zeros(2, 3, 4, 4),), "maps"])
def test_what_is_no_tensor_has_no_places(output):
    assert layout_of(output, model=PLAIN, count=2, size=(8, 8)) is None


def test_windows_and_heads_of_a_network_that_attends_are_no_maps():
    # Twelve heads of 197 tokens; four windows of 49 places; six windows and three pictures.
    model = nn.Sequential(Attention())

    assert seen((2, 12, 197, 64), (224, 224), model) is None
    assert seen((2, 4, 49, 64), (224, 224), model) is None
    assert layout_of(torch.zeros(6, 49, 8), model=model, count=3, size=(56, 56)) is None
    assert layout_of(torch.zeros(6, 7, 7, 8), model=model, count=3, size=(56, 56)) is None
    assert seen((2, 64, 7, 7), (224, 224), model).order == "first"


def test_as_many_channels_as_rows_are_last_in_a_swin():
    assert seen((2, 96, 96, 96), (384, 384), nn.Sequential(SwinTransformer())).order == "last"
    assert seen((2, 96, 96, 96), (384, 384)).order == "first"


def test_a_model_that_knows_its_tokens_is_believed():
    # 5 tokens without a place and 4 with, not 9 with; 1 and 16, as torchvision has it.
    assert seen((2, 9, 8), (32, 32)).grid == (3, 3)
    assert seen((2, 9, 8), (32, 32), nn.Sequential(WithPrefix(5))) == Layout(
        order="tokens", grid=(2, 2), prefix=5
    )
    assert seen((2, 17, 8), (32, 32), WithClassToken()).prefix == 1
    assert seen((2, 16, 8), (32, 32), WithClassToken()).prefix == 0


def test_a_grid_of_the_very_aspect_is_preferred():
    # 10 tokens could be 2 x 5 of a picture with a strip cut off; 8 of them are 2 x 4 exactly.
    assert seen((2, 10, 8), (32, 64)) == Layout(order="tokens", grid=(2, 4), prefix=2)


def test_attention_is_known_by_its_name():
    assert attends(nn.Sequential(nn.MultiheadAttention(4, 1)))
    assert attends(nn.Sequential(nn.Sequential(Attention())))
    assert not attends(nn.Sequential(nn.Conv2d(3, 4, 3)))


grids = st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda grid: grid != (1, 1))


@given(grid=grids, prefix=st.integers(0, 5), channels=st.integers(1, 5))
def test_every_layout_gives_the_same_maps(grid, prefix, channels):
    maps = torch.arange(2.0 * channels * grid[0] * grid[1]).view(2, channels, *grid)
    tokens = torch.cat([torch.full((2, prefix, channels), -1.0), maps.flatten(2).mT], dim=1)

    first = Layout(order="first", grid=grid)
    last = Layout(order="last", grid=grid)
    laid = Layout(order="tokens", grid=grid, prefix=prefix)

    assert first.maps(maps) is maps
    assert torch.equal(last.maps(maps.permute(0, 2, 3, 1)), maps)
    assert torch.equal(laid.maps(tokens), maps)


@given(grid=grids, patch=st.integers(7, 16), prefix=st.integers(0, 5))
def test_tokens_of_a_model_that_knows_its_prefix_find_their_grid(grid, patch, prefix):
    size = (grid[0] * patch, grid[1] * patch)
    tokens = grid[0] * grid[1] + prefix

    layout = seen((2, tokens, 3), size, WithPrefix(prefix))

    assert layout == Layout(order="tokens", grid=grid, prefix=prefix)
