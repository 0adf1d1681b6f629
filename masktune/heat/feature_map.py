"""Feature maps in whatever order a network keeps them: maps, channels last, or tokens."""

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

MOST_PREFIX_TOKENS = 5
"""A class token, or one with four registers: more than these do not precede the places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the places of a picture are in a layer's output."""

    order: Literal["first", "last", "tokens"]  # (N, C, h, w), (N, h, w, C) or (N, T, C)
    grid: tuple[int, int]  # (h, w)
    prefix: int = 0  # tokens without a place (class token, registers) before the others

    @property
    def places(self) -> int:
        """Count the places, h * w."""
        return self.grid[0] * self.grid[1]

    def maps(self, output: Tensor) -> Tensor:
        """Give an output of this layout, or a gradient of one, as (N, C, h, w)."""
        if self.order == "first":
            return output
        if self.order == "last":
            return output.permute(0, 3, 1, 2)
        places = output[:, self.prefix :].transpose(1, 2)  # (N, C, h * w)
        return places.reshape(*places.shape[:2], *self.grid)


def layout_of(
    output: object, *, model: nn.Module, count: int, size: tuple[int, int]
) -> Layout | None:
    """Recognise the layout of a layer's output by its shape; None when it has no places.

    Four dimensions are (N, C, h, w) unless only (N, h, w, C) has the aspect of the pictures. When
    both have it (as many channels as rows), Swin's are channels last. Where a network attends, a
    tensor of four dimensions may also be heads or windows: there one of the two must fit. The
    model may know how many tokens have no place; ``count`` is N, ``size`` (H, W) of the pictures.
    """
    if not isinstance(output, Tensor):
        return None
    if output.ndim == 3 and len(output) == count:
        return _of_tokens(output.shape[1], model, size)
    if output.ndim != 4:
        return None
    _, a, b, c = output.shape
    first, last = _fits((b, c), size), len(output) == count and _fits((a, b), size)
    if last and (not first or any("Swin" in type(part).__name__ for part in model.modules())):
        return Layout(order="last", grid=(a, b))
    if first or not attends(model):
        return Layout(order="first", grid=(b, c))
    return None


def attends(model: nn.Module) -> bool:
    """Tell whether a network has attention layers, by the names of their types."""
    return any(is_attention(module) for module in model.modules())


def is_attention(module: nn.Module) -> bool:
    """Tell whether a layer is an attention layer, by the name of its type."""
    return "Attention" in type(module).__name__


def _fits(grid: tuple[int, int], size: tuple[int, int]) -> bool:
    """Tell whether a grid has the aspect of the pictures, give or take a cell cut off."""
    if size[0] == size[1]:
        return grid[0] == grid[1]
    return abs(grid[0] * size[1] - grid[1] * size[0]) <= max(size)


def _of_tokens(tokens: int, model: nn.Module, size: tuple[int, int]) -> Layout | None:
    known = _prefix_tokens(model)
    prefixes = [*([] if known is None else [known]), *range(MOST_PREFIX_TOKENS + 1)]
    found = [(prefix, grid) for prefix in prefixes if (grid := _grid(tokens - prefix, size))]
    # A grid of exactly the picture's aspect is likelier than one that lost a cell at the border.
    exact = [(p, (h, w)) for p, (h, w) in found if h * size[1] == w * size[0]]
    for prefix, grid in [*exact, *found]:
        return Layout(order="tokens", grid=grid, prefix=prefix)
    return None


def _prefix_tokens(model: nn.Module) -> int | None:
    """Ask a network how many tokens have no place: timm's say it, torchvision's have one."""
    for module in model.modules():
        number = getattr(module, "num_prefix_tokens", None)
        if isinstance(number, int):
            return number
        if isinstance(getattr(module, "class_token", None), Tensor):
            return 1
    return None


def _grid(places: int, size: tuple[int, int]) -> tuple[int, int] | None:
    """Lay out a number of places in the aspect of the pictures, if that can be."""
    if places < 2:
        return None
    rows = math.sqrt(places * size[0] / size[1])
    grids = [
        (h, places // h)
        for h in range(max(1, math.floor(rows) - 1), math.ceil(rows) + 2)
        if places % h == 0 and _fits((h, places // h), size)
    ]
    return min(grids, key=lambda grid: abs(grid[0] - rows), default=None)
