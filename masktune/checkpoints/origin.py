"""Where weights came from, so that they can go back there."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from masktune.checkpoints.find import Weights
from masktune.checkpoints.fit import Fit
from masktune.checkpoints.read import FETCH, KINDS, RefusedError

EXTRA_TENSOR = "origin/"
"""Before the names of tensors that a run keeps only to give them back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The format of the file that weights came from.

    Attributes:
        kind: what kind of file, one of ``read.KINDS``.
        suffix: of its name, such as ".th".
        path: keys of the dicts round the weights, outermost first.
        names: {name in the file: name in the model}; several of the file's may be one of ours.
        extras: plain values in each dict of ``path`` and in that of the weights.
        tensors: what the model has no place for, such as heads that only training uses.
    """

    kind: str
    suffix: str
    path: tuple[str, ...]
    names: dict[str, str]
    extras: tuple[dict[str, Any], ...]
    tensors: dict[str, Tensor]

    def to_note(self) -> str:
        """Give all but the tensors as text."""
        return json.dumps([self.kind, self.suffix, self.path, self.names, self.extras])


def origin_of(path: Path, weights: Weights, found: Fit) -> Origin | None:
    """Return where weights came from: this file, the one it was made from, or None: trained here.

    Raises:
        RefusedError: what our own file notes about the one it was made from is damaged.
    """
    others = {key: value for key, value in weights.tensors.items() if key not in found.names}
    if "origin" not in weights.notes:
        if "classes" in weights.notes:
            return None
        return Origin(
            kind=weights.kind,
            suffix=".pth.tar" if path.name.endswith(".pth.tar") else path.suffix,
            path=weights.path,
            names=found.names,
            extras=weights.extras,
            tensors={key: value.detach().clone() for key, value in others.items()},
        )
    kept = {key.removeprefix(EXTRA_TENSOR): value for key, value in others.items()}
    try:
        return noted_origin(weights.notes["origin"], kept, state={*found.model.state_dict()})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RefusedError(
            f"What {path.name} says of the file it was made from is damaged.", FETCH
        ) from error


def noted_origin(note: str, tensors: dict[str, Tensor], *, state: set[str]) -> Origin:
    """Return what ``Origin.to_note`` wrote; ``state`` are the model's names.

    Raises:
        ValueError, TypeError, AttributeError, RecursionError: the note is damaged.
    """
    kind, suffix, path, names, extras = json.loads(note)
    # The suffix becomes part of a file's name.
    sound = kind in KINDS and suffix.isprintable() and not {"/", "\\"} & {*suffix}
    sound = sound and isinstance(path, list) and all(isinstance(key, str) for key in path)
    if not sound or not {*names.values()} <= state or len(extras) != len(path) + 1:
        raise ValueError(kind)
    return Origin(
        kind=kind,
        suffix=suffix,
        path=tuple(path),
        names=names,
        extras=tuple(dict(extra) for extra in extras),
        tensors=tensors,
    )


def class_map_of(path: Path, weights: Weights, found: Fit) -> tuple[int, ...]:
    """Return the class of each logit where our own file says so, else nothing.

    Raises:
        RefusedError: a logit would have no class, or a class no logit.
    """
    if not {"classes", "pool"} <= {*weights.notes}:
        return ()
    try:
        classes = json.loads(weights.notes["pool"])
    except (ValueError, RecursionError):
        classes = None
    whole = isinstance(classes, list) and all(type(number) is int for number in classes)
    if not whole or len(classes) != found.classes or {*classes} != {*range(len({*classes}))}:
        raise RefusedError(f"What {path.name} says of the classes of its logits is damaged.", FETCH)
    return tuple(classes)
