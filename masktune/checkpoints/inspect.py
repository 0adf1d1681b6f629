"""What is in this file, which architecture fits, and what to do next."""

import importlib.util
import json
import re
import shlex
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from masktune.checkpoints.find import Weights, find_weights
from masktune.checkpoints.fit import Fit, fit, fits, nearest, timm_guesses
from masktune.checkpoints.hugging_face import OWN_CLASS, weights_file
from masktune.checkpoints.origin import EXTRA_TENSOR, Origin, noted_origin
from masktune.checkpoints.read import FETCH, RefusedError, file_kind, printable
from masktune.config import BUNDLED, names_code
from masktune.data.normalisations import spelled
from masktune.errors import ConfigError, ModelError, shortened

SHOWN = 8
"""Names of tensors that ``Diagnosis.text`` shows before it counts the rest."""

NAMED = 3
"""Names of tensors that a problem shows before it counts the rest."""


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
        class_names: by number, as a folder of the Hugging Face hub has them; else none.
        matched: tensors that have their place.
        missing: names in the architecture that the file lacks.
        unexpected: names in the file that have no place.
        choices: architectures to name, () where it may be any; None where a name does not help.
        problem: why it is refused; "" when it is not.
        remedy: the one next step on the command line, either way.
    """

    verdict: str
    format: str
    arch: str | None = None
    classes: int | None = None
    channels: int | None = None
    lr: float | None = None
    epoch: int | None = None
    normalisation: str | None = None
    class_names: tuple[str, ...] = ()
    matched: int = 0
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None
    problem: str = ""
    remedy: str

    @property
    def ok(self) -> bool:
        """Whether the file can be used."""
        return self.verdict == "ok"

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``python -m masktune inspect --json``."""
        return asdict(self)

    def text(self) -> str:
        """Say what was found in a few lines; what is wrong and what to do is said apart."""
        lines = [("verdict", self.verdict), ("format", self.format)]
        if self.arch is not None:
            lines.append(("architecture" if self.ok else "closest", self.arch))
        for name in ("classes", "channels", "lr", "epoch", "normalisation"):
            value = getattr(self, name)
            if value is not None:
                lines.append((name, f"{value:g}" if isinstance(value, float) else str(value)))
        if self.class_names:
            lines.append(("class names", printable(shortened(self.class_names, most=SHOWN))))
        if self.arch is not None:
            lines.append(("matched", f"{self.matched} tensors"))
        for name, tensors in (("missing", self.missing), ("unexpected", self.unexpected)):
            if tensors:
                lines.append((name, printable(shortened(tensors, most=SHOWN))))
        if self.ok:
            lines.append(("next", self.remedy))
        return "\n".join(f"{name:<15}{value}" for name, value in lines)


def diagnose(path: str | Path, *, arch: str | None = None) -> Diagnosis:
    """Say what is in a file of weights; nothing in it is ever executed.

    ``arch`` is the architecture, where the file does not tell. A file that cannot be used gives a
    verdict, not an exception.
    """
    path = weights_file(Path(path))
    try:
        weights, found, *_ = recognise(path, arch=arch)
    except ModelError as error:
        told: dict[str, Any] = {"format": "not looked at", "arch": arch}  # it cannot be built
        if isinstance(error, RefusedError):
            told = {"format": error.kind or file_kind(path)}
            if (closest := error.fit) is not None:
                told |= {"arch": closest.arch, "matched": len(closest.names)}
                told |= {"missing": closest.missing, "unexpected": closest.unexpected}
        told |= {"choices": error.choices, "problem": error.problem, "remedy": error.remedy}
        return Diagnosis(verdict="refused", **told)
    named = "" if arch is None else f" --arch {shlex.quote(arch)}"
    return Diagnosis(
        verdict="ok",
        format=weights.origin.kind,
        arch=found.arch,
        classes=found.classes,
        channels=found.channels,
        lr=weights.lr,
        epoch=weights.epoch,
        normalisation=spelled(weights.mean, weights.std) if weights.mean and weights.std else None,
        class_names=weights.class_names if len(weights.class_names) == found.classes else (),
        matched=len(found.names),
        remedy="Name the dataset: python -m masktune run --dataset KEY --model "
        f"{shlex.quote(str(path))}{named}",
    )


