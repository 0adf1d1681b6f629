"""Keep maps and masked pictures of a run as PNG files."""

import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from masktune.data.preprocess import Keeper, Preprocess
from masktune.errors import ConfigError, RunFolderError
from masktune.files import Value, csv_bytes
from masktune.progress import Progress, Watcher, unwatched
from masktune.runs.answers import file_of
from masktune.runs.open import RunView
from masktune.scores.rounds import kept_round

BATCH = 64
HEADS = ("position", "file", "label", "attribute", "hidden", "keep map", "masked picture")
READ_ME = (
    "keep/: white pixels survive, black ones are hidden (grey: darkened, with the soft strategy).\n"
    "masked/: what the model saw while it was finetuned, in the frame of its input.\n"
    "index.csv: which picture each file belongs to, and the share of its pixels that is hidden.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """One training picture as it was finetuned on.

    Attributes:
        position: in the training split.
        keep: content of a grey PNG, white where a pixel survives.
        picture: content of an RGB PNG with the hidden pixels black.
        hidden: share of the pixels that is hidden, in [0, 1].
    """

    position: int
    keep: bytes
    picture: bytes
    hidden: float


def masked_pictures(
    view: RunView, positions: Sequence[int] | None = None, *, watcher: Watcher = unwatched
) -> Iterator[Masked]:
    """Give training pictures as the round that the tuned model comes from hid them.

    Args:
        view: a finished run.
        positions: in the training split; None for all of it.
        watcher: told after every batch.
    """
    keep, split = _keeper(view), view.bundle.train
    chosen = torch.arange(len(split)) if positions is None else torch.as_tensor(positions)
    for start in range(0, len(chosen), BATCH):
        index = chosen[start : start + BATCH]
        kept = keep(index)
        images = Preprocess()(split.images.batch(index.tolist()), kept)
        for position, plane, image in zip(index.tolist(), kept.float(), images, strict=True):
            yield Masked(
                position=position,
                keep=_png(plane),
                picture=_png(image.permute(1, 2, 0)),
                hidden=float(1 - plane.double().mean()),
            )
        watcher(Progress(stage="masks", done=start + len(index), total=len(chosen)))


def write_masks(view: RunView, folder: Path, *, watcher: Watcher = unwatched) -> int:
    """Write the keep map and the masked picture of every training picture into a new folder.

    Returns:
        How many pictures were written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not empty.", "Name a new folder by --export.")
    rows: list[Sequence[Value]] = []
    try:
        for part in ("keep", "masked"):
            (folder / part).mkdir(parents=True)
        for found in masked_pictures(view, watcher=watcher):
            row = _row(view, found)
            (folder / str(row[-2])).write_bytes(found.keep)
            (folder / str(row[-1])).write_bytes(found.picture)
            rows.append(row)
        (folder / "index.csv").write_bytes(csv_bytes(HEADS, rows))
        (folder / "README.txt").write_text(READ_ME, "utf-8")
    except OSError as error:
        raise ConfigError(
            f"The pictures cannot be written into {folder}: {error.strerror or error}.",
            "Choose a folder on a disk with room that you may write to.",
        ) from error
    return len(rows)


def masks_zip(view: RunView, positions: Sequence[int]) -> bytes:
    """Give the same as ``write_masks`` for some pictures, as the content of a ZIP file."""
    file = io.BytesIO()
    rows: list[Sequence[Value]] = []
    with zipfile.ZipFile(file, "w") as archive:  # stored: a PNG is compressed already
        for found in masked_pictures(view, positions):
            row = _row(view, found)
            archive.writestr(str(row[-2]), found.keep)
            archive.writestr(str(row[-1]), found.picture)
            rows.append(row)
        archive.writestr("index.csv", csv_bytes(HEADS, rows))
        archive.writestr("README.txt", READ_ME)
    return file.getvalue()


def _row(view: RunView, found: Masked) -> Sequence[Value]:
    split, card = view.bundle.train, view.bundle.card
    attribute = int(split.attributes[found.position])
    name = f"{found.position:06d}.png"
    return (
        found.position,
        file_of(split, found.position),
        card.classes[int(split.labels[found.position])],
        card.attributes[attribute] if attribute >= 0 else "",
        found.hidden,
        f"keep/{name}",
        f"masked/{name}",
    )


def _keeper(view: RunView) -> Keeper:
    keep = view.keeper(kept_round(view.document["masking"]["rounds"]))
    if keep is None:
        raise RunFolderError(
            "This run hid nothing: it is the control with one more epoch.",
            "Choose a run whose strategy hides pixels.",
        )
    return keep


def _png(pixels: Tensor) -> bytes:
    """Encode (H, W) or (H, W, 3) fractions in [0, 1], without loss."""
    file = io.BytesIO()
    levels = (pixels * 255).round().to(torch.uint8)
    Image.fromarray(levels.numpy()).save(file, "PNG")
    return file.getvalue()
