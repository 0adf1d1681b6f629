"""What leaves a finished run as files: weights, predictions, keep maps with masked pictures."""

import io
import zipfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from PIL import Image
from torch import Tensor

from masktune.checkpoints.checkpoint import Checkpoint, checkpoint_bytes, safetensors_bytes
from masktune.checkpoints.origin import Origin
from masktune.checkpoints.read import LEGACY, SAFETENSORS
from masktune.data.card import DatasetCard
from masktune.data.preprocess import Keeper, Preprocess
from masktune.data.types import Split
from masktune.errors import ConfigError, RunFolderError
from masktune.files import Value, csv_bytes
from masktune.progress import Progress, Watcher, unwatched
from masktune.runs.open import OpenRun, OpenSplit
from masktune.scores.flips import answer_changes
from masktune.scores.groups import group_examples, group_name, group_scores
from masktune.scores.result import VALIDATION

FileFormat = Literal["original", "safetensors"]

MOST_CLASSES = 100
"""Classes whose probabilities are all written down."""

BATCH = 64
READ_ME = (
    "keep/: white pixels survive, black ones are hidden (grey: darkened, with the soft strategy).\n"
    "masked/: what the model saw while it was finetuned, in the frame of its input.\n"
    "index.csv: which picture each file belongs to, and the share of its pixels that is hidden.\n"
)


def weights_bytes(
    checkpoint: Checkpoint, *, file_format: FileFormat = "original"
) -> tuple[str, bytes]:
    """Return a model's weights as the content of a file, after the suffix for its name.

    "original" is the format of the file it came from: the same dicts round it, the same names and
    prefixes, the same plain values beside it, so that code which read that file reads this one. The
    state of optimizer and scheduler and running averages of the weights are left out, because they
    belong to the weights as they were; numbers are float32, whatever they were. "safetensors" is a
    file that MaskTune reads, and the only one for a model that was trained here.
    """
    origin = checkpoint.origin
    if file_format == "safetensors" or origin is None:
        return ".safetensors", checkpoint_bytes(checkpoint)
    state = checkpoint.model.state_dict()
    tuned = {theirs: state[ours] for theirs, ours in origin.names.items()}
    weights = {**tuned, **origin.tensors}
    if origin.kind == SAFETENSORS:
        notes = {key: str(value) for key, value in origin.extras[-1].items()}
        return ".safetensors", safetensors_bytes(weights, notes)
    file = io.BytesIO()
    torch.save(_nested(weights, origin), file, _use_new_zipfile_serialization=origin.kind != LEGACY)
    return origin.suffix or ".pt", file.getvalue()


def _nested(weights: dict[str, Tensor], origin: Origin) -> dict[str, Any]:
    # Copies: names that share numbers would be written as views of one another.
    tree: dict[str, Any] = OrderedDict(
        (name, value.detach().cpu().clone().contiguous()) for name, value in weights.items()
    )
    tree.update(origin.extras[-1])
    for key, extras in reversed(list(zip(origin.path, origin.extras[:-1], strict=True))):
        tree = {key: tree, **extras}
    return tree


def predictions_csv(view: OpenRun, *, tests: Sequence[str] | None = None) -> bytes:
    """Return every picture of the test sets with both models' answers and probabilities.

    UTF-8 text with a head line; probabilities are fractions in [0, 1] at full precision. With more
    than ``MOST_CLASSES`` classes only the probability of each answer: all of them would be a file
    of gigabytes for ImageNet. ``tests`` names test sets; None takes all of them, and validation.
    Of a method that learnt when to abstain, its own score as well, higher is surer.
    """
    card = view.bundle.card
    every = {**view.tests, VALIDATION: view.validation}
    chosen = [every[name] for name in (every if tests is None else tests)]
    named = card.classes if len(card.classes) <= MOST_CLASSES else ()
    heads = (
        "test set", "position", "file", "label", "group", "before", "after", "state",
        "before sure", "after sure",
        *(["own score"] if chosen[0].pair.own is not None else []),
        *(f"before: {name}" for name in named),
        *(f"after: {name}" for name in named),
    )  # fmt: skip
    return csv_bytes(heads, (row for part in chosen for row in _rows(part, card, bool(named))))