def stored_normalisation(model: str | None) -> str:
    """Return the normalisation that a file of weights states, in the words of ``--normalise``."""
    if model in (None, BUNDLED):
        raise ConfigError(
            "There is no checkpoint file to take the normalisation from.",
            "Give one by --model or --weights, or name the normalisation.",
        )
    path = Path(str(model))
    weights, *_ = recognise(path)
    if weights.mean is None or weights.std is None:
        raise ModelError(
            f"{path.name} does not say how its pictures were normalised.",
            "Name the normalisation that the model was trained with, such as --normalise imagenet.",
        )
    return spelled(weights.mean, weights.std)


def arch_of(path: Path, *, likely: str) -> str:
    """Return the architecture that weights belong to, whatever their last layer is or if any.

    ``likely`` is taken where it fits.

    Raises:
        RefusedError: the file cannot be read safely, or nothing fits, or more than one thing does.
    """
    weights = find_weights(path)
    noted = weights.arch if "classes" in weights.notes else None
    with suppress(ModelError):  # it may be timm's, which need not be here
        if noted in (None, likely) and _is_whole_body(fit(weights.tensors, likely)):
            return likely
    try:
        return _choose(path.name, weights, arch=None).arch
    except RefusedError as error:
        if error.fit is not None and error.choices is None and _is_whole_body(error.fit):
            return error.fit.arch
        raise


def _is_whole_body(found: Fit) -> bool:
    """Tell whether tensors fill an architecture, perhaps without its last layer."""
    return found.whole or (found.headless and not found.unexpected)


def recognise(
    path: Path, *, arch: str | None = None
) -> tuple[Weights, Fit, Origin | None, tuple[int, ...]]:
    """Read a file and find the architecture that its weights fill exactly.

    ``arch`` names it where the file does not; only here, never in a file, may it be code of the
    user's own.

    Returns:
        The weights, how they fit, where they came from, and the class of each logit where a file
        of our own says so.

    Raises:
        RefusedError: the file cannot be read safely, or nothing fits, or more than one thing does.
        ModelError: there is no architecture ``arch``.
    """
    weights = find_weights(path)
    found = _choose(path.name, weights, arch=arch)
    refuse_broken(path.name, {name: weights.tensors[name] for name in found.names}, fit=found)
    return weights, found, _origin(path, weights, found), _class_map(path, weights, found)


def refuse_broken(file: str, tensors: dict[str, Tensor], *, fit: Fit | None = None) -> None:
    """Refuse tensors that do not hold numbers only; ``fit`` is how they fit, where it is known."""
    broken = [name for name, value in tensors.items() if not bool(torch.isfinite(value).all())]
    if broken:
        raise RefusedError(
            f"{file} holds numbers that are infinite or not a number, first in {broken[0]}.",
            "Take a checkpoint from an earlier epoch, before training went wrong.",
            fit=fit,
        )


def _origin(path: Path, weights: Weights, found: Fit) -> Origin | None:
    """Return where weights came from: this file, the one it was made from, or None for here."""
    others = {key: value for key, value in weights.tensors.items() if key not in found.names}
    if "origin" not in weights.notes:
        if "classes" in weights.notes:
            return None
        copies = {key: value.detach().clone() for key, value in others.items()}
        return replace(weights.origin, names=found.names, tensors=copies)
    kept = {key.removeprefix(EXTRA_TENSOR): value for key, value in others.items()}
    try:
        return noted_origin(weights.notes["origin"], kept, state={*found.model.state_dict()})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise RefusedError(
            f"What {path.name} says of the file it was made from is damaged.", FETCH
        ) from error


