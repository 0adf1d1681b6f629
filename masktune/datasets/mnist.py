"""MNIST: ten digits, and the paper's biased ones, 0-4 against 5-9, with squares that tell."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masktune.data.card import DataSettings
from masktune.data.download import fetch_any, unpack_gzip
from masktune.data.regions import TensorRegions
from masktune.data.splits import fifth, part
from masktune.data.types import Arrays, Split, in_memory
from masktune.errors import DataError
from masktune.files import ASSETS, alone, home
from masktune.progress import Watcher
from masktune.seeds import stream

SIDE = 4  # of a square, in pixels, as in the authors' code
BLUE = (0, 0, 255)  # the paper's text; the authors' code paints red
RED = (255, 0, 0)
WHITE = 255  # of a stroke; from half of it on, a pixel is of the digit
CORRELATED = 0.99  # share of class 0 that carries the squares in training; the rest of class 1

Squares = tuple[tuple[slice, tuple[int, int, int]], ...]
"""Columns and colour of each square in the top rows."""

ONE: Squares = ((slice(0, SIDE), BLUE),)
TWO: Squares = (*ONE, (slice(-SIDE, None), RED))

Read = Callable[[Path | None, DataSettings, Watcher], Arrays]


def bundled_digits(_root: Path | None, settings: DataSettings, _watcher: Watcher) -> Arrays:
    """Split the 5,000 bundled digits into 3,500, 500 and 1,000."""
    every = _every_bundled_digit()
    order = torch.randperm(len(every), generator=stream(settings.seed, "split"))
    sizes = (3500, 500, 1000)
    train, validation, test = (part(every, chosen) for chosen in order.split_with_sizes(sizes))
    return Arrays(train=train, validation=validation, tests={"test": test})


@cache
def _every_bundled_digit() -> Split:
    """Read the bundled digits once a process. Never changed."""
    with np.load(ASSETS / "mnist-5k.npz") as file:
        pixels, digits = torch.from_numpy(file["pixels"]), torch.from_numpy(file["digits"])
    return _digits("digits", pixels, digits.long())


def all_digits(root: Path | None, _settings: DataSettings, watcher: Watcher) -> Arrays:
    """Read all digits from ``root / "MNIST/raw"``, as torchvision has it; None downloads."""
    # Imported where it is used: it takes longer than PyTorch, and the bundled digits need none.
    from torchvision.datasets import MNIST

    root = _downloaded(home() / "data", watcher) if root is None else root
    raw = root / "MNIST" / "raw"
    files = [raw / Path(name).stem for name, _ in MNIST.resources]
    remedy = (
        f"Put the files there ({root}/MNIST/raw/ with the four idx files, as "
        "torchvision.datasets.MNIST keeps them), or give another --root; with a network, leave "
        "--root out and it is downloaded."
    )
    if missing := [path for path in files if not path.is_file()]:
        packed = all(path.with_name(f"{path.name}.gz").is_file() for path in missing)
        raise DataError(
            f"MNIST cannot be read from {raw}: {', '.join(path.name for path in missing)} "
            f"{'is' if len(missing) == 1 else 'are'} {'still packed' if packed else 'missing'}.",
            "Unpack the .gz files there." if packed else remedy,
        )
    try:
        train = MNIST(str(root), train=True)
        test = MNIST(str(root), train=False)
    except (RuntimeError, OSError, ValueError, AssertionError, TypeError, KeyError) as error:
        raise DataError(f"MNIST cannot be read from {root}: {error}.", remedy) from error
    finding = f"Read as: MNIST/raw, {len(train):,} training and {len(test):,} test digits."
    train, test = (
        _digits(name, found.data, found.targets)
        for name, found in (("train", train), ("test", test))
    )
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


def _digits(name: str, grey: Tensor, labels: Tensor) -> Split:
    """Return digits, (N, 28, 28) uint8, as a split that knows where their strokes are."""
    coloured = grey[:, None].repeat(1, 3, 1, 1)  # (N, 3, 28, 28)
    strokes = TensorRegions(grey > WHITE // 2)
    return replace(in_memory(name, coloured, labels), thing=strokes)


def biased(digits: Read, squares: Squares) -> Read:
    """Make a biased dataset out of digits.

    Training and validation carry the clue on 99 % of class 0 and 1 % of class 1. The test set
    "biased" carries it on all of class 1 and none of class 0; "original" on none. Of the 60,000
    digits a fifth validates (the paper's code carves out as many, unseeded).

    The authors' code sorts the digits before it paints the first of each class, so that every
    exception of class 0 is a 4 and every one of class 1 a 5. Exceptions are so made where the
    settings say "authors"; by chance otherwise.
    """

    def read(root: Path | None, settings: DataSettings, watcher: Watcher) -> Arrays:
        found, seed = digits(root, settings, watcher), settings.seed
        train, validation, test = found.train, found.validation, found.tests["test"]
        if validation is None:
            train, validation = fifth(train, seed)
        ordered = settings.exceptions == "authors"
        train, validation = (
            _painted(
                name,
                part,
                _correlated(part, None if ordered else stream(seed, f"squares/{name}")),
                squares,
            )
            for name, part in (("train", train), ("validation", validation))
        )
        tests = {
            "biased": _painted("biased", test, test.labels >= 5, squares),
            "original": _painted("original", test, test.labels < 0, squares),
        }
        return Arrays(train=train, validation=validation, tests=tests)

    return read


def _correlated(digits: Split, generator: torch.Generator | None) -> Tensor:
    """Choose exactly 99 % of the low digits and 1 % of the high ones, rounded, (N,) bool.

    By chance, or without a generator the first by digit, of equal ones the first of the split.
    """
    high = digits.labels >= 5
    chosen = torch.zeros_like(high)
    for positions, share in (((~high).nonzero(), CORRELATED), (high.nonzero(), 1 - CORRELATED)):
        if generator is None:
            order = digits.labels[positions[:, 0]].argsort(stable=True)
        else:
            order = torch.randperm(len(positions), generator=generator)
        chosen[positions[order[: round(share * len(order))], 0]] = True
    return chosen


def _painted(name: str, digits: Split, chosen: Tensor, squares: Squares) -> Split:
    """Paint the squares onto the ``chosen``, (N,) bool, and label by 0-4 against 5-9."""
    pixels = digits.images.batch(range(len(digits)))  # a copy
    painted = pixels[chosen]
    for columns, colour in squares:
        painted[:, :, :SIDE, columns] = pixels.new_tensor(colour)[:, None, None]
    pixels[chosen] = painted
    where = torch.zeros_like(pixels[0, 0], dtype=torch.bool)  # (28, 28)
    for columns, _ in squares:
        where[:SIDE, columns] = True
    clue = chosen[:, None, None] & where  # (N, 28, 28)
    split = in_memory(name, pixels, (digits.labels >= 5).long(), chosen.long())
    if digits.thing is None:
        return replace(split, clue=TensorRegions(clue))
    strokes = digits.thing.batch(range(len(digits))) & ~clue
    return replace(split, clue=TensorRegions(clue), thing=TensorRegions(strokes))


biased_5k, two_squares_5k = biased(bundled_digits, ONE), biased(bundled_digits, TWO)
biased_70k, two_squares_70k = biased(all_digits, ONE), biased(all_digits, TWO)
