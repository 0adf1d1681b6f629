"""Broken and hostile pictures, zips and lists, each with the word that must come back."""

import csv
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image


@dataclass(frozen=True)
class Case:
    """One of the corpus.

    Attributes:
        name: what is wrong.
        root: what is given as the dataset: a folder, a CSV file or a zip.
        said: a piece of the problem, or of the reason for which the file is left out.
        bad: the file that is left out while the rest loads; None when all is refused.
    """

    name: str
    root: Path
    said: str
    bad: str | None = None


def make(folder: Path) -> tuple[Case, ...]:
    """Write the whole corpus into ``folder``."""
    return (*_pictures(folder), *_zips(folder), *_lists(folder))


def good_pictures(root: Path, *, count: int = 4, side: int = 8) -> Path:
    """Write ``count`` pictures each of cat and dog, dark and bright."""
    for label, shade in (("cat", 40), ("dog", 200)):
        (root / label).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            Image.new("RGB", (side, side), (shade + number, 0, 0)).save(
                root / label / f"{number}.png"
            )
    return root


def encoded(kind: str, *, side: int = 64) -> bytes:
    """Give noise, which does not compress, as a file of a format."""
    noise = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, kind)
    return file.getvalue()


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Write a grey PNG by hand, with whatever size and chunks it shall claim."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    out = b"\x89PNG\r\n\x1a\n"
    for kind, body in ((b"IHDR", header), *chunks, (b"IEND", b"")):
        checksum = zlib.crc32(kind + body)
        out += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)
    return out


def _float_tiff() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)).save(file, "TIFF")
    return file.getvalue()


def _long_tiff() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((8, 8), 70_000, dtype=np.int32)).save(file, "TIFF")
    return file.getvalue()


def _huge_text() -> bytes:
    return b"comment\0\0" + zlib.compress(bytes(64 * 2**20), 9)