def _rows(part: OpenSplit, card: DatasetCard, spelled_out: bool) -> Iterable[Sequence[Value]]:
    split, before, after, own = part.split, part.pair.before, part.pair.after, part.pair.own
    ids = group_examples(before, classes=card.classes, attributes=card.attributes).ids
    scores = group_scores(before, classes=card.classes, attributes=card.attributes or None)
    for position, state in enumerate(answer_changes(before, after)):
        was, now = before.probabilities[position], after.probabilities[position]
        yield (
            part.name,
            position,
            _file_of(split, position),
            card.classes[int(before.labels[position])],
            group_name(scores[int(ids[position])]),
            card.classes[int(was.argmax())],
            card.classes[int(now.argmax())],
            state,
            float(was.max()),
            float(now.max()),
            *(() if own is None else (float(own[position]),)),
            *(was.tolist() if spelled_out else ()),
            *(now.tolist() if spelled_out else ()),
        )


def mask_files(
    view: OpenRun, positions: Sequence[int] | None = None, *, watcher: Watcher = unwatched
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of keep maps and masked pictures, then of what explains them.

    A keep map is a grey PNG, white where a pixel survives; a masked picture is a training picture
    as the round that the tuned model comes from hid and filled it, an RGB PNG.
    ``positions`` are in the training split; None takes all of it.
    """
    bundle = view.bundle
    yield from hidden_files(
        _keeper(view), bundle.train, card=bundle.card, positions=positions, watcher=watcher
    )


def hidden_files(
    keep: Keeper,
    split: Split,
    *,
    card: DatasetCard,
    positions: Sequence[int] | None = None,
    numbers: Sequence[int] | None = None,
    read_me: str = READ_ME,
    watcher: Watcher = unwatched,
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files that ``mask_files`` describes.

    Args:
        keep: what hides the pictures, by their position in the split.
        split: the pictures.
        card: of their dataset.
        positions: in the split; None takes all of it.
        numbers: what files are named by and the index calls them, by position in the split; None
            takes that position.
        read_me: what is written about them.
        watcher: told how far it is.
    """
    chosen = torch.arange(len(split)) if positions is None else torch.as_tensor(positions)
    rows: list[Sequence[Value]] = []
    for start in range(0, len(chosen), BATCH):
        index = chosen[start : start + BATCH]
        kept = keep(index)
        images = Preprocess().of(split.__getitems__(index.tolist()), keep)
        for position, plane, image in zip(index.tolist(), kept.float(), images, strict=True):
            number = position if numbers is None else numbers[position]
            names = [f"{part}/{number:06d}.png" for part in ("keep", "masked")]
            yield names[0], _png(plane)
            yield names[1], _png(image.permute(1, 2, 0))
            label, attribute = int(split.labels[position]), int(split.attributes[position])
            named = card.attributes[attribute] if attribute >= 0 else ""
            hidden = float(1 - plane.double().mean())
            file = _file_of(split, position)
            rows.append((number, file, card.classes[label], named, hidden, *names))
        watcher(Progress(stage="masks", done=start + len(index), total=len(chosen)))
    heads = ("position", "file", "label", "attribute", "hidden", "keep map", "masked picture")
    yield "index.csv", csv_bytes(heads, rows)
    yield "README.txt", read_me.encode()


def write_masks(view: OpenRun, folder: Path, *, watcher: Watcher = unwatched) -> int:
    """Write ``mask_files`` of every training picture into a new folder; return how many."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not empty.", "Name a new folder by --export.")
    _keeper(view)  # what cannot be read is said before anything is written
    try:
        for part in ("keep", "masked"):
            (folder / part).mkdir(parents=True)
        for name, content in mask_files(view, watcher=watcher):
            (folder / name).write_bytes(content)
    except OSError as error:
        raise ConfigError(
            f"The pictures cannot be written into {folder}: {error.strerror or error}.",
            "Choose a folder on a disk with room that you may write to.",
        ) from error
    return len(view.bundle.train)


def masks_zip(view: OpenRun, positions: Sequence[int]) -> bytes:
    """Return ``mask_files`` of some pictures as the content of a ZIP file."""
    return zipped(mask_files(view, positions))


def zipped(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Return files, by name and content, as the content of a ZIP file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:  # stored: a PNG is compressed already
        for name, content in files:
            archive.writestr(name, content)
    return file.getvalue()


def _file_of(split: Split, position: int) -> str:
    """Return the path of a picture; empty for pictures that are in memory only."""
    return str(split.images.files[position]) if split.images.files else ""


def _keeper(view: OpenRun) -> Keeper:
    keep = view.keeper(view.result.masking.result)
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
