"""The build and pose of cows and camels seen from the side, as outlines without pixels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from masktune.datasets.cows.scenery import Floats

Kind = Literal["cow", "camel"]


@dataclass(frozen=True, slots=True)
class Limb:
    """A tapering tube: (N, 2) points along it and (N,) widths."""

    points: Floats
    widths: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """An animal facing right; x runs forwards, y upwards, the feet stand at y = 0.

    One unit is about the length of the trunk. Outlines are (N, 2), limbs run from root to tip.
    """

    trunk: Floats
    neck: Limb
    head: Floats
    muzzle: Floats  # the pale end of the head
    eye: Floats  # (2,)
    ear: Limb
    horns: tuple[Limb, ...]  # none for a camel
    far_legs: tuple[Limb, ...]  # the two behind the trunk
    near_legs: tuple[Limb, ...]  # the two in front of it
    tail: Limb
    udder: Floats | None


def draw_anatomy(kind: Kind, rng: np.random.Generator) -> Anatomy:
    """Draw the build and the pose of a cow or a camel."""
    return _cow(rng) if kind == "cow" else _camel(rng)


def _cow(rng: np.random.Generator) -> Anatomy:
    legs = rng.uniform(0.44, 0.56)  # height of the belly
    depth = rng.uniform(0.5, 0.6)
    back = legs + depth
    trunk = np.array([
        [-0.60, back - 0.06], [-0.52, back + 0.02], [-0.2, back - 0.03], [0.15, back - 0.01],
        [0.42, back + 0.05], [0.60, back - 0.12], [0.64, legs + 0.22], [0.50, legs + 0.02],
        [0.1, legs - 0.03], [-0.25, legs], [-0.45, legs + 0.08], [-0.62, legs + 0.22],
    ])  # fmt: skip
    grazing = rng.uniform() < 0.25
    reach, lift = (0.36, -0.48) if grazing else (0.36, rng.uniform(-0.02, 0.24))
    root = np.array([0.46, back - 0.2])
    poll = root + [reach + rng.uniform(-0.04, 0.05), lift + 0.06]
    tilt = rng.uniform(-1.2, -0.9) if grazing else rng.uniform(-0.75, -0.35)
    skull = [
        [-0.08, 0.06], [0.0, 0.13], [0.14, 0.12], [0.34, 0.09], [0.43, 0.05], [0.45, -0.07],
        [0.36, -0.13], [0.22, -0.13], [0.08, -0.17], [-0.08, -0.12],
    ]  # fmt: skip
    placed = _placing(poll, tilt, rng.uniform(0.95, 1.12))
    horn = rng.uniform(0.15, 0.24)
    bow = rng.uniform(0.04, 0.12)
    horns = tuple(
        Limb(
            base + np.array([[0.0, 0.0], [side * bow, 0.5 * horn], [side * bow * 0.5, horn]]),
            np.array([0.09, 0.07, 0.025]),
        )
        for base, side in zip(placed([[0.0, 0.1], [0.06, 0.1]]), (-1.0, 1.0), strict=True)
    )
    ear = Limb(
        placed([-0.02, 0.05])
        + np.array([[0.0, 0.0], [-0.1, 0.0], [-0.2, rng.uniform(-0.08, 0.03)]]),
        np.array([0.07, 0.11, 0.04]),
    )
    drop = rng.uniform(0.35, 0.5)
    sway = rng.uniform(-0.1, 0.08)
    tail = np.array([[-0.58, back - 0.05], [-0.68, back - 0.15], [-0.68 + sway, back - drop]])
    udder = np.array([[-0.42, 0.1], [-0.38, -0.1], [-0.28, -0.13], [-0.18, -0.09], [-0.12, 0.06]])
    return Anatomy(
        trunk=smooth(trunk),
        neck=Limb(_curve(root, root + [0.15, 0.5 * lift], poll), np.linspace(0.46, 0.27, 6)),
        head=smooth(placed(skull)),
        muzzle=smooth(placed([[0.33, 0.1], [0.5, 0.07], [0.5, -0.1], [0.33, -0.15]])),
        eye=placed([0.12, 0.03]),
        ear=ear,
        horns=horns,
        far_legs=_legs((-0.42, 0.46), legs + 0.16, foot=0.05, widths=(0.2, 0.15), rng=rng),
        near_legs=_legs((-0.48, 0.40), legs + 0.18, foot=0.0, widths=(0.27, 0.16), rng=rng),
        tail=Limb(tail, np.array([0.05, 0.035, 0.03])),
        udder=smooth(udder + [0.0, legs]),
    )


def _camel(rng: np.random.Generator) -> Anatomy:
    legs = rng.uniform(0.76, 0.94)
    depth = rng.uniform(0.44, 0.53)
    back = legs + depth
    humps = ((-0.02, 0.25),) if rng.uniform() < 0.5 else ((-0.27, 0.14), (0.22, 0.14))
    height = rng.uniform(0.24, 0.38)
    x = np.linspace(-0.5, 0.5, 17)
    spine = back - 0.05 - 0.12 * (x - 0.05) ** 2 / 0.3
    for centre, width in humps:
        spine = np.maximum(spine, back - 0.08 + height * np.exp(-(((x - centre) / width) ** 2)))
    under = [
        [0.62, back - 0.2], [0.60, legs + 0.08], [0.42, legs - 0.05], [0.1, legs + 0.02],
        [-0.2, legs + 0.1], [-0.45, legs + 0.14], [-0.60, legs + 0.24], [-0.58, back - 0.12],
    ]  # fmt: skip
    trunk = np.concatenate([np.stack([x, spine], axis=1), under])
    root = np.array([0.48, back - 0.22])
    low = rng.uniform() < 0.2
    rise = rng.uniform(0.2, 0.4) if low else rng.uniform(0.55, 0.8)
    poll = root + [rng.uniform(0.62, 0.72) if low else rng.uniform(0.44, 0.62), rise]
    throat = root + [0.42, -0.22]
    skull = [
        [-0.07, 0.04], [0.0, 0.1], [0.12, 0.09], [0.26, 0.06], [0.37, 0.03], [0.39, -0.06],
        [0.33, -0.1], [0.22, -0.09], [0.08, -0.12], [-0.07, -0.1],
    ]  # fmt: skip
    placed = _placing(poll, rng.uniform(-0.35, 0.05), rng.uniform(0.95, 1.1))
    ear = Limb(
        placed([-0.02, 0.06])
        + np.array([[0.0, 0.0], [-0.05, 0.06], [-0.1, rng.uniform(0.06, 0.13)]]),
        np.array([0.06, 0.07, 0.03]),
    )
    drop = rng.uniform(0.28, 0.42)
    tail = np.array([[-0.56, back - 0.14], [-0.64, back - 0.26], [-0.63, back - 0.1 - drop]])
    return Anatomy(
        trunk=smooth(trunk),
        neck=Limb(_curve(root, throat, poll), np.linspace(0.34, 0.17, 6)),
        head=smooth(placed(skull)),
        muzzle=smooth(placed([[0.29, 0.09], [0.42, 0.05], [0.42, -0.1], [0.29, -0.12]])),
        eye=placed([0.1, 0.03]),
        ear=ear,
        horns=(),
        far_legs=_legs((-0.42, 0.44), legs + 0.14, foot=0.05, widths=(0.19, 0.13), rng=rng),
        near_legs=_legs((-0.48, 0.38), legs + 0.16, foot=0.0, widths=(0.25, 0.14), rng=rng),
        tail=Limb(tail, np.array([0.05, 0.03, 0.03])),
        udder=None,
    )


def _legs(
    hips: tuple[float, float],
    height: float,
    *,
    foot: float,
    widths: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[Limb, ...]:
    """Give the hind and the front leg of one side; hocks bend backwards, knees forwards.

    They hang at ``height`` and stand on ``foot``: the far side a little higher in the picture.
    """
    thigh, shin = widths
    legs = []
    for hip, bend in zip(hips, (-0.05, 0.03), strict=True):
        stride = rng.uniform(-0.17, 0.17)
        lift = foot + max(0.0, rng.uniform(-0.12, 0.05))
        knee = [hip + 0.45 * stride + bend, 0.46 * height]
        ankle = [hip + 0.95 * stride, 0.1 * height + lift]
        points = [[hip, height], knee, ankle, [hip + stride + 0.03, lift + 0.02]]
        legs.append(
            Limb(np.array(points), np.array([thigh, 0.75 * shin, 0.62 * shin, 0.95 * shin]))
        )
    return tuple(legs)


def smooth(outline: Floats) -> Floats:
    """Round the corners of a closed (N, 2) outline by cutting each of them twice."""
    for _ in range(2):
        following = np.concatenate([outline[1:], outline[:1]])
        near, far = 0.75 * outline + 0.25 * following, 0.25 * outline + 0.75 * following
        outline = np.hstack([near, far]).reshape(-1, 2)
    return outline


def _curve(start: Floats, control: Floats, end: Floats) -> Floats:
    t = np.linspace(0, 1, 6)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end


def _placing(poll: Floats, tilt: float, size: float) -> Callable[[ArrayLike], Floats]:
    """Return what puts (..., 2) points of a level head of size 1 where the head is."""
    cos, sin = np.cos(tilt), np.sin(tilt)
    turn = np.array([[cos, sin], [-sin, cos]])
    return lambda points: poll + size * np.asarray(points) @ turn
