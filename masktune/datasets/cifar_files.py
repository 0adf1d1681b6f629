"""Read the files CIFAR-10 comes in; none of them may run code or claim more than it holds."""

import io
import pickle
import pickletools
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from masktune.data.arrays import Pictures, checked
from masktune.errors import DataError

CLASSES = 10
PIXELS = 3 * 32 * 32
LARGEST_BATCH = 256 << 20  # bytes; the official batches have 31 MB
MOST_PICTURES = 1_000_000  # in an .npz file: 3 GB of pixels
AGAIN = "Download the archive again and unpack it."

_BROKEN = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ImportError,
    OverflowError,
)


def read_python_batch(path: Path) -> Pictures:
    """Read a pickled batch: "data" (N, 3072) uint8 and "labels"."""
    content = _content(path)
    try:
        _refuse_absurd_memo(content)
        batch = _ArraysOnly(io.BytesIO(content), encoding="latin1").load()
        names = {name if isinstance(name, str) else name.decode(): name for name in batch}
        pixels = np.asarray(batch[names["data"]])
        labels = np.asarray(batch[names["labels"]])
        if pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != PIXELS:
            raise ValueError(f"its pixels are {pixels.shape} {pixels.dtype}")
        return _pictures(pixels.reshape(-1, 3, 32, 32), labels, path)
    except _BROKEN as error:
        raise DataError(
            f"{path} cannot be read as a CIFAR-10 batch: {_reason(error)}.", AGAIN
        ) from error


def read_binary_batch(path: Path) -> Pictures:
    """Read a binary batch: for each picture its label, one byte, then 3072 bytes of pixels."""
    content = _content(path)
    if len(content) % (1 + PIXELS) or not content:
        raise DataError(
            f"{path} has {len(content):,} bytes, not a multiple of {1 + PIXELS:,}.", AGAIN
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, 1 + PIXELS)
    return _pictures(rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0], path)


def read_npz(path: Path) -> tuple[Pictures, Pictures]:
    """Read training and test pictures from x_train, y_train, x_test, y_test of an .npz file."""
    try:
        _refuse_absurd_headers(path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("x_train", "y_train", "x_test", "y_test")}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, *_BROKEN) as error:
        raise DataError(
            f"{path} cannot be read as CIFAR-10: {_reason(error)}.",
            "Save x_train, y_train, x_test and y_test with numpy.savez_compressed, pictures "
            "(N, 32, 32, 3) uint8, labels (N,).",
        ) from error
    train, test = (
        _pictures(arrays[f"x_{part}"].transpose(0, 3, 1, 2), arrays[f"y_{part}"], path)
        for part in ("train", "test")
    )
    return train, test


def _pictures(
    pixels: npt.NDArray[np.uint8], labels: npt.NDArray[np.integer[Any]], path: Path
) -> Pictures:
    pictures = Pictures(
        torch.from_numpy(np.ascontiguousarray(pixels)),
        torch.from_numpy(labels.astype(np.int64).reshape(-1)),  # Keras keeps them (N, 1)
    )
    return checked(pictures, classes=CLASSES, path=path)


def _content(path: Path) -> bytes:
    if (size := path.stat().st_size) > LARGEST_BATCH:
        raise DataError(f"{path} has {size:,} bytes, too many for a CIFAR-10 batch.", AGAIN)
    return path.read_bytes()


class _ArraysOnly(pickle.Unpickler):
    """Reads numbers, texts, lists, dicts and NumPy arrays of integers; anything else is refused."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401
        if module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            module = "multiarray"
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it names {module}.{name}, which no batch needs"
            ) from None


def _empty_array(*_: object) -> npt.NDArray[np.uint8]:
    """Stand in for NumPy's _reconstruct, which would allocate any size that it is told."""
    return np.empty(0, np.uint8)


def _integer_dtype(code: str, *_: object) -> np.dtype[Any]:
    if code not in ("u1", "i1", "i2", "i4", "i8"):
        raise pickle.UnpicklingError(f"it holds an array of type {code}")
    # A copy: what follows in the pickle sets its state, and NumPy shares the original.
    return np.dtype(code, False, True)


def _encoded(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it holds bytes written as {encoding}")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], object] = {
    ("multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): None,  # only ever handed to _reconstruct
    ("numpy", "dtype"): _integer_dtype,
    ("_codecs", "encode"): _encoded,
}


def _refuse_absurd_memo(content: bytes) -> None:
    """Refuse memo numbers beyond the file: the unpickler would make room for all up to them."""
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name in ("PUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise pickle.UnpicklingError(f"it numbers an object {argument}")


def _refuse_absurd_headers(path: Path) -> None:
    """Refuse arrays of other shapes, or that claim more than the archive holds, unread."""
    with zipfile.ZipFile(path) as archive:
        for name, ending in (
            ("x_train", (32, 32, 3)),
            ("y_train", ()),
            ("x_test", (32, 32, 3)),
            ("y_test", ()),
        ):
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
            fits = shape[1:] == ending and dtype == np.uint8
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
