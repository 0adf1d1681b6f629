"""CIFAR-10, in the layouts it is passed round in: Python batches, binary batches, one .npz file.

None of these files may run code or claim more than it holds.
"""

import hashlib
import pickle
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torchvision.datasets import CIFAR10

from masktune.data.card import DataSettings
from masktune.data.download import fetch, unpack_tar
from masktune.data.types import Arrays, Split, in_memory
from masktune.errors import DataError
from masktune.files import alone, home
from masktune.progress import Watcher

PYTHON, BINARY = "cifar-10-batches-py", "cifar-10-batches-bin"
_LAYOUTS = (("Python batches", PYTHON, ""), ("binary batches", BINARY, ".bin"))
CLASSES = 10
PIXELS = 3 * 32 * 32
LARGEST_BATCH = 256 << 20  # bytes; the official batches have 31 MB
MOST_PICTURES = 1_000_000  # in an .npz file: 3 GB of pixels
AGAIN = "Download the archive again and unpack it."
_BROKEN = (EOFError, ValueError, TypeError, KeyError, IndexError, OverflowError)
_ARRAYS = ("x_train", "y_train", "x_test", "y_test")


def read(root: Path | None, _settings: DataSettings, watcher: Watcher) -> Arrays:
    """Read CIFAR-10 from an .npz file or a folder as the card says; None downloads."""
    train, test, layout = _read(_downloaded(home() / "data", watcher) if root is None else root)
    finding = f"Read as: {layout}, {len(train):,} training and {len(test):,} test pictures."
    return Arrays(train=train, tests={"test": test}, findings=(finding,))


def _downloaded(folder: Path, watcher: Watcher) -> Path:
    """Fetch and unpack CIFAR-10 from its home page into ``folder``, unless it is there."""
    archive = folder / CIFAR10.filename
    with alone(folder / "cifar10"):
        if not (folder / PYTHON).is_dir():
            fetch(CIFAR10.url, to=archive, md5=CIFAR10.tgz_md5, watcher=watcher)
            unpack_tar(archive, member=PYTHON, into=folder)
            archive.unlink()
    return folder


def _read(root: Path) -> tuple[Split, Split, str]:
    """Give training and test pictures, and the name of the layout they were found in."""
    for title, name, suffix in _LAYOUTS:
        files = [f"data_batch_{n}{suffix}" for n in range(1, 6)] + [f"test_batch{suffix}"]
        for folder in (root, root / name):
            missing = [file for file in files if not (folder / file).is_file()]
            if len(missing) == len(files):
                continue
            if missing:
                raise DataError(
                    f"CIFAR-10 is incomplete: {', '.join(str(folder / m) for m in missing)} "
                    f"{'is' if len(missing) == 1 else 'are'} missing.",
                    "Unpack the whole archive again.",
                )
            paths = [folder / file for file in files]
            return _batches("train", paths[:-1]), _batches("test", paths[-1:]), title
    stored = [root] if root.is_file() else sorted(root.glob("*.npz"))
    if len(stored) > 1:
        raise DataError(
            f"{root} holds {len(stored)} .npz files: {', '.join(p.name for p in stored[:3])}.",
            "Give one of them as --root.",
        )
    if not stored:
        raise DataError(
            f"{root} holds no CIFAR-10: neither {root / PYTHON / 'data_batch_1'} nor "
            f"{root / BINARY / 'data_batch_1.bin'} nor an .npz file.",
            f"Give the folder that holds {PYTHON}, or leave --root out to download it.",
        )
    return *_npz(stored[0]), f"one file, {stored[0].name}"


def _batches(name: str, paths: Sequence[Path]) -> Split:
    """Read batches, pickled or binary ones by their names, one after the other."""
    parts = [
        _binary_batch(path) if path.suffix == ".bin" else _python_batch(path) for path in paths
    ]
    pixels, labels = map(torch.cat, zip(*parts, strict=True))
    return in_memory(name, pixels, labels)


