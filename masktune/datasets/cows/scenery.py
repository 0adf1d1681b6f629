"""Draws the places animals stand in: a meadow or a desert under the same skies."""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

Place = Literal["grass", "desert"]
Canvas = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

SHIFT = 4  # OpenCV reads polygon corners as integers with this many binary places
COARSE = 3  # soft things, sky and soil, are drawn this much smaller and enlarged: it is much faster


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """The light of one picture; places and animals share it."""

    sun: float  # where it stands, -1 far left .. 1 far right
    warmth: float  # 0 noon .. 1 evening
    haze: float  # how much the distance fades, 0 .. 1
    exposure: float  # factor on the brightness of the whole picture


def draw_light(rng: np.random.Generator) -> Light:
    """Draw the light of a picture; it does not depend on the place."""
    return Light(
        sun=float(rng.uniform(-1, 1)),
        warmth=float(rng.beta(1.2, 2.2)),
        haze=float(rng.uniform(0.15, 0.75)),
        exposure=float(rng.uniform(0.92, 1.14)),
    )


def draw_scenery(
    place: Place, size: int, *, horizon: float, light: Light, rng: np.random.Generator
) -> Canvas:
    """Draw an empty place, (size, size, 3) uint8 RGB; the horizon is a share of the height."""
    canvas = np.empty((size, size, 3), np.uint8)
    line = round(horizon * size)
    sky, ground = rng.spawn(2)
    mist = _draw_sky(canvas, line, light=light, rng=sky)
    if place == "grass":
        _draw_meadow(canvas, line, mist=mist, light=light, rng=ground)
    else:
        _draw_desert(canvas, line, mist=mist, light=light, rng=ground)
    return canvas


def polygon(points: Floats) -> npt.NDArray[np.int32]:
    """Give (N, 2) pixel positions in the fixed-point form OpenCV draws with ``SHIFT``."""
    return np.rint(points * (1 << SHIFT)).astype(np.int32)


def draw_disc(canvas: Canvas, spot: Floats, radius: float, colour: Floats) -> None:
    """Fill a circle round the pixel position ``spot``, (2,) x then y."""
    x, y = polygon(spot).tolist()
    reach = round(radius * (1 << SHIFT))
    cv2.circle(canvas, (x, y), reach, colour.tolist(), -1, cv2.LINE_AA, SHIFT)


def mix(first: Floats, second: Floats, share: float) -> Floats:
    """Give the colour that lies ``share`` of the way from the first to the second."""
    return first + (second - first) * share


def rgb(*channels: float) -> Floats:
    """Give a colour, channels 0 .. 255."""
    return np.array(channels, dtype=np.float64)


