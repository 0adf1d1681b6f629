"""One picture: what a model says about it, where it looks, and what would change its mind."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from masktune.config import Statistics
from masktune.data.fills import FillName, filled
from masktune.data.preprocess import Preprocess
from masktune.data.types import Split, in_memory
from masktune.heat.explain import explain
from masktune.heat.keep import keep_all_but_top, keep_masks
from masktune.models.predict import predict

TRIED = 32
"""Shares of a picture that are hidden at once when what flips the answer is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureAnswer:
    """What a model says about one picture.

    Attributes:
        probabilities: (K,) float64, of every class.
        heat: (H, W) float64 in [0, 1], where it looks; None where no layer could be asked.
    """

    probabilities: npt.NDArray[np.float64]
    heat: npt.NDArray[np.float64] | None

    @property
    def answer(self) -> int:
        """The number of the most probable class."""
        return int(self.probabilities.argmax())

    @property
    def confidence(self) -> float:
        """Its probability, in [0, 1]."""
        return float(self.probabilities.max())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flip:
    """The fewest hottest pixels found whose hiding changes an answer.

    Attributes:
        share: of the picture's pixels, in (0, 1].
        image: (3, H, W) uint8, the picture without them.
        probabilities: (K,) float64, what the model says about that.
    """

    share: float
    image: Tensor
    probabilities: npt.NDArray[np.float64]


def answer_picture(
    model: nn.Module,
    image: Tensor,
    *,
    layer: str | None,
    method: str = "xgradcam",
    preprocess: Preprocess | None = None,
) -> PictureAnswer:
    """Ask a model about one picture: one pass for the answer, one for the heat.

    Args:
        model: see ``predict``; it is not changed.
        image: (3, H, W) uint8 in the frame the model sees.
        layer: name of the module whose feature map is read; None asks for no heat.
        method: one of ``masktune.heat.explainers.METHODS``.
        preprocess: from bytes to the network's input.
    """
    picture = _split(image[None])
    said = predict(model, picture, preprocess=preprocess)
    heat = None
    if layer is not None:
        store = explain(model, picture, layer=layer, method=method, preprocess=preprocess)
        heat = store.fine(torch.tensor([0]))[0].numpy()
    return PictureAnswer(probabilities=said.probabilities[0], heat=heat)


def hide_hot(
    image: Tensor,
    heat: npt.NDArray[np.float64],
    *,
    k: float,
    statistics: Statistics = "positive",
    fill: FillName = "black",
) -> tuple[Tensor, float]:
    """Hide what is hotter than k allows, as ``keep_masks`` says.

    Args:
        image: (3, H, W) uint8 in the frame the model sees.
        heat: (H, W), where a model looks in this very picture.
        k: the threshold, in standard deviations above the mean.
        statistics: which heat both are taken over.
        fill: what stands for hidden pixels, any that needs no other picture.

    Returns:
        The picture without it, (3, H, W) uint8, and the share of pixels that are hidden.
    """
    keep = keep_masks(torch.from_numpy(heat)[None], k, statistics=statistics)
    return _hidden(image, keep, fill)[0], 1 - float(keep.double().mean())


def smallest_flip(
    model: nn.Module,
    image: Tensor,
    heat: npt.NDArray[np.float64],
    *,
    fill: FillName = "black",
    preprocess: Preprocess | None = None,
) -> Flip | None:
    """Find the smallest share of hottest pixels whose hiding changes the answer.

    ``TRIED`` shares are tried at once, evenly spaced up to all pixels that have heat; then as many
    between the first that changes the answer and the one before it, down to single pixels. So a
    change that is gone again before the next share tried stays unseen.

    Args:
        model: see ``predict``; it is not changed.
        image: (3, H, W) uint8 in the frame the model sees.
        heat: (H, W), where the model looks in this very picture.
        fill: what stands for hidden pixels, any that needs no other picture.
        preprocess: from bytes to the network's input.

    Returns:
        None where hiding all that has heat changes nothing.
    """
    fine = torch.from_numpy(heat)
    answer = predict(model, _split(image[None]), preprocess=preprocess).answers()[0]
    low, high, found = 0, int((fine > 0).sum()), None
    # Not found yet, even one pixel is tried; found, the two ends must be neighbours.
    while high - low > (0 if found is None else 1):
        spaced = np.unique(np.linspace(low, high, TRIED + 1).round())
        counts = torch.from_numpy(spaced[spaced > low])
        keeps = keep_all_but_top(fine.expand(len(counts), -1, -1), counts / fine.numel())
        tried = _hidden(image, keeps, fill)
        said = predict(model, _split(tried), preprocess=preprocess)
        changed = np.flatnonzero(said.answers() != answer)
        if len(changed) == 0:
            break
        first = int(changed[0])
        low, high = (int(counts[first - 1]) if first else low), int(counts[first])
        found = Flip(
            share=high / fine.numel(), image=tried[first], probabilities=said.probabilities[first]
        )
    return found


def _hidden(image: Tensor, keeps: Tensor, fill: FillName) -> Tensor:
    """Return a picture hidden in several ways, (N, H, W) bool, as (N, 3, H, W) uint8.

    Rounded to bytes: what the model is asked about is what can be shown and saved.
    """
    split = _split(image.expand(len(keeps), -1, -1, -1))
    keep = filled(
        lambda rows: keeps[rows.cpu()].to(rows.device), fill, split=split, seed=0, stage="picture"
    )
    batch = split.__getitems__(range(len(keeps)))
    return (Preprocess().of(batch, keep) * 255).round().to(torch.uint8)


def _split(images: Tensor) -> Split:
    """Return pictures, (N, 3, H, W) uint8, as a split; its labels say nothing."""
    return in_memory("picture", images, torch.zeros(len(images), dtype=torch.int64))