def _python_batch(path: Path) -> tuple[Tensor, Tensor]:
    """Read a pickled batch, one of the official ones: unpickling others could run anything."""
    content = _content(path)
    official = dict((*CIFAR10.train_list, *CIFAR10.test_list))
    if hashlib.md5(content, usedforsecurity=False).hexdigest() != official.get(path.name):
        raise DataError(
            f"{path} is not the official batch of CIFAR-10, and pickles of others may run code.",
            f"{AGAIN} For pictures of your own save an .npz file.",
        )
    batch = pickle.loads(content, encoding="latin1")  # noqa: S301 (its MD5 is known)
    return _checked(np.asarray(batch["data"]).reshape(-1, 3, 32, 32), batch["labels"], path)


def _binary_batch(path: Path) -> tuple[Tensor, Tensor]:
    """Read a binary batch: for each picture its label, one byte, then 3072 bytes of pixels."""
    content = _content(path)
    if len(content) % (1 + PIXELS) or not content:
        raise DataError(
            f"{path} has {len(content):,} bytes, not a multiple of {1 + PIXELS:,}.", AGAIN
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, 1 + PIXELS)
    return _checked(rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0], path)


def _npz(path: Path) -> tuple[Split, Split]:
    """Read training and test pictures from x_train, y_train, x_test, y_test of an .npz file."""
    try:
        _refuse_absurd_headers(path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in _ARRAYS}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, *_BROKEN) as error:
        raise DataError(
            f"{path} cannot be read as CIFAR-10: {_reason(error)}.",
            "Save x_train, y_train, x_test and y_test with numpy.savez_compressed, pictures "
            "(N, 32, 32, 3) uint8, labels (N,).",
        ) from error
    train, test = (
        in_memory(
            part, *_checked(arrays[f"x_{part}"].transpose(0, 3, 1, 2), arrays[f"y_{part}"], path)
        )
        for part in ("train", "test")
    )
    return train, test


def _checked(
    pixels: npt.NDArray[np.uint8], labels: npt.ArrayLike, path: Path
) -> tuple[Tensor, Tensor]:
    numbers = np.asarray(labels, np.int64).reshape(-1)  # Keras keeps them (N, 1)
    if len(numbers) != len(pixels):
        raise DataError(
            f"{path} holds {len(pixels):,} pictures but {len(numbers):,} labels.",
            "Give one label for each picture.",
        )
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < CLASSES:
        raise DataError(
            f"{path} has labels from {numbers.min()} to {numbers.max()}.",
            f"Number the classes from 0 to {CLASSES - 1}.",
        )
    return torch.from_numpy(np.ascontiguousarray(pixels)), torch.from_numpy(numbers)


def _content(path: Path) -> bytes:
    if (size := path.stat().st_size) > LARGEST_BATCH:
        raise DataError(f"{path} has {size:,} bytes, too many for a CIFAR-10 batch.", AGAIN)
    return path.read_bytes()


def _refuse_absurd_headers(path: Path) -> None:
    """Refuse arrays of other shapes, or that claim more than the archive holds, unread."""
    with zipfile.ZipFile(path) as archive:
        for name in _ARRAYS:
            entry = archive.getinfo(f"{name}.npy")
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = read(file)
            count = shape[0] if shape else 0
            fits = shape[1:] == (32, 32, 3) and dtype == np.uint8
            if name.startswith("y_"):
                fits = shape[1:] in ((), (1,)) and dtype.kind in "iu"
            if not fits or not 0 < count <= MOST_PICTURES:
                raise ValueError(f"{name} is {shape} {dtype}")
            if count * int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize > entry.file_size:
                raise ValueError(f"{name} claims {shape} but has {entry.file_size:,} bytes")


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyError):
        named = re.search(r"'(.+)'", str(error.args[0]))  # zipfile says it in a sentence
        return f"it has no {named[1] if named else error.args[0]}"
    return (str(error) or type(error).__name__).rstrip(".")
