"""Where weights came from, so that they can go back there."""

import json
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from masktune.checkpoints.read import KINDS

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
    names: dict[str, str] = field(default_factory=dict)
    extras: tuple[dict[str, Any], ...]
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def to_note(self) -> str:
        """Give all but the tensors as text."""
        return json.dumps([self.kind, self.suffix, self.path, self.names, self.extras])


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
