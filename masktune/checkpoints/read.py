"""Opening a file of weights safely: nothing in it runs, and memory stays within its size."""

import argparse
import json
import pathlib
import pickle
import re
import stat
import struct
import threading
import warnings
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import torch
from torch.serialization import safe_globals

from masktune.checkpoints.scan import MAX_PICKLE, Scan, scan_pickles
from masktune.errors import ModelError, shortened

if TYPE_CHECKING:
    from masktune.checkpoints.fit import Fit

ZIP = "torch zip"
LEGACY = "torch legacy"
SAFETENSORS = "safetensors"
KINDS = (ZIP, LEGACY, SAFETENSORS)

HEAD = 4096
"""Bytes that are read to tell the kind; names lie."""

LEGACY_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""PyTorch's magic number as every pickle protocol from 2 on writes it."""

PLAUSIBLE = 2**30
"""Claims above this many bytes, in a file not half as large, are called absurd, not cut off."""

LEGACY_PICKLES = 5
"""A legacy file starts with magic number, version, system, content and the order of storages."""

DAMAGED = (
    zipfile.BadZipFile, safetensors.SafetensorError, pickle.UnpicklingError, struct.error,
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What reading nonsense raises."""

AGAIN = "Save the weights in PyTorch with torch.save(model.state_dict(), 'weights.pt')."
FETCH = "Download or copy the file again."
CONVERT = "Take the PyTorch weights, or convert these and save them with torch.save."
UNPACK = "Unpack it and give the file inside."

_LOOKS: tuple[tuple[bytes, str, str], ...] = (
    (rb"version https://git-lfs", "a git-LFS pointer", "Run git lfs pull in its repository."),
    (rb"\s*(<!doctype html|<html|<head|<\?xml|<!--)", "a web page: the download went wrong",
     "Open its address in a browser and save the file itself."),
    (rb"Salted__|age-encryption\.org/|-----BEGIN PGP|\x8c\x0d\x04|[\x84\x85]..\x03",
     "an encrypted file", "Decrypt it first."),
    (rb"\x1f\x8b", "a gzip archive", UNPACK),
    (rb"BZh|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c", "a compressed archive", UNPACK),
    (rb".{257}ustar", "a tar archive", UNPACK),
    (rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF.{4}WEBP", "a picture",
     "Give the weights here and the pictures as a dataset."),
    (rb"\x80[\x02-\x05]", "a pickle that PyTorch did not write; it was not opened", AGAIN),
    (rb"\x89HDF", "HDF5, as Keras writes it", CONVERT),
    (rb"\x93NUMPY", "a NumPy array", CONVERT),
    (rb"GGUF", "GGUF, quantised weights", CONVERT),
    (rb".{4}TFL3", "TensorFlow Lite", CONVERT),
    (rb"\x08.\x12.*tensorflow", "a TensorFlow graph", CONVERT),
    (rb"\x08.\x12", "ONNX", CONVERT),
    (rb"\s*[{\[]", "JSON", "Give the weights file that lies beside it."),
    (rb"[\t\r\n -~]+\Z", "text", "Give the file of weights instead."),
)  # fmt: skip
"""How other files begin, what they then look like, and what to do."""


class RefusedError(ModelError):
    """A checkpoint that cannot be used, with what was found out about it before.

    Attributes:
        kind: what sort of file it is, in a word or two; "" for one of ``KINDS``.
        fit: how far the architecture that comes closest is filled, None where none was tried.
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        *,
        kind: str = "",
        fit: "Fit | None" = None,
        choices: tuple[str, ...] | None = None,
    ) -> None:
        # Names out of a hostile file could steer the terminal they are printed on.
        super().__init__(printable(problem), printable(remedy))
        self.kind = kind
        self.fit = fit
        self.choices = choices


