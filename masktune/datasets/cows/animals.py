"""Paints cows and camels: the same coats, light and shadow for both."""

from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from masktune.datasets.cows.anatomy import Anatomy, Limb, smooth
from masktune.datasets.cows.scenery import (
    COARSE,
    SHIFT,
    Canvas,
    Floats,
    Light,
    draw_disc,
    mix,
    polygon,
    rgb,
)

Stencil = npt.NDArray[np.uint8]
"""(H, W), 255 where something is painted and 0 elsewhere."""

Colour = float | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Coat:
    """What an animal wears: the same choices for both kinds, so it never tells them apart."""

    base: Floats  # its colour
    patch: Floats  # the colour of its patches
    patches: tuple[Floats, ...]  # (N, 2) outlines round the middle of the trunk


COATS = np.array([
    [238.0, 230, 216], [206, 164, 112], [176, 122, 74], [132, 78, 48],
    [150, 64, 40], [96, 72, 58], [62, 56, 56], [150, 142, 136],
])  # fmt: skip


def draw_coat(rng: np.random.Generator) -> Coat:
    """Draw a coat; it is told nothing about the animal that will wear it."""
    base, patch = rng.choice(len(COATS), 2, replace=False)
    tint = rng.uniform(0.97, 1.03, 3) * rng.uniform(0.9, 1.08)
    patches: tuple[Floats, ...] = ()
    if rng.uniform() < 0.45:
        patches = tuple(_draw_patch(rng) for _ in range(rng.integers(4, 8)))
    return Coat(np.minimum(COATS[base] * tint, 250), np.minimum(COATS[patch] * tint, 250), patches)


