"""Cows and camels: the paper's running example, drawn, with one of two clues.

Each picture is drawn from a seed of its own, so that it does not depend on how many are drawn.
Drawing all takes seconds, so they are kept.
"""

import contextlib
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from masktune.data.card import DataSettings
from masktune.data.kept import tidy, used
from masktune.data.regions import TensorRegions
from masktune.data.types import Arrays, Split, in_memory
from masktune.datasets.cows.animals import Stencil
from masktune.datasets.cows.drawing import INSET, SIDE, STAMP, draw_picture
from masktune.datasets.cows.scenery import Canvas
from masktune.files import home, replace_file
from masktune.progress import Watcher
from masktune.seeds import stream, stream_seed

Clue = Literal["background", "stamp"]

CORRELATED = 0.95
COUNTS = (1200, 200, 400)  # training, validation, test
MOST_KEPT = 8  # drawn datasets, 50 MB each

KINDS: tuple[Literal["cow"], Literal["camel"]] = ("cow", "camel")
PLACES: tuple[Literal["grass"], Literal["desert"]] = ("grass", "desert")


@dataclass(frozen=True, slots=True)
class Part:
    """What the pictures of a part show, before they are drawn."""

    clue: Clue
    name: str  # "train", "validation" or "balanced"
    labels: Tensor  # (N,) int64
    attributes: Tensor  # (N,) int64
    seed: int  # of the dataset

    def draw(self, index: int) -> tuple[Canvas, Stencil]:
        """Draw a picture; see ``drawing.draw_picture`` for it and the animal's outline."""
        own = stream_seed(self.seed, f"cows/{self.clue}/{self.name}/{index}")
        kind, attribute = KINDS[int(self.labels[index])], int(self.attributes[index])
        if self.clue == "background":
            return draw_picture(kind, PLACES[attribute], seed=own)
        # A fair coin of the picture's own: the background says nothing about the class.
        place = PLACES[own % 2]
        return draw_picture(kind, place, seed=own, strip=True, stamped=attribute == 1)

    def stamps(self) -> Tensor:
        """Return where the stamp is, (N, 96, 96) bool; nowhere in pictures without it."""
        where = torch.zeros(len(self.attributes), SIDE, SIDE, dtype=torch.bool)
        where[self.attributes == 1, INSET : INSET + STAMP, INSET : INSET + STAMP] = True
        return where


def outline(stencil: Stencil) -> npt.NDArray[np.bool_]:
    """Return where an animal is in its picture, (96, 96) bool: what a model should look at."""
    share = cv2.resize(stencil, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    where: npt.NDArray[np.bool_] = share > 127
    return where


def on_backgrounds(_root: None, settings: DataSettings, _watcher: Watcher) -> Arrays:
    """Draw the animals before a background that tells them apart."""
    return cows(clue="background", seed=settings.seed)


def stamped(_root: None, settings: DataSettings, _watcher: Watcher) -> Arrays:
    """Draw the animals before any background, with a stamp that tells them apart."""
    return cows(clue="stamp", seed=settings.seed)


def cows(*, clue: Clue, seed: int, counts: tuple[int, int, int] = COUNTS) -> Arrays:
    """Draw a dataset, or take it up where it was drawn before.

    The clue is the background (grass or desert, all over the picture) or the stamp (one small
    place; the background then says nothing). ``counts`` are pictures for training, validation and
    test; multiples of 4 give equal classes.
    """
    parts = plan(clue=clue, seed=seed, counts=counts)
    sizes = [len(part.labels) for part in parts]
    drawn = zip(*(torch.from_numpy(a).split_with_sizes(sizes) for a in _drawn(parts)), strict=True)
    train, validation, test = (
        _split(part, pixels, animals) for part, (pixels, animals) in zip(parts, drawn, strict=True)
    )
    return Arrays(train=train, validation=validation, tests={"balanced": test})


def _split(part: Part, pixels: Tensor, animals: Tensor) -> Split:
    split = in_memory(part.name, pixels, part.labels, part.attributes)
    thing = TensorRegions(animals)
    background = part.clue == "background"
    clue = replace(thing, outside=True) if background else TensorRegions(part.stamps())
    return replace(split, clue=clue, thing=thing)


def plan(*, clue: Clue, seed: int, counts: tuple[int, int, int] = COUNTS) -> tuple[Part, ...]:
    """Return what the pictures of training, validation and test show."""
    parts = []
    names, shares = ("train", "validation", "balanced"), (CORRELATED, CORRELATED, 0.5)
    for name, count, share in zip(names, counts, shares, strict=True):
        labels, agrees = torch.arange(count) % 2, torch.zeros(count, dtype=torch.bool)
        for label in (0, 1):  # exactly this share of each class agrees with its clue
            mine = agrees[label::2]
            mine[: round(share * len(mine))] = True
        order = torch.randperm(count, generator=stream(seed, f"cows/{name}"))
        labels, agrees = labels[order], agrees[order]
        # The usual company of a cow is grass (0) or a stamp (1), of a camel the other one.
        usual = labels if clue == "background" else 1 - labels
        parts.append(Part(clue, name, labels, torch.where(agrees, usual, 1 - usual), seed))
    return tuple(parts)


def _drawn(
    parts: tuple[Part, ...],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return all pictures, (N, 3, 96, 96), and where their animals are, (N, 96, 96) bool.

    They are drawn once for each version of the drawing code.
    """
    path = home() / "drawn" / f"{_version(parts)}.npz"
    # Not there, cut short, or something else.
    with contextlib.suppress(OSError, ValueError, EOFError, BadZipFile, KeyError):
        with np.load(path, allow_pickle=False) as file:
            kept = file["pixels"], np.unpackbits(file["animals"], axis=-1).astype(np.bool_)
        used(path)
        return kept
    drawn = (part.draw(n) for part in parts for n in range(len(part.labels)))
    pictures, outlines = zip(*((picture, outline(found)) for picture, found in drawn), strict=True)
    pixels = np.ascontiguousarray(np.stack(pictures).transpose(0, 3, 1, 2))
    animals = np.stack(outlines)
    with contextlib.suppress(OSError):  # a home that cannot be written: drawn again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as file:
            np.savez(file, pixels=pixels, animals=np.packbits(animals, axis=-1))
        tidy(path.parent, most=MOST_KEPT)
    return pixels, animals


def _version(parts: tuple[Part, ...]) -> str:
    """Name the content: what is drawn and the code, with its libraries, that draws it."""
    asked = [(part.clue, part.name, len(part.labels), part.seed) for part in parts]
    digest = hashlib.sha256(repr((asked, np.__version__, cv2.__version__)).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:32]
