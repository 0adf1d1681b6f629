"""What kind of file is this? Told by its bytes; names lie."""

import stat
from pathlib import Path

from masktune.checkpoints.refusal import RefusedError

ZIP = "torch zip"
LEGACY = "torch legacy"
SAFETENSORS = "safetensors"
KINDS = (ZIP, LEGACY, SAFETENSORS)

HEAD = 4096
"""Bytes that are read to tell the kind."""

LEGACY_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""PyTorch's magic number as every pickle protocol from 2 on writes it."""

AGAIN = "Save the weights in PyTorch with torch.save(model.state_dict(), 'weights.pt')."
FETCH = "Download or copy the file again."

PICTURE = "Give the weights here and the pictures as a dataset."
CONVERT = "Convert the model to PyTorch and save its state dict."
PYTORCH = "Take the PyTorch weights it was made from."
UNPACK = "Unpack it with {} and give the file inside."
DECRYPT = "Decrypt it with {} first."

_STARTS: tuple[tuple[bytes, str, str, str], ...] = (
    (b"version https://git-lfs", "git-LFS pointer", "is a git-LFS pointer, not the weights "
     "themselves", "Run git lfs pull in its repository."),
    (b"\x89HDF\r\n\x1a\n", "HDF5", "is an HDF5 file, as Keras writes them", CONVERT),
    (b"\x93NUMPY", "NumPy array", "is a single NumPy array (.npy)", AGAIN),
    (b"GGUF", "GGUF", "is a GGUF file of quantised weights", PYTORCH),
    (b"Salted__", "encrypted", "is encrypted by OpenSSL", DECRYPT.format("openssl enc -d")),
    (b"age-encryption.org/", "encrypted", "is encrypted by age", DECRYPT.format("age -d")),
    (b"-----BEGIN PGP", "encrypted", "is a PGP message", DECRYPT.format("gpg --decrypt")),
    (b"\x8c\x0d\x04", "encrypted", "is encrypted by GnuPG", DECRYPT.format("gpg --decrypt")),
    (b"\x1f\x8b", "gzip archive", "is a gzip archive", UNPACK.format("gunzip or tar -xzf")),
    (b"BZh", "bzip2 archive", "is a bzip2 archive", UNPACK.format("bunzip2")),
    (b"\xfd7zXZ\x00", "xz archive", "is an xz archive", UNPACK.format("unxz")),
    (b"\x28\xb5\x2f\xfd", "zstd archive", "is a zstd archive", UNPACK.format("unzstd")),
    (b"7z\xbc\xaf\x27\x1c", "7z archive", "is a 7z archive", UNPACK.format("7z x")),
    (b"\x89PNG", "image", "is a PNG picture", PICTURE),
    (b"\xff\xd8\xff", "image", "is a JPEG picture", PICTURE),
    (b"GIF8", "image", "is a GIF picture", PICTURE),
    (b"%PDF", "PDF", "is a PDF document", "Give the file of weights instead."),
)  # fmt: skip


def sniff(path: Path) -> str:
    """Tell a file of weights by its first bytes.

    Returns:
        ``ZIP``, ``LEGACY`` or ``SAFETENSORS``. Whether the rest of the file is whole and safe is
        not looked at; a zip may still turn out to hold something else.

    Raises:
        RefusedError: it is something else, or cannot be read.
    """
    head, size = _head(path)
    if size == 0:
        raise RefusedError(f"{path.name} is empty.", FETCH, kind="empty")
    for start, kind, what, remedy in _STARTS:
        if head.startswith(start):
            raise RefusedError(f"{path.name} {what}.", remedy, kind=kind)
    if head.startswith(b"PK\x03\x04"):
        return ZIP
    if LEGACY_MAGIC in head[:40]:
        return LEGACY
    # A header of a gigabyte or more is no JSON we would read; its last bytes tell it from text.
    if head[8:9] == b"{" and head[5:8] == b"\0\0\0":
        return SAFETENSORS
    if head[8:9] == b"{" and path.suffix == ".safetensors":
        return SAFETENSORS
    _refuse_binary(path, head)
    _refuse_text(path, head)
    if path.suffix == ".safetensors":
        raise RefusedError(f"{path.name} is not a whole safetensors file.", FETCH, kind="unknown")
    raise RefusedError(
        f"{path.name} is no kind of weights file that we know.", AGAIN, kind="unknown"
    )


def _head(path: Path) -> tuple[bytes, int]:
    try:
        state = path.stat()
        if stat.S_ISDIR(state.st_mode):
            raise _folder(path)
        if not stat.S_ISREG(state.st_mode):
            raise RefusedError(
                f"{path} is a device or a pipe.", "Give a file on a disk.", kind="not a file"
            )
        with path.open("rb") as file:
            return file.read(HEAD), state.st_size
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


def _folder(path: Path) -> RefusedError:
    if (path / "saved_model.pb").exists():
        return RefusedError(
            f"{path} is a TensorFlow SavedModel.",
            CONVERT,
            kind="TensorFlow",
        )
    return RefusedError(f"{path} is a folder.", "Give the weights file inside it.", kind="folder")


def _refuse_binary(path: Path, head: bytes) -> None:
    name = path.name
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        problem = f"{name} is a Python pickle that PyTorch did not write; it was not opened."
        raise RefusedError(problem, AGAIN, kind="pickle")
    if head[257:262] == b"ustar":
        raise RefusedError(
            f"{name} is a tar archive.", UNPACK.format("tar -xf"), kind="tar archive"
        )
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        raise RefusedError(f"{name} is a WebP picture.", PICTURE, kind="image")
    if head[4:8] == b"TFL3":
        raise RefusedError(f"{name} is a TensorFlow Lite model.", PYTORCH, kind="TensorFlow Lite")
    # The first fields of an ONNX file: its version as a number, then its producer as a string.
    if head[:1] == b"\x08" and head[2:3] == b"\x12" and head[3:4] < b"(" and head[4:8].isalpha():
        raise RefusedError(f"{name} is an ONNX model.", PYTORCH, kind="ONNX")
    if head[:1] == b"\x08" and b"tensorflow" in head.lower():
        raise RefusedError(f"{name} is a TensorFlow graph.", CONVERT, kind="TensorFlow")
    if head[:1] in (b"\x84", b"\x85") and head[3:4] == b"\3":
        raise RefusedError(
            f"{name} is encrypted for a GnuPG key.",
            DECRYPT.format("gpg --decrypt"),
            kind="encrypted",
        )


def _refuse_text(path: Path, head: bytes) -> None:
    try:
        # The last character of the head may be cut in two.
        text = head.decode("utf-8-sig", errors="strict" if len(head) < HEAD else "ignore")
    except UnicodeDecodeError:
        return
    if not all(letter.isprintable() or letter.isspace() for letter in text):
        return
    start = text.lstrip().lower()
    if start.startswith(("<!doctype html", "<html", "<head", "<?xml", "<!--")):
        raise RefusedError(
            f"{path.name} is a web page, not weights; the download went wrong.",
            "Open its address in a browser and save the file itself.",
            kind="HTML",
        )
    if start.startswith(("{", "[")):
        raise RefusedError(
            f"{path.name} is JSON text.", "Give the weights file that lies beside it.", kind="JSON"
        )
    raise RefusedError(
        f"{path.name} is a text file.", "Give the file of weights instead.", kind="text"
    )