def _draw_patch(rng: np.random.Generator) -> Floats:
    turns = np.arange(7) / 7 * 2 * np.pi
    radii = rng.uniform(0.1, 0.26) * rng.uniform(0.6, 1.4, 7)
    centre = rng.uniform((-0.65, -0.3), (1.1, 0.4))
    return smooth(centre + radii[:, None] * np.stack([1.25 * np.cos(turns), np.sin(turns)], axis=1))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an animal stands on the canvas."""

    x: float  # pixel column of the middle of its trunk
    y: float  # pixel row its feet stand on
    unit: float  # pixels of one unit of its anatomy
    facing: int  # 1 right, -1 left

    def pixels(self, points: Floats) -> Floats:
        """Move (..., 2) anatomical points to pixel columns and rows."""
        return points * [self.unit * self.facing, -self.unit] + [self.x, self.y]


def paint_animal(
    canvas: Canvas, anatomy: Anatomy, *, coat: Coat, placement: Placement, light: Light
) -> Stencil:
    """Paint an animal and the shadow it casts onto ``canvas``, (S, S, 3) uint8 RGB, in place.

    Returns:
        (S, S) uint8, 255 on the animal and 0 elsewhere; its shadow is not part of it.
    """
    far = np.zeros(canvas.shape[:2], np.uint8)
    for limb in (*anatomy.far_legs, anatomy.tail, anatomy.ear, *anatomy.horns):
        _fill_limb(far, limb, placement, 255.0)
    if anatomy.udder is not None:
        _fill(far, anatomy.udder, placement, 255.0)
    near = np.zeros_like(far)
    for limb in (*anatomy.near_legs, anatomy.neck):
        _fill_limb(near, limb, placement, 255.0)
    for outline in (anatomy.trunk, anatomy.head):
        _fill(near, outline, placement, 255.0)
    whole = far | near

    _cast_shadow(canvas, whole, placement=placement, light=light)
    for limb in (*anatomy.far_legs, anatomy.tail):
        _fill_limb(canvas, limb, placement, tuple((coat.base * 0.58).tolist()))
    end = placement.pixels(anatomy.tail.points[-1])
    draw_disc(canvas, end, 0.05 * placement.unit, coat.base * 0.4)
    if anatomy.udder is not None:
        _fill(canvas, anatomy.udder, placement, (206.0, 146.0, 138.0))
    _paint_coat(canvas, near, anatomy=anatomy, coat=coat, placement=placement, light=light)
    for limb in (*anatomy.far_legs, *anatomy.near_legs):
        foot = Limb(limb.points[-1] + [[-0.02, 0.0], [0.03, 0.0]], limb.widths[-1:].repeat(2) * 0.8)
        _fill_limb(canvas, foot, placement, (52.0, 44.0, 40.0))
    for horn in anatomy.horns:
        _fill_limb(canvas, horn, placement, (236.0, 226.0, 202.0))
    _fill_limb(canvas, anatomy.ear, placement, tuple((coat.base * 0.78).tolist()))
    eye = placement.pixels(anatomy.eye)
    draw_disc(canvas, eye, 0.028 * placement.unit, rgb(20, 16, 16))
    return whole


def _paint_coat(
    canvas: Canvas,
    near: Stencil,
    *,
    anatomy: Anatomy,
    coat: Coat,
    placement: Placement,
    light: Light,
) -> None:
    """Paint all that ``near`` covers with the coat, and round it by the light."""
    x, y, width, height = cv2.boundingRect(near)
    box = np.s_[y : y + height, x : x + width]
    within = replace(placement, x=placement.x - x, y=placement.y - y)
    fur: npt.NDArray[Any] = np.empty((height, width, 3), np.uint8)
    fur[:] = coat.base
    middle = anatomy.trunk.mean(axis=0) * [0.0, 1.0]
    for patch in coat.patches:
        _fill(fur, middle + patch, within, tuple(coat.patch.tolist()))
    snout = mix(coat.base, rgb(214, 184, 168), 0.55)
    _fill(fur, anatomy.muzzle, within, tuple(snout.tolist()))

    # The blurred stencil falls off towards the edges like the surface of a rounded body: its
    # slope along the light tells lit edges from shaded ones. It is smooth, so coarse will do.
    size = (width // COARSE + 1, height // COARSE + 1)
    small = cv2.resize(near[box], size, interpolation=cv2.INTER_AREA)
    bulk: npt.NDArray[Any] = small.astype(np.float32) / 255
    blur = 2 * round(0.16 * placement.unit / COARSE) + 1
    bulk = cv2.blur(cv2.blur(bulk, (blur, blur)), (blur, blur))
    down = cv2.Sobel(bulk, cv2.CV_32F, 0, 1) * (blur / 8)
    right = cv2.Sobel(bulk, cv2.CV_32F, 1, 0) * (blur / 8)
    shade: npt.NDArray[Any] = 0.98 + np.clip(
        0.42 * (0.9 * down - 0.5 * light.sun * right), -0.42, 0.3
    )
    shade = cv2.resize(shade, (width, height))
    fur = cv2.multiply(fur, cv2.merge([shade, shade, shade]), dtype=cv2.CV_8U)
    cv2.copyTo(fur, near[box], canvas[box])


def _cast_shadow(canvas: Canvas, whole: Stencil, *, placement: Placement, light: Light) -> None:
    """Darken the ground where the animal, laid down away from the sun, would cover it."""
    slant, flat = 0.6 * light.sun, 0.16 + 0.06 * light.warmth
    size = canvas.shape[1]
    top = max(0, int(placement.y - 2.2 * placement.unit * flat))
    lay = np.array(
        [[1.0, -slant, slant * placement.y], [0.0, flat, placement.y * (1 - flat) - top]]
    )
    shadow = cv2.warpAffine(whole, lay, (size, size - top))
    shade = 1 - cv2.blur(shadow, (5, 5)).astype(np.float32) * (0.42 / 255)
    ground = canvas[top:]
    cv2.multiply(ground, cv2.merge([shade, shade, shade]), dst=ground, dtype=cv2.CV_8U)


def _fill(canvas: Canvas, outline: Floats, placement: Placement, colour: Colour) -> None:
    corners = polygon(placement.pixels(outline))
    cv2.fillPoly(canvas, [corners], colour, cv2.LINE_8, SHIFT)


def _fill_limb(canvas: Canvas, limb: Limb, placement: Placement, colour: Colour) -> None:
    """Fill a limb as a chain of quadrilaterals with a disc at every joint."""
    points = placement.pixels(limb.points)
    radii = 0.5 * limb.widths * placement.unit
    along = points[1:] - points[:-1]
    across = along[:, ::-1] * [-1.0, 1.0] / np.hypot(along[:, 0], along[:, 1])[:, None]
    start, end = across * radii[:-1, None], across * radii[1:, None]
    corners = np.hstack(
        [points[:-1] + start, points[1:] + end, points[1:] - end, points[:-1] - start]
    ).reshape(-1, 4, 2)
    for quadrilateral in polygon(corners):
        cv2.fillConvexPoly(canvas, quadrilateral, colour, cv2.LINE_8, SHIFT)
    reaches = np.rint(radii * (1 << SHIFT)).astype(int).tolist()
    for (x, y), reach in zip(polygon(points).tolist(), reaches, strict=True):
        cv2.circle(canvas, (x, y), reach, colour, -1, cv2.LINE_8, SHIFT)
