"""What stands where pixels are hidden: black, or something that gives nothing of them away.

A fill never looks at a pixel that is hidden. What it draws by chance belongs to a picture, not to
a batch: training, heat, answers and exports all see the same picture, in one process or several.
PyTorch is imported where it is used: settings and pages name fills without it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from masktune.errors import DataError
from masktune.seeds import stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from masktune.data.preprocess import Keeper
    from masktune.data.types import Batch, Split

FillName = Literal["black", "mean", "blur", "noise", "another"]
"""What hidden pixels show; the first is the paper's. See ``FILLS``."""

REACH = 0.1
"""Deviation of the blur, a share of the picture's shorter side."""

FAINT = 1e-3
"""How much the mean colour counts in a blur; so it alone counts where nothing kept is near."""

Paint = Callable[["Tensor", "Tensor", "Batch", "Chance"], "Tensor"]
"""From pictures (N, 3, H, W) in [0, 1], their keep (N, H, W) bool or float, the batch they are and
chance to pictures of the same shape; a soft keep blends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """A way to fill what is hidden."""

    name: FillName
    title: str
    hint: str  # what stands there, as part of a sentence
    paint: Paint


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chance:
    """What fills draw: for every picture of a split its own, once for a round of a run.

    Attributes:
        split: the pictures.
        keep: what survives of them.
        seeds: (N,) int64, one for the noise of each picture.
        partners: (N,) int64, for each the position of a picture of another class.
    """

    split: "Split"
    keep: "Keeper"
    seeds: "Tensor"
    partners: "Tensor"

    def generators(self, batch: "Batch") -> "list[torch.Generator]":
        """Return a CPU generator for each picture, in the same state each time."""
        import torch

        seeds = self.seeds[batch.positions.cpu()].tolist()
        return [torch.Generator().manual_seed(seed) for seed in seeds]

    def others(self, batch: "Batch") -> "tuple[Tensor, Tensor]":
        """Return a picture of another class for each, (N, 3, H, W) in [0, 1], and their keep."""
        device = batch.positions.device
        found = self.partners[batch.positions.cpu()]
        images = self.split.images.batch(found.tolist()).to(device)
        return images.float() / 255, self.keep(found.to(device))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Filled:
    """A keeper that also says what stands where it hides; one without is filled black."""

    fill: Fill
    chance: Chance

    def __call__(self, positions: "Tensor") -> "Tensor":
        """Return the keep of pictures by position, like every ``Keeper``."""
        return self.chance.keep(positions)

    def paint(self, images: "Tensor", keep: "Tensor", batch: "Batch") -> "Tensor":
        """Return pictures in [0, 1] with their hidden pixels filled."""
        return self.fill.paint(images, keep, batch, self.chance)


def filled(keep: "Keeper", name: FillName, *, split: "Split", seed: int, stage: str) -> "Keeper":
    """Return a keeper of a split's pictures that fills what it hides.

    ``seed`` decides all that is drawn, ``stage`` names the stream it is drawn from.
    """
    if name == "black":
        return keep
    seeds = noise_seeds(len(split), seed=seed, stage=stage)
    # Looked for only where they are used: a set of one class has none.
    partners = (
        other_classes(split.labels, seed=seed, stage=stage) if name == "another" else seeds[:0]
    )
    chance = Chance(split=split, keep=keep, seeds=seeds, partners=partners)
    return Filled(fill=FILLS[name], chance=chance)


def noise_seeds(count: int, *, seed: int, stage: str) -> "Tensor":
    """Draw a seed for each picture, (N,) int64."""
    import torch

    return torch.randint(2**62, (count,), generator=stream(seed, f"noise/{stage}"))


def other_classes(labels: "Tensor", *, seed: int, stage: str) -> "Tensor":
    """Draw for each picture the position of one with another label, (N,) int64."""
    import torch

    drawn = torch.rand(len(labels), generator=stream(seed, f"partners/{stage}"), dtype=torch.double)
    partners = torch.empty_like(labels)
    for label in set(labels.tolist()):
        others = (labels != label).nonzero()[:, 0]
        if len(others) == 0:
            raise DataError(
                "All training pictures are of one class.",
                "Choose another fill: this one takes pictures of another class.",
            )
        of_label = labels == label
        partners[of_label] = others[(drawn[of_label] * len(others)).long()]
    return partners


def _black(images: "Tensor", keep: "Tensor", _batch: "Batch", _chance: Chance) -> "Tensor":
    from masktune.data.preprocess import hide

    return hide(images, keep)


def _mean(images: "Tensor", keep: "Tensor", _batch: "Batch", _chance: Chance) -> "Tensor":
    return _blend(images, keep, _mean_colour(images, keep))


def _blur(images: "Tensor", keep: "Tensor", _batch: "Batch", _chance: Chance) -> "Tensor":
    kept = keep[:, None].to(images)
    near, weight = (blurred(what) for what in (images * kept, kept))
    faint = FAINT * _mean_colour(images, keep)
    return _blend(images, keep, (near + faint) / (weight + FAINT))


def blurred(images: "Tensor") -> "Tensor":
    """Return pictures, (N, C, H, W) float, out of focus: each pixel a mean of those around it."""
    import torch

    def spread(side: int) -> "Tensor":
        places = torch.arange(side, device=images.device, dtype=images.dtype)
        deviation = REACH * min(images.shape[2:])
        weights = torch.exp(-((places[:, None] - places) ** 2) / (2 * deviation**2))
        return weights / weights.sum(dim=1, keepdim=True)

    return spread(images.shape[2]) @ images @ spread(images.shape[3]).T


def _noise(images: "Tensor", keep: "Tensor", batch: "Batch", chance: Chance) -> "Tensor":
    import torch

    shape = images.shape[1:]
    drawn = [torch.rand(shape, generator=one) for one in chance.generators(batch)]
    return _blend(images, keep, torch.stack(drawn).to(images))


def _another(images: "Tensor", keep: "Tensor", batch: "Batch", chance: Chance) -> "Tensor":
    """Fill with what is hidden in the other picture; where that is kept, with the mean of the rest.

    With all but the hot part hidden this is the composition of Decompose-and-Compose (Noohdani et
    al. 2024), whose mean colour is the batch's; theirs adds such pictures to the plain ones. A
    picture in which nothing is hidden lends all of itself.
    """
    others, kept = chance.others(batch)
    hidden = 1 - kept.to(images)
    hidden = hidden.masked_fill((hidden == 0).all(dim=(1, 2))[:, None, None], 1)
    return _blend(images, keep, _blend(others, hidden, _mean_colour(others, hidden)))


def _mean_colour(images: "Tensor", keep: "Tensor") -> "Tensor":
    """Return the mean colour of what is kept, (N, 3, 1, 1); black where nothing is."""
    kept = keep[:, None].to(images)
    total = kept.sum(dim=(2, 3), keepdim=True)
    return (images * kept).sum(dim=(2, 3), keepdim=True) / total.clamp(min=FAINT)


def _blend(images: "Tensor", keep: "Tensor", instead: "Tensor") -> "Tensor":
    import torch

    kept = keep[:, None]
    if kept.dtype == torch.bool:
        return torch.where(kept, images, instead)
    return images * kept + instead * (1 - kept)


_EVERY = (
    Fill(name="black", title="Black", hint="black, as in the paper", paint=_black),
    Fill(
        name="mean",
        title="Mean colour",
        hint="the mean colour of what is left of the picture",
        paint=_mean,
    ),
    Fill(
        name="blur",
        title="Blur",
        hint="a blur of what is around, without anything of what is hidden",
        paint=_blur,
    ),
    Fill(name="noise", title="Noise", hint="a random colour for every pixel", paint=_noise),
    Fill(
        name="another",
        title="Another picture",
        hint="the same place in a picture of another class, drawn by chance, without what is kept "
        "of that one",
        paint=_another,
    ),
)
FILLS: dict[FillName, Fill] = {fill.name: fill for fill in _EVERY}
"""Every fill by name."""