def printable(text: str) -> str:
    """Give text without control characters.

    >>> printable("a" + chr(27) + "[2Jb")
    'a?[2Jb'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def read(path: Path) -> tuple[str, object, dict[str, str]]:
    """Read a file of weights; nothing in it is ever executed.

    Returns:
        Which of ``KINDS`` it is; dicts, lists, tensors and plain values as they were saved; and the
        text metadata of a safetensors file.

    Raises:
        RefusedError: it is no such file, not whole, or holds more than weights and plain values.
    """
    kind = file_kind(path)
    try:
        if kind == SAFETENSORS:
            return kind, *_read_safetensors(path)
        if kind == ZIP:
            scan = _scan_zip(path)
        else:
            scan = scan_pickles(_start(path, MAX_PICKLE), LEGACY_PICKLES)
        _refuse_objects(path, scan)
        _refuse_claims(path, scan.claimed, kind=kind)
        return kind, _load(path, kind), {}
    except DAMAGED as error:
        raise _damaged(path, kind) from error


def file_kind(path: Path) -> str:
    """Tell which of ``KINDS`` a file is by its first bytes; the rest may be damaged or unsafe."""
    head = _start(path, HEAD)
    if head.startswith(b"PK\x03\x04"):
        return ZIP
    if LEGACY_MAGIC in head[:40]:
        return LEGACY
    # A header of a gigabyte or more is no JSON we would read; its last bytes tell it from text.
    if head[8:9] == b"{" and (head[5:8] == b"\0\0\0" or path.suffix == ".safetensors"):
        return SAFETENSORS
    for start, looks, remedy in _LOOKS:
        if re.match(start, head.removeprefix(b"\xef\xbb\xbf"), re.DOTALL | re.IGNORECASE):
            raise _other(path, looks, remedy)
    raise _other(path)


def _other(path: Path, looks: str = "", remedy: str = f"{FETCH} {AGAIN}") -> RefusedError:
    guess = f" (it looks like {looks})" if looks else ""
    return RefusedError(
        f"{path.name} is not a PyTorch or safetensors file{guess}.", remedy, kind=looks or "unknown"
    )


def _start(path: Path, length: int) -> bytes:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
            raise RefusedError(f"{path} is {what}.", "Give the file of weights.", kind=what)
        with path.open("rb") as file:
            head = file.read(length)
    except PermissionError as error:
        raise RefusedError(
            f"You are not allowed to read {path}.",
            f"Ask its owner, or run chmod u+r {path.name}.",
            kind="unreadable",
        ) from error
    # A name with a zero byte or one that is too long is no file either.
    except (OSError, ValueError) as error:
        raise RefusedError(
            f"There is no checkpoint {path}.", "Give the path of a weights file.", kind="missing"
        ) from error
    if not head:
        raise RefusedError(f"{path.name} is empty.", FETCH, kind="empty")
    return head


class _Unread:
    """Stands for numpy's arrays, which no weights need, and its kinds of numbers."""

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 (whatever a file says)
        self.given = given

    def __setstate__(self, state: object) -> None:
        """Take no content; byte order is the machine's in every file we have seen."""


def _scalar(dtype: _Unread, data: bytes) -> object:
    code = dtype.given[0]
    return np.frombuffer(data, code)[0].item() if re.fullmatch("[biuf][1248]", code) else None


def _as_dict(*_: object) -> dict[object, object]:
    return {}


