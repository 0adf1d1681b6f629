"""Open a picture file of any usual kind as upright RGB, or say in one clause why not."""

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from masktune.errors import DataError

MOST_PIXELS = 50_000_000
"""Of one picture, by its header: decoding more than that could take all memory."""

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "AVIF", "JPEG2000")
"""What is decoded. Never all that Pillow knows: some of its formats start other programs."""

_ORIENTATION = 0x0112  # EXIF tag
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Pillow's decoders let all of these out on damaged files; Warning where warnings are errors.
_DAMAGE = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(EOFError, struct.error, zlib.error, Warning),
)
_TOO_LARGE = f"it has more than {MOST_PIXELS // 1_000_000} million pixels"


class PictureError(DataError):
    """A file that cannot be used as a picture.

    Attributes:
        reason: a clause about the file, such as "it ends too early".
        lasting: False when the file may well open another time, as after a failure of the disk.
    """

    def __init__(self, path: Path, reason: str, *, lasting: bool = True) -> None:
        super().__init__(
            f"{path} cannot be read as a picture: {reason}.", "Replace it or leave it out."
        )
        self.path = path
        self.reason = reason
        self.lasting = lasting

    def __reduce__(self) -> tuple[object, ...]:
        """Let it come back from another process as it was."""
        return partial(PictureError, lasting=self.lasting), (self.path, self.reason)


def open_picture(path: Path) -> Image.Image:
    """Give the picture at ``path``, turned upright, in RGB.

    Transparency is dropped, not blended, as torchvision's loaders do; 16-bit greys are scaled to 8
    bits, not clipped; of several frames the first is taken. A damaged orientation tag counts as
    none.

    Raises:
        PictureError: it is missing, no picture, damaged, too large, or of floating-point numbers.
    """
    with _opened(path) as file:
        picture, turn = _rgb(path, file), _UPRIGHT.get(_orientation(file))
        return picture if turn is None else picture.transpose(turn)


def glance(path: Path) -> tuple[int, int]:
    """Return (H, W) of the upright picture at ``path``, decoded as cheaply as shows it is usable.

    Raises:
        PictureError: where ``open_picture`` does.
    """
    with _opened(path) as file:
        size = file.size
        file.draft(file.mode, (1, 1))  # a JPEG is read to its end, but at an eighth of its size
        _rgb(path, file)  # before the turn is asked for: a PNG is read for it, and damage forgotten
        return _upright(file, size)


def upright_size(path: Path) -> tuple[int, int]:
    """Return (H, W) of the upright picture at ``path``, of which only the header need be whole.

    Raises:
        PictureError: it is missing, no picture, or too large.
    """
    with _opened(path) as file:
        return _upright(file, file.size)


def _upright(file: Image.Image, size: tuple[int, int]) -> tuple[int, int]:
    width, height = size
    return (width, height) if _orientation(file) >= 5 else (height, width)


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        status = _status(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for without end
            raise PictureError(path, "it is not a file")
        if status.st_size == 0:
            raise PictureError(path, "it is empty")
        with path.open("rb") as handle:
            try:
                file = Image.open(handle, formats=FORMATS)
            except UnidentifiedImageError as error:
                handle.seek(0)
                reason = _what_else(handle.read(512), status.st_size)
                raise PictureError(path, reason) from error
            with file:
                if file.width * file.height > MOST_PIXELS:
                    raise PictureError(path, _TOO_LARGE)
                yield file
    except FileNotFoundError as error:
        raise PictureError(path, "it does not exist", lasting=False) from error
    except MemoryError as error:
        raise PictureError(path, "there is not enough memory for it", lasting=False) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise PictureError(path, _TOO_LARGE) from error
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.strerror:  # the system's word, not a decoder's
            raise PictureError(path, f"{error.strerror.lower()}", lasting=False) from error
        raise PictureError(path, _damage(path, str(error).lower())) from error


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except ValueError as error:  # NUL in a name: there is no such file
        raise FileNotFoundError(str(error)) from error


def _damage(path: Path, said: str) -> str:
    """Say what a decoder's complaint means."""
    with path.open("rb") as file:
        webp_is_cut = _claims_more(file.read(12), path.stat().st_size)
    if "truncated" in said or webp_is_cut:
        return "it ends too early"
    if "too large" in said or "too much" in said:
        return "it unpacks to more than a picture should"
    return "it is damaged"


def _rgb(path: Path, file: Image.Image) -> Image.Image:
    if file.mode == "F":
        raise PictureError(path, "it holds floating-point numbers, whose white is unknown")
    if file.mode == "I" and file.format not in ("PNG", "PPM"):
        raise PictureError(path, "it holds 32-bit numbers, whose white is unknown")
    file.load()
    if file.mode == "I" or file.mode.startswith("I;16"):
        values = np.asarray(file).astype(np.uint32).clip(max=65535)
        return Image.fromarray(((values * 255 + 32767) // 65535).astype(np.uint8)).convert("RGB")
    file.info.pop("transparency", None)  # Pillow would warn that it is dropped
    try:
        return file.convert("RGB")
    except ValueError as error:
        raise PictureError(path, f"its colours ({file.mode}) cannot be read as RGB") from error


def _orientation(file: Image.Image) -> int:
    try:
        return int(file.getexif().get(_ORIENTATION, 1))
    except _DAMAGE:
        return 1


def _what_else(head: bytes, size: int) -> str:
    """Say what a file is that Pillow takes for no picture, from its first bytes."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype", b"<html", b"<head", b"<?xml", b"<svg")):
        return "it is a web page or drawing in text, not a picture"
    if text.startswith(b"version https://git-lfs"):
        return "it is a git-LFS pointer, not the picture itself (git lfs pull fetches it)"
    if head[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftyphevc"):
        return "it is a HEIC photograph, which must be saved as JPEG first"
    if _claims_more(head, size):
        return "it ends too early"
    if head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF", b"GIF8", b"BM", b"II*\0", b"MM\0*")):
        return "its header is damaged or cut short"
    return "it is not a picture of a kind known here"


def _claims_more(head: bytes, size: int) -> bool:
    """Tell whether a WebP file is longer by its own word than it is."""
    claimed = int.from_bytes(head[4:8], "little") + 8
    return head.startswith(b"RIFF") and head[8:12] == b"WEBP" and claimed > size
