"""Pictures changed by chance while a model learns: each of a batch in its own way, on its device.

What moves pixels becomes one map of coordinates and is sampled once, however many moves there are.
Chance is drawn on the CPU, so that a seed gives the same pictures on every device. PyTorch is
imported where it is used: settings name augmentations without it.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from masktune.errors import ConfigError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Augment = Callable[["Tensor", "torch.Generator"], "Tensor"]
"""Changes pictures (N, 3, H, W) in [0, 1] by chance, before they are normalised."""

NONE, RECIPE = "none", "recipe"
"""What can be said in place of names: nothing, and what the recipe of a run says."""

ANGLE, SHIFT, PADDING = 15.0, 0.1, 4
SCALE, RATIO = (0.7, 1.0), (3 / 4, 4 / 3)
JITTER = 0.1
"""The authors' values: degrees, share of a side, pixels; share of the area, width to height."""

_GREY = (0.299, 0.587, 0.114)  # ITU-R 601, as Pillow and torchvision have it
# Krizhevsky et al. 2012: principal directions of ImageNet's colours, each by how far they spread.
_LIGHT = (
    (-0.5675 * 0.2175, 0.7192 * 0.0188, 0.4009 * 0.0045),
    (-0.5808 * 0.2175, -0.0045 * 0.0188, -0.8140 * 0.0045),
    (-0.5836 * 0.2175, -0.6948 * 0.0188, 0.4203 * 0.0045),
)


def augmentation(names: str) -> Augment | None:
    """Return what changes pictures by some augmentations; None for "none".

    Moves come first, in the order of the names, then colours. What comes in from outside a picture
    is black, like what is hidden; what is hidden is as even afterwards as before.

    >>> augmentation("none") is None
    True

    Args:
        names: of MOVES and COLOURS, with commas between.

    Raises:
        ConfigError: a name that there is not.
    """
    chosen = named(names)
    if not chosen:
        return None
    moves = [MOVES[name] for name in chosen if name in MOVES]
    colours = [COLOURS[name] for name in chosen if name in COLOURS]

    def augment(images: "Tensor", chance: "torch.Generator") -> "Tensor":
        if moves:
            images = _moved(images, moves, chance)
        for change in colours:
            images = change(images, chance)
        return images.clamp(0, 1)

    return augment


def named(names: str) -> tuple[str, ...]:
    """Return the augmentations that a text names; none for "none".

    >>> named("flip, rotate15")
    ('flip', 'rotate15')
    """
    if names == NONE:
        return ()
    chosen = tuple(name.strip() for name in names.split(","))
    for name in chosen:
        if name not in (*MOVES, *COLOURS):
            raise ConfigError(
                f"There is no augmentation '{name}'.",
                f"Choose {NONE}, {RECIPE}, or some of {', '.join((*MOVES, *COLOURS))} with commas "
                "between.",
            )
    return chosen


Move = Callable[[int, tuple[int, int], "torch.Generator"], "Tensor"]
"""From pictures' count, their (H, W) and chance to maps (N, 3, 3): where each output pixel comes
from, in coordinates from -1 to 1."""


def _moved(images: "Tensor", moves: Sequence[Move], chance: "torch.Generator") -> "Tensor":
    from torch.nn import functional as F

    count, _, height, width = images.shape
    whole = moves[0](count, (height, width), chance)
    for move in moves[1:]:
        whole = whole @ move(count, (height, width), chance)
    grid = F.affine_grid(whole[:, :2].to(images), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def _uniform(count: int, low: float, high: float, chance: "torch.Generator") -> "Tensor":
    import torch

    return low + (high - low) * torch.rand(count, generator=chance)


def _maps(count: int, **entries: "Tensor") -> "Tensor":
    """Return the identity for every picture with some entries replaced, such as xy, (N, 3, 3)."""
    import torch

    made = torch.eye(3).repeat(count, 1, 1)
    for entry, value in entries.items():
        made[:, "xy".index(entry[0]), "xy1".index(entry[1])] = value
    return made


def _flip(count: int, _size: tuple[int, int], chance: "torch.Generator") -> "Tensor":
    return _maps(count, xx=1.0 - 2.0 * (_uniform(count, 0, 1, chance) < 0.5))


def _rotate(count: int, size: tuple[int, int], chance: "torch.Generator") -> "Tensor":
    angle, aspect = math.radians(ANGLE) * _uniform(count, -1, 1, chance), size[1] / size[0]
    sine, cosine = angle.sin(), angle.cos()
    return _maps(count, xx=cosine, xy=-sine / aspect, yx=sine * aspect, yy=cosine)


def _shift(count: int, _size: tuple[int, int], chance: "torch.Generator") -> "Tensor":
    x1, y1 = (_uniform(count, -2 * SHIFT, 2 * SHIFT, chance) for _ in range(2))
    return _maps(count, x1=x1, y1=y1)


def _crop(count: int, size: tuple[int, int], chance: "torch.Generator") -> "Tensor":
    """Cut out of a picture with a black rim, whole pixels from where it was."""
    import torch

    y, x = (
        torch.randint(-PADDING, PADDING + 1, (count,), generator=chance) * 2 / side for side in size
    )
    return _maps(count, x1=x, y1=y)


def _resized_crop(count: int, size: tuple[int, int], chance: "torch.Generator") -> "Tensor":
    """Stretch a part to the whole; one that would not fit is as wide or high as the picture."""
    area = _uniform(count, *SCALE, chance)
    low, high = (math.log(ratio * size[0] / size[1]) for ratio in RATIO)
    stretch = _uniform(count, low, high, chance).exp()  # in shares of width and height
    wide, tall = (area * stretch).sqrt().clamp(max=1), (area / stretch).sqrt().clamp(max=1)
    x1, y1 = ((1 - side) * _uniform(count, -1, 1, chance) for side in (wide, tall))
    return _maps(count, xx=wide, yy=tall, x1=x1, y1=y1)


def _jitter(images: "Tensor", chance: "torch.Generator") -> "Tensor":
    """Change brightness, contrast and saturation, in this order."""

    def factors() -> "Tensor":
        drawn = _uniform(len(images), 1 - JITTER, 1 + JITTER, chance)
        return drawn[:, None, None, None].to(images)

    images = (images * factors()).clamp(0, 1)
    middle = _grey(images).mean(dim=(1, 2, 3), keepdim=True)
    images = (middle + factors() * (images - middle)).clamp(0, 1)
    grey = _grey(images)
    return grey + factors() * (images - grey)


def _grey(images: "Tensor") -> "Tensor":
    """Return the brightness of every pixel, (N, 1, H, W)."""
    return (images * images.new_tensor(_GREY)[:, None, None]).sum(dim=1, keepdim=True)


def _lighting(images: "Tensor", chance: "torch.Generator") -> "Tensor":
    """Add a colour along ImageNet's principal directions."""
    import torch

    strength = 0.1 * torch.randn(len(images), 3, generator=chance)
    return images + (strength @ torch.tensor(_LIGHT).T)[:, :, None, None].to(images)


MOVES: dict[str, Move] = {
    "flip": _flip,
    "rotate15": _rotate,
    "shift10": _shift,
    "crop4": _crop,
    "resized-crop": _resized_crop,
}
COLOURS: dict[str, Augment] = {"jitter": _jitter, "lighting": _lighting}
