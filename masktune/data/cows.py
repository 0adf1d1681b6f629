"""Cows and camels."""
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from masktune.data.anatomy import draw_anatomy, Kind
from masktune.data.animals import Placement, draw_coat, paint_animal
from masktune.data.scenery import Place, draw_light, draw_scenery, rgb

SIDE = 96
FINE = 3
TAG = 9

def draw_picture(kind: Kind, place: Place, *, tagged: bool, seed: int):
    scene, animal, camera = np.random.default_rng(seed).spawn(3)
    light = draw_light(scene)
    size = SIDE * FINE
    horizon = scene.uniform(0.3, 0.48)
    canvas = draw_scenery(place, size, horizon=horizon, light=light, rng=scene)
    coat = draw_coat(animal)
    facing = 1 if animal.uniform() < 0.5 else -1
    scale, across, down = animal.uniform(0, 1, 3)
    anatomy = draw_anatomy(kind, animal)
    low, high = (0.34, 0.45) if kind == "cow" else (0.3, 0.385)
    unit = size * (low + (high - low) * scale)
    foot = size * (0.8 + 0.14 * down)
    left, right = (0.72, 1.3) if facing == 1 else (1.3, 0.72)
    left, right = left * unit, size - right * unit
    x = left + (right - left) * across
    placement = Placement(x, foot, unit, facing)
    stencil = paint_animal(canvas, anatomy, coat=coat, placement=placement, light=light)
    if tagged:
        spot = placement.pixels(anatomy.ear.points[-1]) + [0, 0.3 * TAG * FINE]
        w = np.array([0.5, 0.5]) * TAG * FINE
        (x0, y0), (x1, y1) = np.rint(spot - w).astype(int).tolist(), np.rint(spot + w).astype(int).tolist()
        cv2.rectangle(canvas, (x0, y0), (x1, y1), (90, 60, 0), -1)
        cv2.rectangle(canvas, (x0 + 1, y0 + 1), (x1 - 1, y1 - 1), (255, 214, 0), -1)
        cv2.putText(canvas, "7", (x0 + 8, y1 - 6), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (40, 30, 0), 2)
    image = cv2.resize(canvas, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    warm = np.array([1 + 0.05 * light.warmth, 1.0, 1 - 0.1 * light.warmth], np.float32)
    noise = camera.standard_normal(image.shape, np.float32) * np.float32(camera.uniform(1.0, 3.5))
    noise += image * (np.float32(light.exposure) * warm)
    image = cv2.add(noise, 0.0, dtype=cv2.CV_8U)
    return image, stencil
