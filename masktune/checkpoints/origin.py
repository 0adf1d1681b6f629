"""Where weights came from, so that they can go back there."""

import json
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from masktune.checkpoints.sniff import KINDS

EXTRA_TENSOR = "origin/"
"""Before the names of tensors that a run keeps only to give them back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The layout of the file that weights came from.

    Attributes:
        kind: what kind of file, as ``weights.sniff`` names it.
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

    @classmethod
    def from_note(cls, note: str, tensors: dict[str, Tensor], *, state: Container[str]) -> "Origin":
        """Read the text again.

        Args:
            note: from ``to_note``.
            tensors: those kept beside it, under their names in the original file.
            state: names in the model.

        Raises:
            ValueError: the text is not from ``to_note``.
        """
        kind, suffix, path, names, extras = json.loads(note)
        # The suffix becomes part of a file's name.
        fits = kind in KINDS and suffix.isprintable() and not {"/", "\\"} & {*suffix}
        fits = fits and isinstance(path, list) and all(isinstance(key, str) for key in path)
        if not fits or len(extras) != len(path) + 1 or any(n not in state for n in names.values()):
            raise ValueError(note[:100])
        return cls(
            kind=kind,
            suffix=suffix,
            path=tuple(path),
            names=dict(names),
            extras=tuple(dict(extra) for extra in extras),
            tensors=tensors,
        )
