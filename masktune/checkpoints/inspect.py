"""The checkpoint doctor: what is in this file, what fits, and what to do next."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from masktune.checkpoints.find import Weights
from masktune.checkpoints.recognise import Recognised, recognise
from masktune.checkpoints.refusal import RefusedError, printable
from masktune.data.normalisations import spelled
from masktune.errors import ModelError

SHOWN = 8
"""Names of tensors that ``Diagnosis.text`` shows before it counts the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found out about a file.

    Attributes:
        verdict: "ok" or "refused".
        format: what kind of file it is.
        arch: the architecture that fits, or that comes closest; None where neither is known.
        classes: number of logits; 1 is a sigmoid head.
        channels: colour channels of its pictures.
        lr: learning rate of its last epoch.
        epoch: as stored.
        normalisation: as stored, in the words of ``--normalise``; None where the file is silent.
        matched: tensors that have their place.
        missing: names in the architecture that the file lacks.
        unexpected: names in the file that have no place.
        problem: why it is refused; "" when it is not.
        remedy: the one next step, either way.
    """

    verdict: str
    format: str
    arch: str | None = None
    classes: int | None = None
    channels: int | None = None
    lr: float | None = None
    epoch: int | None = None
    normalisation: str | None = None
    matched: int = 0
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    problem: str = ""
    remedy: str

    @property
    def ok(self) -> bool:
        """Whether the file can be used."""
        return self.verdict == "ok"

    def to_json(self) -> dict[str, Any]:
        """Give the document of ``python -m masktune inspect --json``."""
        return {
            "verdict": self.verdict,
            "format": self.format,
            "arch": self.arch,
            "classes": self.classes,
            "channels": self.channels,
            "lr": self.lr,
            "epoch": self.epoch,
            "normalisation": self.normalisation,
            "matched": self.matched,
            "missing": list(self.missing),
            "unexpected": list(self.unexpected),
            "problem": self.problem,
            "remedy": self.remedy,
        }

    def text(self) -> str:
        """Say what was found in a few lines; what is wrong and what to do is said apart."""
        lines = [("verdict", self.verdict), ("format", self.format)]
        if self.arch is not None:
            lines.append(("architecture" if self.ok else "closest", self.arch))
        for name in ("classes", "channels", "lr", "epoch", "normalisation"):
            value = getattr(self, name)
            if value is not None:
                lines.append((name, f"{value:g}" if isinstance(value, float) else str(value)))
        if self.arch is not None:
            lines.append(("matched", f"{self.matched} tensors"))
        for name, tensors in (("missing", self.missing), ("unexpected", self.unexpected)):
            if tensors:
                lines.append((name, _listed(tensors)))
        if self.ok:
            lines.append(("next", self.remedy))
        return "\n".join(f"{name:<15}{value}" for name, value in lines)


def diagnose(path: str | Path, *, arch: str | None = None) -> Diagnosis:
    """Say what is in a file of weights; nothing in it is ever executed.

    Args:
        path: of any file.
        arch: the architecture, where the file does not tell.

    Returns:
        The findings; a file that cannot be used gives a verdict, not an exception.
    """
    path = Path(path)
    try:
        return _healthy(path, recognise(path, arch=arch), arch=arch)
    except RefusedError as error:
        return Diagnosis(
            verdict="refused",
            format=error.kind,
            arch=error.arch,
            matched=error.matched,
            missing=error.missing,
            unexpected=error.unexpected,
            problem=error.problem,
            remedy=error.remedy,
        )
    except ModelError as error:  # the architecture that was asked for cannot be built
        return Diagnosis(
            verdict="refused",
            format="not looked at",
            arch=arch,
            problem=error.problem,
            remedy=error.remedy,
        )


def _healthy(path: Path, found: Recognised, *, arch: str | None) -> Diagnosis:
    named = "" if arch is None else f" --arch {shlex.quote(arch)}"
    return Diagnosis(
        verdict="ok",
        format=found.kind,
        arch=found.fit.arch,
        classes=found.fit.classes,
        channels=found.fit.channels,
        lr=found.weights.lr,
        epoch=found.weights.epoch,
        normalisation=_normalisation(found.weights),
        matched=len(found.fit.names),
        remedy="Name the dataset: python -m masktune run --dataset KEY --model "
        f"{shlex.quote(str(path))}{named}",
    )


def _normalisation(weights: Weights) -> str | None:
    if weights.mean is None or weights.std is None:
        return None
    return spelled(weights.mean, weights.std)


def stored_normalisation(path: Path) -> str:
    """Give the normalisation that a file states, in the words of ``--normalise``."""
    found = diagnose(path)
    if not found.ok:
        raise ModelError(found.problem, found.remedy)
    if found.normalisation is None:
        raise ModelError(
            f"{path.name} does not say how its pictures were normalised.",
            "Name the normalisation that the model was trained with, such as --normalise imagenet.",
        )
    return found.normalisation


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return printable(", ".join(names[:SHOWN])) + more
