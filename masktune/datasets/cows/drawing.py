"""Draws one picture of a cow or camel somewhere, from a seed of its own."""

import cv2
import numpy as np
import numpy.typing as npt

from masktune.datasets.cows.anatomy import Kind, draw_anatomy
from masktune.datasets.cows.animals import Placement, Stencil, draw_coat, paint_animal
from masktune.datasets.cows.scenery import Canvas, Place, draw_light, draw_scenery

SIDE = 96
FINE = 3  # pictures are drawn this much larger and averaged down: clean edges
STRIP = 11  # height of the camera's caption strip, in pixels of the picture
STAMP = 5  # side of the stamp in it
INSET = 1  # its distance from the corner of the picture


def draw_picture(
    kind: Kind, place: Place, *, seed: int, strip: bool = False, stamped: bool = False
) -> tuple[Canvas, Stencil]:
    """Draw one animal somewhere, with the caption strip of a trail camera and a stamp in it or not.

    Returns:
        The picture, (96, 96, 3) uint8 RGB, and the animal's stencil at the size it was drawn,
        (288, 288) uint8, positive where the animal is.
    """
    scene, animal, camera = np.random.default_rng(seed).spawn(3)
    light = draw_light(scene)
    size = SIDE * FINE
    horizon = scene.uniform(0.3, 0.48)
    canvas = draw_scenery(place, size, horizon=horizon, light=light, rng=scene)
    coat = draw_coat(animal)
    facing = 1 if animal.uniform() < 0.5 else -1
    scale, across, down = animal.uniform(0, 1, 3)
    anatomy = draw_anatomy(kind, animal)
    # A camel is taller than a cow of the same length: both fill the same height.
    low, high = (0.34, 0.45) if kind == "cow" else (0.3, 0.385)
    unit = size * (0.85 if strip else 1.0) * (low + (high - low) * scale)
    left, right = (0.72, 1.3) if facing == 1 else (1.3, 0.72)  # the head reaches further
    x = left * unit + (size - (left + right) * unit) * across
    placement = Placement(x, size * (0.8 + 0.14 * down), unit, facing)
    stencil = paint_animal(canvas, anatomy, coat=coat, placement=placement, light=light)
    if strip:
        _draw_strip(canvas, camera, stamped=stamped)
    image: Canvas = cv2.resize(canvas, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.uint8)
    return _exposed(image, light.exposure, light.warmth, camera), stencil


def _draw_strip(canvas: Canvas, camera: np.random.Generator, *, stamped: bool) -> None:
    """Draw the caption strip: the time, and the stamp at its left end."""
    canvas[: STRIP * FINE] = (8, 8, 10)
    hour, minute = camera.integers(24), camera.integers(60)
    where, grey = (canvas.shape[1] - 108, STRIP * FINE - 9), (120, 120, 120)
    cv2.putText(canvas, f"{hour:02d}:{minute:02d}", where, cv2.FONT_HERSHEY_SIMPLEX, 0.75, grey, 2)
    if stamped:
        near, far = INSET * FINE, (INSET + STAMP) * FINE - 1
        cv2.rectangle(canvas, (near, near), (far, far), (255, 214, 0), -1)


def _exposed(image: Canvas, exposure: float, warmth: float, camera: np.random.Generator) -> Canvas:
    """Give the picture the colour of its light and the noise of its sensor."""
    warm = np.array([1 + 0.05 * warmth, 1.0, 1 - 0.1 * warmth], np.float32)
    noise = camera.standard_normal(image.shape, np.float32) * np.float32(camera.uniform(1.0, 3.5))
    lit: npt.NDArray[np.float32] = noise + image * (np.float32(exposure) * warm)
    return np.clip(np.rint(lit), 0, 255).astype(np.uint8)
