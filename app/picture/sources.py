"""Where the picture comes from: a row of a split, or a file that somebody brought."""

import io
from dataclasses import dataclass

from torch import Tensor

from app import loaded as cached
from app.picture.easel import File
from app.uploads import UPLOADED, keep_upload, uploads_home
from masktune.config import RunConfig
from masktune.data.card import UNKNOWN
from masktune.data.frame import frame_of_files
from masktune.data.images import read_framed
from masktune.data.picture import PictureError
from masktune.data.types import DatasetBundle
from masktune.errors import DataError
from masktune.show.contact_sheets import first_of_groups
from masktune.show.painting import data_uri, jpeg_bytes, picture_of, png_bytes

EXAMPLES = 8
"""Pictures that are offered to be opened by a click."""

FIRST = "validation/0"
"""The picture that is shown until somebody chooses one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A picture and what is known about it.

    Attributes:
        image: (3, H, W) uint8 in the frame the model sees.
        name: what it is called.
        label: the right answer, by name; empty where nobody knows.
    """

    image: Tensor
    name: str
    label: str = ""


def source(subject: RunConfig, where: str) -> Source:
    """Return the picture that an address names.

    Raises:
        DataError: there is no such picture.
    """
    data = cached.bundle(subject)
    if (file := UPLOADED.fullmatch(where)) is not None:
        return _brought(data, *file.groups())
    name, _, number = where.rpartition("/")
    splits = cached.splits(data)
    split = splits.get(name)
    if split is None or not number.isdecimal() or int(number) >= len(split):
        known = (f"{name}/0 to {name}/{len(part) - 1}" for name, part in splits.items())
        raise DataError(
            f"There is no picture '{where}' here.", f"Choose one from {', '.join(known)}."
        )
    example = split[int(number)]
    words = [data.card.classes[example.label]]
    if len(data.card.attributes) > 1 and example.attribute != UNKNOWN:
        words.append(data.card.attributes[example.attribute])
    return Source(
        image=example.image,
        name=f"{name}, no. {int(number)}: {', '.join(words)}",
        label=data.card.classes[example.label],
    )


def take(subject: RunConfig, file: File) -> str:
    """Keep a file that was brought; return its address.

    Raises:
        DataError: it cannot be read as a picture.
    """
    path = keep_upload(file.name, io.BytesIO(file.content))
    where = f"file:{path.parent.name}/{path.name}"
    source(subject, where)
    return where


def examples(subject: RunConfig) -> tuple[tuple[str, str, str], ...]:
    """Return address, name and data URI of a few pictures of every group."""

    def drawn() -> tuple[tuple[str, str, str], ...]:
        found = []
        for position in first_of_groups(cached.bundle(subject).validation, count=EXAMPLES):
            where = f"validation/{position}"
            one = source(subject, where)
            picture = picture_of(one.image)
            small = max(picture.shape) <= 64
            found.append((where, one.name, data_uri((png_bytes if small else jpeg_bytes)(picture))))
        return tuple(found)

    return cached.drawn(subject, "examples of one picture", drawn)


def _brought(data: DatasetBundle, digest: str, name: str) -> Source:
    seen = frame_of_files(data.train.images.frame, data.card.size)
    try:
        image = read_framed(uploads_home() / digest / name, seen)
    except PictureError as error:
        raise DataError(
            f"“{name}” cannot be read as a picture: {error.reason}.",
            "Bring a JPEG, PNG or WebP file. The picture here and what you painted stay.",
        ) from error
    return Source(image=image, name=name)
