"""The one frame: what the model sees, from file to normalised tensor.

Heat, keep and hide live in this frame. The authors' code computes heat on a centre crop and
stretches the mask over the uncropped file, which hides the wrong place on Waterbirds and CelebA.
"""

import re
from dataclasses import dataclass

from masktune.errors import ConfigError

Size = tuple[int, int]
"""(H, W)."""

LARGEST = 4096
"""Pixels a side of a frame, at most: a slip of the keyboard must not ask for all memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A deterministic way from a picture to the pixels the model sees."""

    cut: int | None = None  # side of the square cut from the centre of the file first
    resize: Size | int  # what the picture is stretched to, or the length of its shorter side
    crop: Size | None = None  # cut from the centre afterwards

    def __post_init__(self) -> None:
        resize = self.resize if isinstance(self.resize, tuple) else (self.resize,)
        sides = (*resize, *(self.crop or ()), *(() if self.cut is None else (self.cut,)))
        if not all(1 <= side <= LARGEST for side in sides):
            raise ConfigError(
                f"The frame '{self}' has a side that is not from 1 to {LARGEST} pixels.",
                "Give sizes in pixels, such as resize 224x224.",
            )
        if isinstance(self.resize, int) and self.crop is None:
            raise ConfigError(
                f"The frame '{self}' gives pictures of different shapes.",
                "Add a crop, such as shorter 256, crop 224x224.",
            )
        if self.crop is not None and (self.crop[0] > resize[0] or self.crop[1] > resize[-1]):
            raise ConfigError(
                f"The frame '{self}' crops more than there is after resizing.",
                "Make the crop at most as large as the size before it.",
            )

    def __str__(self) -> str:
        """Give the text that ``frame`` reads."""
        cut = "" if self.cut is None else f"cut {self.cut}, "
        resize = self.resize
        seen = f"shorter {resize}" if isinstance(resize, int) else "resize {}x{}".format(*resize)
        return cut + seen + ("" if self.crop is None else ", crop {}x{}".format(*self.crop))

    @property
    def size(self) -> Size:
        """(H, W) of the frame."""
        if self.crop is not None:
            return self.crop
        return self.resize if isinstance(self.resize, tuple) else (self.resize, self.resize)

    def resized(self, size: Size) -> Size:
        """Return (H, W) that a picture of (H, W) is stretched to, before the crop."""
        if isinstance(self.resize, tuple):
            return self.resize
        height, width = size
        scale = self.resize / min(height, width)
        return max(self.resize, round(height * scale)), max(self.resize, round(width * scale))


_STEP = re.compile(r"(cut|shorter|resize|crop) +(\d{1,6})(?: *[x×] *(\d{1,6}))?")


def frame(text: str) -> Frame:
    """Read a frame as ``str(Frame)`` spells it; one number stands for a square.

    >>> frame("shorter 256, crop 224")
    Frame(cut=None, resize=256, crop=(224, 224))
    >>> str(frame("cut 178, resize 224"))
    'cut 178, resize 224x224'
    """
    parts = [_STEP.fullmatch(part.strip().lower()) for part in text.split(",")]
    words = [part[1] for part in parts if part is not None]
    order = [("cut", "shorter", "resize", "crop").index(word) for word in words]
    usable = None not in parts and order == sorted(set(order)) and order.count(1) + order.count(2)
    if not usable or {"shorter", "resize"} <= set(words):
        raise ConfigError(
            f"The frame '{text}' cannot be read.",
            "Write it like: resize 224x224 — or: shorter 256, crop 224 — or: cut 178, resize 224.",
        )
    sizes = {p[1]: (int(p[2]), int(p[3] or p[2])) for p in parts if p is not None}
    return Frame(
        cut=sizes["cut"][0] if "cut" in sizes else None,
        resize=sizes["shorter"][0] if "shorter" in sizes else sizes["resize"],
        crop=sizes.get("crop"),
    )


def frame_of_files(own: Frame | None, size: Size) -> Frame:
    """Return what is seen of a file that somebody brings to pictures of (H, W).

    That is their ``own`` frame. Pictures that lie in memory as they are seen have none: then the
    shorter side of the file fits and the rest is cut off. What these were made from kept its
    proportions, and a stretched file would not: handwritten digits were scaled both ways alike,
    house numbers cut out as squares, cats cut from the middle of their photographs.
    """
    if own is not None:
        return own
    height, width = size
    return Frame(resize=height, crop=size) if height == width else Frame(resize=size)


USUAL = Frame(resize=(224, 224))
SMALL = 64
"""Pictures that are all of one size up to this many pixels a side are seen as they are."""


def small_as_they_are(sizes: frozenset[Size]) -> Frame:
    """Return the frame of pictures of these sizes that nobody chose one for."""
    only = next(iter(sizes)) if len(sizes) == 1 else None
    return Frame(resize=only) if only is not None and max(only) <= SMALL else USUAL