def _pictures(folder: Path) -> tuple[Case, ...]:
    pixels = (b"IDAT", zlib.compress(bytes(9 * 8)))
    jpeg, webp = encoded("JPEG"), encoded("WEBP")
    broken = {
        "bomb by header.png": (png(60_000, 60_000, pixels), "more than 50 million pixels"),
        "warned of by pillow.png": (png(10_000, 10_000, pixels), "more than 50 million pixels"),
        "just too large.png": (png(7_100, 7_100, pixels), "more than 50 million pixels"),
        "huge text.png": (png(8, 8, (b"zTXt", _huge_text()), pixels), "more than a picture should"),
        "cut.jpg": (jpeg[: len(jpeg) // 2], "ends too early"),
        "cut.png": (encoded("PNG")[:4000], "ends too early"),
        "cut.webp": (webp[: len(webp) // 2], "ends too early"),
        "cut.gif": (encoded("GIF")[:2000], "ends too early"),
        "cut.bmp": (encoded("BMP")[:2000], "ends too early"),
        "header only.png": (encoded("PNG")[:20], "ends too early"),
        "bad header.jpg": (b"\xff\xd8\xff" + bytes(50), "header is damaged or cut short"),
        "no pixels.png": (png(8, 8), "damaged"),
        "wrong pixels.png": (png(8, 8, (b"IDAT", b"no zlib stream")), "damaged"),
        "page.jpg": (b"<!DOCTYPE html><html>404</html>", "web page"),
        "pointer.jpg": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git-LFS"),
        "photograph.heic": (b"\0\0\0\x18ftypheic" + bytes(64), "HEIC"),
        "nothing.jpg": (b"", "empty"),
        "words.jpg": (b"this is no picture" * 20, "not a picture"),
        "script.eps.jpg": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
        "float.tif": (_float_tiff(), "floating-point"),
        "long.tif": (_long_tiff(), "32-bit"),
    }
    cases = []
    for name, (content, said) in broken.items():
        root = good_pictures(folder / "pictures" / name)
        (root / "cat" / name).write_bytes(content)
        cases.append(Case(name, root, said, bad=f"cat/{name}"))
    root = good_pictures(folder / "pictures" / "loop.jpg")
    (root / "dog" / "loop.jpg").symlink_to(root / "dog" / "loop.jpg")
    (root / "dog" / "above").symlink_to(root, target_is_directory=True)
    return (*cases, Case("loop.jpg", root, "symbolic links", bad="dog/loop.jpg"))


def _zip(path: Path, fill: Callable[[zipfile.ZipFile], None]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        picture = encoded("PNG", side=8)
        for label in ("cat", "dog"):
            for number in range(3):
                archive.writestr(f"{label}/{number}.png", picture)
        fill(archive)
    return path


def _with(name: str, content: bytes = b"x") -> Callable[[zipfile.ZipFile], None]:
    def fill(archive: zipfile.ZipFile) -> None:
        entry = zipfile.ZipInfo(name)
        entry.filename = name  # ZipInfo tidies the name it is made with
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)

    return fill


def _link(archive: zipfile.ZipFile) -> None:
    entry = zipfile.ZipInfo("cat/link.jpg")
    entry.external_attr = 0o120777 << 16
    archive.writestr(entry, "/etc/passwd")


def _claim(archive: zipfile.ZipFile) -> None:
    archive.filelist[0].file_size = 10 * 2**30


def _lie(archive: zipfile.ZipFile) -> None:
    _with("cat/lie.bmp", bytes(2**20))(archive)
    archive.filelist[-1].file_size = 10


def _overlap(archive: zipfile.ZipFile) -> None:
    archive.filelist.extend([archive.filelist[0]] * 50)


def _secret(archive: zipfile.ZipFile) -> None:
    for entry in archive.filelist:
        entry.flag_bits |= 1


def _later(archive: zipfile.ZipFile) -> None:
    archive.filelist[0].flag_bits |= 0x20  # "compressed patched data"


def _unusual(archive: zipfile.ZipFile) -> None:
    archive.writestr("cat/lzma.png", b"x" * 100, zipfile.ZIP_LZMA)


def _twice(archive: zipfile.ZipFile) -> None:
    _with("a/b.jpg")(archive)
    _with("a")(archive)
    _with("a.jpg")(archive)
    _with("a.jpg/b.jpg")(archive)


def _zips(folder: Path) -> tuple[Case, ...]:
    home = folder / "zips"
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as deepest:
        deepest.writestr("x.png", b"x")
    middle = io.BytesIO()
    with zipfile.ZipFile(middle, "w") as between:
        between.writestr("inner.zip", inner.getvalue())
    filled: dict[str, tuple[Callable[[zipfile.ZipFile], None], str]] = {
        "slip": (_with("../../evil.jpg"), "leads out of it"),
        "slip by picture class": (_with("cat/../../../evil.jpg"), "leads out of it"),
        "slip in windows": (_with("..\\..\\evil.jpg"), "leads out of it"),
        "absolute": (_with("/evil.jpg"), "leads out of it"),
        "drive": (_with("C:\\evil.jpg"), "leads out of it"),
        "link": (_link, "holds a link"),
        "secret": (_secret, "zip is encrypted"),
        "bomb": (_with("cat/bomb.bmp", bytes(40 * 2**20)), "100 times its own size"),
        "claims 10 GB": (_claim, "more than 2 GB"),
        "lies about its size": (_lie, "damaged"),
        "overlap": (_overlap, "twice|damaged"),
        "zip in zip in zip": (_with("deep.zip", middle.getvalue()), "zip in a zip in a zip"),
        "no zip inside": (_with("broken.zip", b"PK no zip"), "damaged"),
        "unusual": (_unusual, "unusual way"),
        "of a later version": (_later, "damaged"),
        "file and folder": (_twice, "cannot be unpacked"),
    }
    cases = [
        Case(name, _zip(home / f"{name}.zip", fill), said) for name, (fill, said) in filled.items()
    ]
    whole = _zip(home / "whole.zip", lambda _: None).read_bytes()
    patched = bytearray(whole)
    patched[len(whole) - 22 + 12 : len(whole) - 22 + 16] = struct.pack("<L", 2**31)
    damaged = bytearray(whole)
    damaged[60] ^= 0xFF
    raw = {
        "cut": (whole[:-40], "damaged"),
        "page": (b"<html>not found</html>", "damaged"),
        "nothing": (b"", "damaged"),
        "endless table of contents": (bytes(patched), "200,000 files"),
        "damaged": (bytes(damaged), "damaged"),
    }
    for name, (content, said) in raw.items():
        (home / f"{name}.zip").write_bytes(content)
        cases.append(Case(f"zip {name}", home / f"{name}.zip", said))
    with zipfile.ZipFile(home / "program.zip", "w") as archive:
        archive.writestr("run.exe", b"MZ")
    return (*cases, Case("program", home / "program.zip", "holds no pictures"))


GOOD_ROWS = [["cat/0.png", "0", "train"], ["cat/1.png", "0", "train"], ["dog/0.png", "1", "train"]]
GOOD_ROWS += [["dog/1.png", "1", "train"], ["cat/2.png", "0", "test"], ["dog/2.png", "1", "test"]]
HEADER = ["filename", "y", "split"]


def sheet(rows: list[list[str]], header: list[str] = HEADER) -> bytes:
    """Write rows as CSV."""
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows])
    return file.getvalue().encode()


def _lists(folder: Path) -> tuple[Case, ...]:
    def with_row(*cells: str) -> bytes:
        return sheet([*GOOD_ROWS, list(cells)])

    many = [[f"cat/{n}.png", str(n), "train"] for n in range(1001)]
    contents = {
        "no columns": (sheet([["1", "2"]], ["width", "height"]), "no column for the picture"),
        "no label": (sheet(GOOD_ROWS, ["filename", "colour", "split"]), "no column for the label"),
        "two labels": (
            sheet([[*r, r[1]] for r in GOOD_ROWS], [*HEADER, "Y"]),
            "2 columns named 'y'",
        ),
        "bad split": (with_row("cat/3.png", "0", "7"), "Line 8 .*'split': '7' is no split"),
        "negative": (with_row("cat/3.png", "-1", "test"), "Line 8 .*'y': the label -1 is negative"),
        "no value": (with_row("cat/3.png", "", "test"), "Line 8 .*'y': it is empty"),
        "short row": (with_row("cat/3.png"), "Line 8 .*'y': it is empty"),
        "long row": (with_row("a", "0", "0", "more"), "Line 8 .*4 fields, its header 3"),
        "dots": (with_row("../../secret.png", "0", "0"), "Line 8 .*leads out"),
        "absolute": (with_row("/etc/passwd", "0", "0"), "Line 8 .*leads out"),
        "drive": (with_row("C:\\secret.png", "0", "0"), "Line 8 .*leads out"),
        "share": (with_row("\\\\server\\secret.png", "0", "0"), "Line 8 .*leads out"),
        "nul": (with_row("cat/\0.png", "0", "0"), "Line 8 .*NUL"),
        "utf-16 without a mark": (sheet(GOOD_ROWS).decode().encode("utf-16-le"), "NUL"),
        "huge field": (with_row("a" * 200_000, "0", "0"), "Line 8 .*field larger"),
        "open quote": (sheet(GOOD_ROWS) + b'"cat/3.png,0,0\n', "Line 8 .*unexpected end"),
        "spreadsheet": (b"PK\x03\x04" + bytes(100), "NUL"),
        "header only": (sheet([]), "no rows"),
        "nothing": (b"", "is empty"),
        "one class": (sheet([r for r in GOOD_ROWS if r[1] == "0"]), "Every picture"),
        "too many classes": (sheet(many), "1,001 different labels"),
        "nothing there": (sheet([[f"gone/{r[0]}", *r[1:]] for r in GOOD_ROWS]), "6 of 6 pictures"),
        "only tests": (sheet([[*r[:2], "test"] for r in GOOD_ROWS]), "no training pictures"),
    }
    cases = []
    for name, (content, said) in contents.items():
        root = good_pictures(folder / "lists" / name)
        (root / "metadata.csv").write_bytes(content)
        # The list itself is given: beside class folders a file without columns is passed over.
        cases.append(Case(f"csv {name}", root / "metadata.csv", said))
    left_out = {
        "one missing": ("cat/9.png", "does not exist"),
        "long name": ("n" * 300 + ".png", "name too long"),
    }
    for name, (file, said) in left_out.items():
        root = good_pictures(folder / "lists" / name)
        (root / "metadata.csv").write_bytes(with_row(file, "0", "0"))
        cases.append(Case(f"csv {name}", root, said, bad=file))
    return tuple(cases)