def _class_map(path: Path, weights: Weights, found: Fit) -> tuple[int, ...]:
    """Return the class of each logit where our own file says so, else nothing."""
    if not {"classes", "pool"} <= {*weights.notes}:
        return ()
    try:
        classes = json.loads(weights.notes["pool"])
    except (ValueError, RecursionError):
        classes = None
    whole = isinstance(classes, list) and all(type(number) is int for number in classes)
    logits = max(found.classes, 2)  # one logit, through a sigmoid, stands for two classes
    if not whole or len(classes) != logits or {*classes} != {*range(len({*classes}))}:
        raise RefusedError(f"What {path.name} says of the classes of its logits is damaged.", FETCH)
    return tuple(classes)


def _choose(name: str, weights: Weights, *, arch: str | None) -> Fit:
    hint = weights.arch
    # Text that names no code at all must not get into a command that we propose.
    if hint is not None and names_code(hint) and not re.fullmatch(r"[\w.]+:[\w.]+", hint):
        hint = None
    if hint is not None and names_code(hint) and hint != arch:
        raise RefusedError(
            f"{name} was made with code of its own, {hint}, which a file may not start.",
            f"If you trust that code, add --arch {hint}.",
            choices=(hint,),
        )
    if arch is not None:
        closest = fit(weights.tensors, arch)
        # What a file of ours notes tells apart architectures with the same tensors.
        noted = hint if "arch" in weights.notes and hint != arch else None
        if closest.whole and noted is None:
            return closest
        others = tuple(other.arch for other in fits(weights.tensors, hint=noted))
        if closest.whole and arch in others:
            return closest
        if not others:
            raise _misfit(name, weights, closest)
        raise RefusedError(
            f"The weights in {name} do not fit {arch}; they fit {' and '.join(others)}.",
            f"Use --arch {others[0]}.",
            fit=closest,
            choices=others,
        )
    found = fits(weights.tensors, hint=hint)
    if not found:
        raise _misfit(name, weights, nearest(weights.tensors))
    if len(found) > 1:
        names = tuple(one.arch for one in found)
        raise RefusedError(
            f"{name} fits {' and '.join(names)} equally well.",
            f"Say which with --arch, such as --arch {names[0]}.",
            fit=found[0],
            choices=names,
        )
    return found[0]


def _misfit(name: str, weights: Weights, closest: Fit | None) -> RefusedError:
    """Say how far the weights are from what comes closest, and what might help."""
    choices: tuple[str, ...] | None = ()
    if closest is None:
        problem = f"{name} does not say which architecture its weights belong to, and no "
        problem += "architecture that we know resembles them."
        remedy = "Name your own model class on the command line: --arch package.module:factory."
    elif closest.headless and not closest.unexpected:
        problem = f"{name} is {closest.arch} without its last layer ({', '.join(closest.missing)})."
        remedy = "Give the weights of the whole classifier, or train a new last layer on these: "
        remedy += f"masktune train --arch {closest.arch} --weights {shlex.quote(name)}."
        choices = None
    elif not closest.unexpected:
        count = len(closest.names) + len(closest.missing)
        problem = f"{name} holds {len(closest.names)} of the {count} tensors of {closest.arch}; "
        problem += f"{shortened(closest.missing, most=NAMED)} are missing."
        remedy = "Save the state dict of the whole model, or name another one with --arch."
    else:
        problem = f"The weights in {name} do not fit {closest.arch}, which comes closest: "
        problem += f"{len(closest.names)} tensors match, {_counted(closest.missing)} are missing, "
        problem += f"{_counted(closest.unexpected)} are unexpected."
        remedy = "Name the architecture it was trained with by --arch."
    if weights.network and not weights.network.startswith("ResNet"):
        remedy = OWN_CLASS.format(network=weights.network, folder=weights.folder)
        return RefusedError(problem, remedy, fit=closest)
    # Without timm its networks cannot be tried, whatever else is near.
    like = next(timm_guesses(weights.tensors), None)
    if like is not None and importlib.util.find_spec("timm") is None:
        remedy = f"It may be timm's {like[1]}: install timm (pip install timm) and try again."
        choices = None
    return RefusedError(problem, remedy, fit=closest, choices=choices)


def _counted(names: tuple[str, ...]) -> str:
    return f"{len(names)} ({shortened(names, most=NAMED)})" if names else "0"
