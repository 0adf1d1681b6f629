"""CIM, contrastive input morphing (Taghanaki et al., ICML 2021): pictures are changed in training.

An interpretation: no code of it is public. A small encoder and decoder morph a picture, and a
triplet term keeps the morphed picture perceptually near a picture of its class and far from one of
another. With s the similarity, x' the morphed picture, p and n the next pictures of its class and
of another in the batch (in each process's share of it), the loss is

    cross entropy + penalty * mean of max(0, s(x', n) - s(x', p) + margin);

pictures without such a partner are left out of the mean. s is SSIM with a flat window of 7 pixels,
1 for equal pictures. It needs nothing but labels.

Decided here: the morpher adds to the picture and begins with adding nothing; the cross entropy is
the mean over plain and morphed pictures, in one batch; margin and penalty are 0.5 and 1. The paper
asks the classifier about morphed pictures. *after* is the classifier alone, an ordinary checkpoint
of its architecture, and is asked about plain ones, which is why it is trained on both.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from masktune.checkpoints.checkpoint import Checkpoint
from masktune.data.preprocess import Preprocess
from masktune.data.types import Batch
from masktune.models.logits import class_loss, logits_of
from masktune.training.by_recipe import beginning, best_of, finished, learn_by
from masktune.training.context import Context, Tuned
from masktune.training.fit import ERM
from masktune.training.rivals.further import fresh

PENALTY = 1.0
MARGIN = 0.5
WINDOW = 7
LUMINANCE, CONTRAST = 0.01**2, 0.03**2
"""SSIM's usual constants, for pixels in [0, 1]."""


class Morpher(nn.Module):
    """A small encoder and decoder that adds to a picture, (N, C, H, W) to the same."""

    def __init__(self, channels: int = 3, width: int = 16) -> None:
        """Draw fresh weights; the last layer begins at zero."""
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.decoder = nn.Conv2d(2 * width, width, 3, padding=1)
        self.last = nn.Conv2d(width, channels, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)  # type: ignore[arg-type]  # it has one

    def forward(self, images: Tensor) -> Tensor:
        """Return the morphed pictures."""
        maps = F.relu(self.decoder(self.encoder(images)))
        change: Tensor = self.last(F.interpolate(maps, size=images.shape[-2:]))
        return images + change


def similarity(one: Tensor, other: Tensor) -> Tensor:
    """Return the SSIM of pairs of pictures, (N, C, H, W) with pixels in [0, 1], as (N,)."""
    window = min(WINDOW, *one.shape[-2:])

    def mean(values: Tensor) -> Tensor:
        return F.avg_pool2d(values, window, stride=max(1, window // 2))

    a, b = mean(one), mean(other)
    spread, joint = mean(one * one) - a * a + mean(other * other) - b * b, mean(one * other) - a * b
    light = (2 * a * b + LUMINANCE) / (a * a + b * b + LUMINANCE)
    return (light * (2 * joint + CONTRAST) / (spread + CONTRAST)).mean(dim=(1, 2, 3))


def partners(labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each picture the next of its class and the next of another, in a circle.

    Three (N,): both positions, and whether there are such pictures.
    """
    count = len(labels)
    places = torch.arange(count, device=labels.device)
    gaps = (places[None] - places[:, None]) % count  # (N, N), 0 for the picture itself
    same = labels[:, None] == labels[None]
    near = gaps.masked_fill(~same | (gaps == 0), count).min(dim=1)
    far = gaps.masked_fill(same, count).min(dim=1)
    return near.indices, far.indices, (near.values < count) & (far.values < count)


class CIM(ERM):
    """Cross entropy of plain and morphed pictures, and the triplet term."""

    def __init__(
        self,
        morpher: Morpher,
        *,
        preprocess: Preprocess,
        penalty: float = PENALTY,
        smoothing: float = 0.0,
    ) -> None:
        """Take the morpher, and what pictures were normalised by."""
        super().__init__(smoothing=smoothing)
        self.morpher, self.preprocess, self.penalty = morpher, preprocess, penalty

    def loss(
        self, model: nn.Module, images: Tensor, batch: Batch, unlabelled: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of a batch and the logits of its plain pictures."""
        del unlabelled
        morphed = self.morpher(images).to(images)
        # At once: a second call would change batch norm's buffers under the gradients of the first.
        logits = logits_of(model(torch.cat([images, morphed]))).float()
        loss = class_loss(logits, batch.labels.repeat(2), smoothing=self.smoothing)
        return loss + self.penalty * self.triplets(images, morphed, batch.labels), logits[
            : len(images)
        ]

    def triplets(self, images: Tensor, morphed: Tensor, labels: Tensor) -> Tensor:
        """Return the mean triplet term of pictures that have both partners, a scalar."""
        near, far, known = partners(labels)
        plain, changed = self.pixels(images), self.pixels(morphed)
        found = similarity(changed, plain[far]) - similarity(changed, plain[near]) + MARGIN
        return (found.clamp(min=0) * known).sum() / known.sum().clamp(min=1)

    def pixels(self, images: Tensor) -> Tensor:
        """Return what was normalised as it was, [0, 1] where it was not morphed."""
        mean, std = (
            torch.tensor(each, device=images.device)[:, None, None]
            for each in (self.preprocess.mean, self.preprocess.std)
        )
        return images.float() * std + mean

    def modules(self) -> nn.ModuleDict:
        """Return the morpher."""
        return nn.ModuleDict({"morpher": self.morpher})


def tune(context: Context, before: Checkpoint) -> Tuned:
    """Train by the recipe on plain and morphed pictures."""
    config = context.config
    start = beginning(context, before)
    chosen = config.rival_settings.penalty
    objective = CIM(
        fresh(context, Morpher),
        preprocess=context.preprocess,
        penalty=PENALTY if chosen is None else chosen,
        smoothing=config.training.label_smoothing,
    )
    model = learn_by(context, start.model, objective, best=best_of(context))
    return finished(context, replace(start, model=model))