_ALLOWED: tuple[tuple[Any, str], ...] = (
    (argparse.Namespace, "argparse.Namespace"),
    *((_scalar, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
    *((_Unread, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")),
    *((_Unread, f"numpy.{name}") for name in ("ndarray", "dtype")),
    # A path of the other system cannot be made here, a pure one can.
    *((pathlib.PurePosixPath, f"pathlib.{kind}Path") for kind in ("Posix", "PurePosix")),
    *((pathlib.PureWindowsPath, f"pathlib.{kind}Path") for kind in ("Windows", "PureWindows")),
    (pathlib.PurePosixPath, "pathlib._local.PosixPath"),
    (pathlib.PureWindowsPath, "pathlib._local.WindowsPath"),
    (_as_dict, "collections.defaultdict"),
    *((kind, f"{module}.{kind.__name__}") for kind in (list, dict, int, float)
      for module in ("builtins", "__builtin__")),
)  # fmt: skip
"""All that a file may name beside what PyTorch itself allows for tensors."""

_KNOWN = re.compile(
    r"collections\.(OrderedDict|Counter)|torch\._utils\._rebuild_\w+"
    r"|torch(\.\w+)?\.\w*(Storage|Tensor)|torch\.(Size|device)|torch\.bool"
    r"|torch\.(float|bfloat|int|uint|complex)\d+\w*|torch\.nn\.parameter\.Parameter"
    r"|torch\._tensor\._rebuild_from_type_v2|torch\.serialization\._get_layout"
    r"|torch\.per_\w+|_codecs\.encode|(builtins|__builtin__)\.(set|bytearray|complex)"
)
"""What PyTorch allows itself; what else it does not, it refuses itself."""

_names_lock = threading.Lock()
# PyTorch keeps one list of allowed names for the whole process.


def _load(path: Path, kind: str) -> object:
    try:
        with _names_lock, safe_globals(list(_ALLOWED)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Told a name that ends so, torch.load believes it whatever the file is.
            if kind == ZIP and path.suffix != ".safetensors":
                return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            with path.open("rb") as file:
                return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        # Every other object was refused by name before; what is left is another way of writing.
        raise RefusedError(
            f"{path.name} was written in a way that PyTorch cannot read safely.", AGAIN
        ) from error


def _damaged(path: Path, kind: str) -> RefusedError:
    return RefusedError(f"{path.name} is cut off or damaged ({kind}).", FETCH)


def _scan_zip(path: Path) -> Scan:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        _refuse_zip_of_others(path, names)
        if any(entry.flag_bits & 1 for entry in entries):
            raise RefusedError(
                f"{path.name} is a zip file with a password.",
                "Unpack it with its password and give the file inside.",
                kind="encrypted",
            )
        # PyTorch stores its records as they are, so they cannot be larger than the file.
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise RefusedError(
                f"{path.name} holds compressed records, which PyTorch never writes; unpacking "
                "them could fill the memory.",
                AGAIN,
            )
        held = sum(entry.file_size for entry in entries)
        # A comment could hide a second list of contents, for PyTorch to see and us not.
        if archive.comment or held > path.stat().st_size or len(set(names)) < len(names):
            raise RefusedError(f"{path.name} lists records that overlap.", "Do not use this file.")
        # PyTorch reads the one beside the first record, capital letters or not.
        lists = [name for name in names if name.lower().endswith("data.pkl")]
        if lists != [f"{names[0].partition('/')[0]}/data.pkl"]:
            raise RefusedError(
                f"{path.name} holds more than one list of weights.", "Do not use this file."
            )
        record = archive.getinfo(lists[0])
        if record.file_size > MAX_PICKLE:
            raise too_much(path.name, record.file_size, kind=ZIP)
        return scan_pickles(archive.read(record))


def _refuse_zip_of_others(path: Path, names: list[str]) -> None:
    if any(name.endswith("/constants.pkl") or "/code/" in name for name in names):
        raise RefusedError(
            f"{path.name} is a TorchScript model, whose layers cannot be looked into.",
            f"Take the original model. {AGAIN}",
            kind="TorchScript",
        )
    if any(name.lower().endswith("/data.pkl") for name in names):
        return
    if names and all(name.endswith(".npy") for name in names):
        raise _other(path, "a NumPy archive, .npz", CONVERT)
    if "model.weights.h5" in names:
        raise _other(path, "a Keras model", CONVERT)
    if any("exported_program" in name or name.endswith("archive_format") for name in names):
        raise _other(path, "a program of torch.export", f"Take the original model. {AGAIN}")
    raise _other(path, "a zip archive of other files", UNPACK)


def _refuse_claims(path: Path, claimed: int, *, kind: str) -> None:
    size = path.stat().st_size
    if claimed > max(PLAUSIBLE, 2 * size):
        raise too_much(path.name, claimed, kind=kind)
    if claimed > size:
        raise _damaged(path, kind)


def too_much(name: str, claimed: int, *, kind: str) -> RefusedError:
    """Refuse what a file of this name could not hold."""
    return RefusedError(
        f"{name} claims {claimed / 2**30:.3g} GiB, far more than the file can hold ({kind}).",
        "Do not use this file; get it from its author again.",
    )


def _refuse_objects(path: Path, scan: Scan) -> None:
    ours = {name for _, name in _ALLOWED}
    others = sorted(name for name in scan.names - ours if not _KNOWN.fullmatch(name))
    if not others:
        return
    modules = [n for n in others if n.startswith(("torch.nn.modules.", "torchvision.models."))]
    if modules:
        raise RefusedError(
            f"{path.name} is a whole pickled model ({modules[0]}), which would run code to load.",
            "Where you trained it: torch.save(model.state_dict(), 'weights.pt').",
            kind="pickled module",
        )
    raise RefusedError(
        f"{path.name} holds objects beside the weights ({shortened(others, most=1)}), which "
        "would run code to load.",
        "Where it was made, load it and save only its state dict with torch.save.",
        kind="objects",
    )


def _read_safetensors(path: Path) -> tuple[object, dict[str, str]]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        _refuse_claims(path, length + 8, kind=SAFETENSORS)
        if length > MAX_PICKLE:
            raise too_much(path.name, length, kind=SAFETENSORS)
        header = file.read(length)
    entries = json.loads(header)
    entries.pop("__metadata__", None)
    end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    _refuse_claims(path, 8 + length + int(end), kind=SAFETENSORS)
    with safetensors.safe_open(path, framework="pt") as opened:
        tensors = OrderedDict((key, opened.get_tensor(key)) for key in entries)
        return tensors, opened.metadata() or {}