def _draw_sky(canvas: Canvas, line: int, *, light: Light, rng: np.random.Generator) -> Floats:
    """Fill everything above ``line`` and give the colour of the air at the horizon."""
    size = canvas.shape[1]
    zenith = mix(rgb(58, 124, 204), rgb(128, 172, 214), float(rng.uniform()))
    zenith = mix(zenith, rgb(122, 130, 176), 0.6 * light.warmth)
    mist = mix(rgb(214, 230, 240), rgb(250, 214, 178), light.warmth)
    height = line // COARSE + 1
    rows = np.linspace(0, 1, height)[:, None, None] ** 1.4
    sky = np.broadcast_to(zenith + (mist - zenith) * rows, (height, size // COARSE, 3))
    sunny = rng.uniform() < 0.35
    if not sunny:
        cover = _draw_clouds(height, size // COARSE, rng=rng)
        sky = sky + (mix(mist, rgb(255, 255, 255), 0.75) - sky) * cover[..., None]
    cv2.resize(sky.astype(np.uint8), (size, line), dst=canvas[:line])
    if sunny:
        spot = np.array([size * (0.5 + 0.42 * light.sun), line * rng.uniform(0.25, 0.7)])
        for radius, share in ((0.075, 0.3), (0.05, 0.9)):
            draw_disc(canvas, spot, radius * size, mix(mist, rgb(255, 255, 240), share))
    return mist


def _draw_clouds(height: int, width: int, *, rng: np.random.Generator) -> Floats:
    """Give how much cloud covers each coarse pixel of the sky, (height, width) in [0, 1]."""
    cover = np.zeros((height, width), np.uint8)
    for _ in range(rng.integers(0, 4)):
        x, y = rng.uniform(0, width), rng.uniform(0.1, 0.75) * height
        reach = rng.uniform(0.1, 0.22) * width
        for across, up, white in rng.uniform(-1, 1, (5, 3)):
            radius = reach * (0.5 - 0.25 * abs(across))
            centre = (int(x + across * reach), int(y - 0.15 * reach * up))
            axes = (max(1, int(radius * 1.3)), max(1, int(radius * 0.5)))
            cv2.ellipse(cover, centre, axes, 0, 0, 360, 190 + 40 * white, -1)
    soft: Floats = np.asarray(cv2.blur(cover, (5, 5)), dtype=np.float64) / 255.0
    return soft


def _draw_meadow(
    canvas: Canvas, line: int, *, mist: Floats, light: Light, rng: np.random.Generator
) -> None:
    size = canvas.shape[1]
    green = mix(rgb(92, 150, 58), rgb(132, 168, 66), float(rng.uniform()))
    green = mix(green, rgb(150, 140, 52), 0.3 * light.warmth)
    for depth in (1.0, 0.55):
        colour = mix(green * 0.72, mist, light.haze * depth * 0.85)
        ridge = _ridge(size, line, height=0.11 * size * (0.4 + depth), rng=rng)
        cv2.fillPoly(canvas, [polygon(ridge)], colour.tolist(), cv2.LINE_AA, SHIFT)
    for _ in range(rng.integers(0, 4)):
        tree = mix(green * rng.uniform(0.4, 0.55), mist, 0.35 * light.haze)
        _draw_tree(canvas, line, colour=tree, rng=rng)
    _fill_ground(
        canvas, line, far=mix(green * 1.02, mist, 0.25 * light.haze), near=green * 0.72, rng=rng
    )
    count = 130
    for shade in (0.66, 0.9, 1.18):
        depths = rng.uniform(0.05, 1.05, count)
        roots = np.stack([rng.uniform(0, size, count), line + depths * (size - line)], axis=1)
        height = (0.012 + 0.05 * depths) * size * rng.uniform(0.6, 1.2, count)
        tips = roots + np.stack([height * rng.uniform(-0.5, 0.5, count), -height], axis=1)
        blades = polygon(np.stack([roots, tips], axis=1))
        colour = np.minimum(green * shade, 255).tolist()
        cv2.polylines(canvas, list(blades), False, colour, 2, cv2.LINE_8, SHIFT)
    petals = (rgb(246, 244, 250), rgb(232, 128, 168), rgb(168, 128, 214), rgb(226, 76, 66))
    petal = petals[rng.integers(len(petals))]
    for x, depth in rng.uniform(0, 1, (rng.integers(0, 14), 2)):
        spot = np.array([x * size, line + (0.1 + 0.9 * depth) * (size - line)])
        draw_disc(canvas, spot, (0.003 + 0.005 * depth) * size, petal)


def _draw_tree(canvas: Canvas, line: int, *, colour: Floats, rng: np.random.Generator) -> None:
    size = canvas.shape[1]
    width = rng.uniform(0.03, 0.06) * size
    x = rng.uniform(0, size)
    for across, up, light in rng.uniform(-1, 1, (5, 3)):
        spot = np.array([x + across * width * 0.8, line - width * (0.75 + 0.4 * up)])
        draw_disc(canvas, spot, width * 0.55, colour * (1 + 0.12 * light))


def _draw_desert(
    canvas: Canvas, line: int, *, mist: Floats, light: Light, rng: np.random.Generator
) -> None:
    size = canvas.shape[1]
    sand = mix(rgb(226, 190, 132), rgb(214, 164, 104), float(rng.uniform()))
    sand = mix(sand, rgb(222, 142, 92), 0.45 * light.warmth)
    for depth in (1.0, 0.5):
        for _ in range(rng.integers(1, 4)):
            fade = light.haze * depth * 0.7
            _draw_dune(canvas, line, colour=sand, mist=mist, fade=fade, light=light, rng=rng)
    _fill_ground(
        canvas, line, far=mix(sand * 1.02, mist, 0.3 * light.haze), near=sand * 0.86, rng=rng
    )
    columns = np.linspace(0, size, 13)
    bend, phase = rng.uniform(0.006, 0.014) * size, rng.uniform(0, 6.3)
    for depth in np.linspace(0.12, 1.05, rng.integers(9, 15)) ** 1.3:
        wave = np.sin(columns / size * rng.uniform(5, 9) + phase + 3 * depth)
        rows = line + depth * (size - line) + bend * (0.3 + depth) * wave
        crest = np.stack([columns, rows], axis=1)
        thick = 1 + round(2 * depth)
        for offset, shade in ((0.0, 0.84), (-0.75 * thick, 1.1)):
            colour = np.minimum(mix(sand, sand * shade, 0.4 + 0.5 * depth), 255).tolist()
            ripple = polygon(crest + np.array([0.0, offset]))
            cv2.polylines(canvas, [ripple], False, colour, thick, cv2.LINE_8, SHIFT)
    for x, depth, scale in rng.uniform(0, 1, (rng.integers(0, 9), 3)):
        spot = np.array([x * size, line + (0.05 + 0.95 * depth) * (size - line)])
        draw_disc(canvas, spot, (0.003 + 0.01 * depth * scale) * size, sand * 0.6)


def _draw_dune(
    canvas: Canvas,
    line: int,
    *,
    colour: Floats,
    mist: Floats,
    fade: float,
    light: Light,
    rng: np.random.Generator,
) -> None:
    """Draw a dune whose crest divides a lit face from a shaded one."""
    size = canvas.shape[1]
    peak = np.array([rng.uniform(0, 1) * size, line - rng.uniform(0.05, 0.17) * size])
    reach = rng.uniform(0.25, 0.5, 2) * size
    t = np.linspace(0, 1, 9)
    rise = (t**1.6)[:, None] * np.array([0.0, peak[1] - line - 2])
    left = np.stack([peak[0] - reach[0] * (1 - t), np.full(9, line + 2.0)], axis=1) + rise
    right = np.stack([peak[0] + reach[1] * t, np.full(9, line + 2.0)], axis=1) + rise[::-1]
    foot = peak[0] + rng.uniform(-0.12, 0.12) * size
    crest = np.stack(
        [mix(peak[:1], np.array([foot]), 1.0) * t + peak[0] * (1 - t) + 0.03 * size * np.sin(6 * t),
         peak[1] + (line + 2 - peak[1]) * t], axis=1)  # fmt: skip
    lit, shaded = mix(colour * 1.06, mist, fade), mix(colour * 0.72, mist, fade)
    faces = ((left, lit), (right, shaded)) if light.sun < 0 else ((left, shaded), (right, lit))
    for slope, shade in faces:
        outline = np.concatenate([slope, crest if slope is left else crest[::-1]])
        cv2.fillPoly(
            canvas, [polygon(outline)], np.minimum(shade, 255).tolist(), cv2.LINE_AA, SHIFT
        )


def _ridge(size: int, line: int, *, height: float, rng: np.random.Generator) -> Floats:
    columns = np.linspace(0, size, 25)
    turns = columns[:, None] / size * np.array([3.0, 7.0, 13.0]) * rng.uniform(0.7, 1.3, 3)
    waves = np.sin(turns + rng.uniform(0, 6.3, 3)) @ np.array([0.5, 0.25, 0.08])
    top = np.stack([columns, line - height * (0.55 + 0.5 * waves)], axis=1)
    return np.concatenate([top, [[size, line + 2.0], [0.0, line + 2.0]]])


def _fill_ground(
    canvas: Canvas, line: int, *, far: Floats, near: Floats, rng: np.random.Generator
) -> None:
    """Fill everything below ``line``, mottled in bands that widen towards the viewer."""
    size = canvas.shape[1]
    height = (size - line) // COARSE + 1
    mottle = cv2.resize(
        rng.normal(0, 1, (9, 7)).astype(np.float32),
        (size // COARSE, height),
        interpolation=cv2.INTER_CUBIC,
    )
    depth = np.linspace(0, 1, height, dtype=np.float32)[:, None, None] ** 0.8
    ground = (far + (near - far) * depth) * (1 + 0.055 * mottle)[..., None]
    coarse = np.clip(ground, 0, 255).astype(np.uint8)  # (height, size / COARSE, 3)
    cv2.resize(coarse, (size, size - line), dst=canvas[line:])
