"""From a file to weights that fit an architecture, or to the reason why not."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from masktune.checkpoints.blueprint import blueprints
from masktune.checkpoints.find import Weights, find_weights
from masktune.checkpoints.fit import Fit, fit, fits, nearest, not_finite
from masktune.checkpoints.origin import EXTRA_TENSOR, Origin
from masktune.checkpoints.read import read
from masktune.checkpoints.refusal import RefusedError
from masktune.checkpoints.sniff import FETCH
from masktune.models.build import TIMM, names_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """Weights that fit.

    Attributes:
        kind: what kind of file they came in.
        weights: as the file has them.
        fit: the architecture, and which tensor goes where.
        origin: the layout to give tuned weights back in.
        pool: the class of each logit where the file says so, else empty.
    """

    kind: str
    weights: Weights
    fit: Fit
    origin: Origin
    pool: tuple[int, ...] = ()


def recognise(path: Path, *, arch: str | None = None) -> Recognised:
    """Read a file and find the architecture that its weights fill exactly.

    Args:
        path: of the file.
        arch: the architecture, where the file does not name it; only here, never in a file, may it
            name code of the user's own.

    Raises:
        RefusedError: the file cannot be read safely, or nothing fits, or more than one thing does.
        ModelError: there is no architecture ``arch``.
    """
    content = read(path)
    weights = find_weights(content, name=path.name)
    found = _choose(path.name, weights, kind=content.kind, arch=arch, noted="arch" in content.notes)
    broken = not_finite(found, weights.tensors)
    if broken is not None:
        raise RefusedError(
            f"{path.name} holds numbers that are infinite or not a number, first in {broken}.",
            "Take a checkpoint from an earlier epoch, before training went wrong.",
            kind=content.kind,
            arch=found.arch,
            matched=len(found.names),
        )
    return Recognised(
        kind=content.kind,
        weights=weights,
        fit=found,
        origin=_origin(path, content.kind, weights, found, content.notes.get("origin")),
        pool=_pool(path, content.kind, found, content.notes),
    )


def _pool(path: Path, kind: str, found: Fit, notes: dict[str, str]) -> tuple[int, ...]:
    if "classes" not in notes or "pool" not in notes:
        return ()
    try:
        pool = json.loads(notes["pool"])
    except ValueError:
        pool = None
    whole = isinstance(pool, list) and all(type(number) is int for number in pool)
    # Every class from 0 up has a logit, and every logit a class.
    if not whole or len(pool) != found.classes or {*pool} != {*range(len({*pool}))}:
        raise RefusedError(
            f"What {path.name} says of the classes of its logits is damaged.", FETCH, kind=kind
        )
    return tuple(pool)


def _choose(name: str, weights: Weights, *, kind: str, arch: str | None, noted: bool) -> Fit:
    hint = weights.arch
    # Text that names no code at all must not get into a command that we propose.
    if hint is not None and names_code(hint) and not re.fullmatch(r"[\w.]+:[\w.]+", hint):
        hint = None
    if hint is not None and names_code(hint) and hint != arch:
        raise RefusedError(
            f"{name} was made with code of its own, {hint}, which a file may not start.",
            f"If you trust that code, add --arch {hint}.",
            kind=kind,
        )
    told = noted and hint is not None and (hint in blueprints() or hint.startswith(TIMM))
    if arch is not None and not told:
        return _chosen(name, weights, kind=kind, arch=arch)
    found = fits(weights.tensors, hint=hint)
    if len(found) == 1:
        return found[0]
    if found:
        names = [one.arch for one in found]
        raise RefusedError(
            f"{name} fits {' and '.join(names)} equally well.",
            f"Say which with --arch, such as --arch {names[0]}.",
            kind=kind,
            matched=len(found[0].names),
        )
    raise _misfit(name, nearest(weights.tensors), kind=kind)


def _chosen(name: str, weights: Weights, *, kind: str, arch: str) -> Fit:
    one = fit(weights.tensors, arch)
    if one.whole:
        return one
    others = [other.arch for other in fits(weights.tensors, hint=None)]
    if not others:
        raise _misfit(name, one, kind=kind)
    raise RefusedError(
        f"The weights in {name} do not fit {arch}; they fit {' and '.join(others)}.",
        f"Use --arch {others[0]}.",
        kind=kind,
        arch=arch,
        matched=len(one.names),
        missing=one.missing,
        unexpected=one.unexpected,
    )


def _misfit(name: str, closest: Fit | None, *, kind: str) -> RefusedError:
    if closest is None:
        return RefusedError(
            f"{name} does not say which architecture its weights belong to, and no architecture "
            "that we know resembles them.",
            "Name your own model class on the command line: --arch package.module:factory.",
            kind=kind,
        )
    arch, matched = closest.arch, len(closest.names)
    if closest.headless and not closest.unexpected:
        problem = f"{name} is {arch} without its last layer ({', '.join(closest.missing)})."
        remedy = "Give the weights of the whole classifier; a backbone alone cannot classify."
    elif not closest.unexpected:
        count = matched + len(closest.missing)
        problem = (
            f"{name} holds {matched} of the {count} tensors of {arch}; {closest.missing[0]} is the "
            "first that is missing."
        )
        remedy = "Save the state dict of the whole model, or name another one with --arch."
    else:
        problem = (
            f"The weights in {name} do not fit {arch}, which comes closest: {matched} tensors "
            f"match, {len(closest.missing)} are missing, {len(closest.unexpected)} are unexpected."
        )
        remedy = "Name the architecture it was trained with by --arch."
    return RefusedError(
        problem,
        remedy,
        kind=kind,
        arch=arch,
        matched=matched,
        missing=closest.missing,
        unexpected=closest.unexpected,
    )


def _origin(path: Path, kind: str, weights: Weights, found: Fit, note: str | None) -> Origin:
    others = {key: value for key, value in weights.tensors.items() if key not in found.names}
    if note is None:
        return Origin(
            kind=kind,
            suffix=".pth.tar" if path.name.endswith(".pth.tar") else path.suffix,
            path=weights.path,
            names=found.names,
            extras=weights.extras,
            tensors={key: value.detach().clone() for key, value in others.items()},
        )
    kept = {key.removeprefix(EXTRA_TENSOR): value for key, value in others.items()}
    try:
        return Origin.from_note(note, kept, state=found.model.state_dict())
    except (ValueError, TypeError, AttributeError) as error:
        raise RefusedError(
            f"What {path.name} says of the file it was made from is damaged.", FETCH, kind=kind
        ) from error
