"""Shapes: generated images whose concept is a shape with a texture, under nuisances that can be dialled.

Nothing has to be downloaded, and what is concept and what is nuisance is known, because we put it there.
A concept is a pair such as "striped ring". Everything else in a picture is a nuisance: colours, place, size,
tilt, background, light and noise. No concept depends on a colour or on left and right, so the views that
SimCLR makes (crop, flip, colour jitter, grey) keep the concept and change the nuisances.

`python -m minilab.shapes` measures what the pixels alone give, and what a supervised encoder reaches.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from minilab.images import Images

Plane = NDArray[np.float32]  # (n, size, size): one number for each pixel of n images
Column = NDArray[np.float32]  # (n, 1, 1): one number for each image, ready to broadcast over its pixels

CHUNK = 500  # images drawn at once: 500 planes of 32 x 32 floats stay in the processor's cache

# Shapes. Each function says how far a point lies inside (negative) or outside (positive) of the outline, for
# coordinates in which the object spans about -1 to 1, x to the right and y downwards.


def _disc(x: Plane, y: Plane) -> Plane:
    return np.hypot(x, y) - 0.95


def _square(x: Plane, y: Plane) -> Plane:
    return np.maximum(abs(x), abs(y)) - 0.8


def _triangle(x: Plane, y: Plane) -> Plane:
    return np.maximum(0.87 * abs(x) - 0.5 * y - 0.42, y - 0.84)


def _ring(x: Plane, y: Plane) -> Plane:
    return abs(np.hypot(x, y) - 0.68) - 0.3


def _cross(x: Plane, y: Plane) -> Plane:
    across, along = np.minimum(abs(x), abs(y)), np.maximum(abs(x), abs(y))
    return np.maximum(across - 0.33, along - 0.95)


def _star(x: Plane, y: Plane) -> Plane:
    # fold the plane onto half of one of five points, then measure from the straight edge of that point
    fold = np.float32(2 * np.pi / 5)
    angle = abs((np.arctan2(x, -y) + fold / 2) % fold - fold / 2)
    radius = np.hypot(x, y)
    return 0.59 * (radius * np.cos(angle) - 1.05) + 0.81 * radius * np.sin(angle)


def _heart(x: Plane, y: Plane) -> Plane:
    lobe = np.hypot(abs(x) - 0.45, y + 0.35) - 0.5
    point = np.maximum((abs(x) + y) * 0.707 - 0.6, -y - 0.35)
    return np.minimum(lobe, np.maximum(point, abs(x) - 0.95))


def _hourglass(x: Plane, y: Plane) -> Plane:
    return np.maximum(abs(y) - 0.85, 0.8 * (abs(x) - abs(y)) - 0.15)


# Textures. Each gives how much of the second colour a point gets: 0 none, 1 all of it. u and v are the
# object's own coordinates in units of one period of the texture.


def _edge(wave: Plane) -> Plane:
    """A soft-edged step: 0 where the wave is well below zero, 1 where it is well above."""
    return np.clip(0.5 + 1.2 * wave, 0, 1)


def _plain(u: Plane, v: Plane) -> Plane:
    return np.zeros_like(u)


def _striped(u: Plane, v: Plane) -> Plane:
    return _edge(np.sin(2 * np.pi * v))


def _barred(u: Plane, v: Plane) -> Plane:
    return _edge(np.sin(2 * np.pi * u))


def _checked(u: Plane, v: Plane) -> Plane:
    return _edge(1.5 * np.sin(np.pi * u) * np.sin(np.pi * v))


def _dotted(u: Plane, v: Plane) -> Plane:
    return _edge(np.cos(5 * u) + np.cos(5 * v) - 0.7)


def _ringed(u: Plane, v: Plane) -> Plane:
    return _edge(np.sin(2 * np.pi * np.hypot(u, v)))


def _netted(u: Plane, v: Plane) -> Plane:
    return _edge(np.maximum(np.cos(5 * u), np.cos(5 * v)) - 0.5)


def _slanted(u: Plane, v: Plane) -> Plane:
    return _edge(np.sin(4.44 * (u + v)))


SHAPES: dict[str, Callable[[Plane, Plane], Plane]] = {
    "disc": _disc, "square": _square, "triangle": _triangle, "ring": _ring,
    "cross": _cross, "star": _star, "heart": _heart, "hourglass": _hourglass,
}
TEXTURES: dict[str, Callable[[Plane, Plane], Plane]] = {
    "plain": _plain, "striped": _striped, "barred": _barred, "checked": _checked, "dotted": _dotted,
    "ringed": _ringed, "netted": _netted, "slanted": _slanted,
}
MOST = len(SHAPES) * len(TEXTURES)


def concept_names(concepts: int) -> tuple[str, ...]:
    """The first `concepts` pairs of texture and shape, in an order that mixes both from the start."""
    shapes, textures = list(SHAPES), list(TEXTURES)
    rounds = [(k % len(shapes), (k + k // len(shapes)) % len(textures)) for k in range(MOST)]
    return tuple(f"{textures[t]} {shapes[s]}" for s, t in rounds[:concepts])


def shapes(concepts: int = 10, train: int = 50_000, test: int = 10_000, seed: int = 0, *, size: int = 32,
           colour: float = 1.0, position: float = 1.0, scale: float = 1.0, rotation: float = 1.0,
           background: float = 1.0, lighting: float = 1.0, noise: float = 1.0) -> Images:
    strengths = dict(colour=colour, position=position, scale=scale, rotation=rotation,
                     background=background, lighting=lighting, noise=noise)
    names = concept_names(concepts)
    streams = np.random.SeedSequence(seed).spawn(2)
    pixels, labels = zip(*(_split(names, count, size, strengths, np.random.default_rng(stream))
                           for count, stream in zip((train, test), streams, strict=True)), strict=True)
    return Images(f"Shapes ({concepts} concepts)", pixels[0], labels[0], pixels[1], labels[1], names)


def _split(names, count, size, strengths, random):
    labels = random.permutation(np.arange(count) % len(names))
    pixels = np.empty((count, 3, size, size), np.uint8)
    for concept, name in enumerate(names):
        texture, shape = name.split()
        for places in _chunks(np.flatnonzero(labels == concept)):
            pixels[places] = _draw(SHAPES[shape], TEXTURES[texture], len(places), size, strengths, random)
    return torch.from_numpy(pixels), torch.from_numpy(labels)


def _chunks(places):
    return [places[start:start + CHUNK] for start in range(0, len(places), CHUNK)]


def _draw(shape, texture, n, size, strengths, random):
    def vary(strength: str, low: float, high: float) -> Column:
        """n numbers around the middle of [low, high], spread over all of it at strength 1."""
        middle, half = (low + high) / 2, (high - low) / 2
        return (middle + strengths[strength] * random.uniform(-half, half, (n, 1, 1))).astype(np.float32)

    axis = (np.arange(size, dtype=np.float32) + 0.5) * (2 / size) - 1
    px, py = axis[None, None, :], axis[None, :, None]
    radius = vary("scale", 0.52, 0.84)
    room = 1.08 - radius
    tilt = vary("rotation", -0.35, 0.35)
    dx, dy = px - room * vary("position", -1, 1), py - room * vary("position", -1, 1)
    side = np.where(random.random((n, 1, 1)) < strengths["rotation"] / 2, -1, 1).astype(np.float32)
    x = side * (np.cos(tilt) * dx + np.sin(tilt) * dy) / radius
    y = (np.cos(tilt) * dy - np.sin(tilt) * dx) / radius
    inside = np.clip(0.5 - shape(x, y) * radius * (size / 2), 0, 1)
    waves = vary("scale", 1.2, 1.8)
    paint = texture(x * waves + vary("position", -1, 1), y * waves + vary("position", -1, 1))

    # three brightnesses well apart, for background, first and second colour of the object, in any order
    slots = np.tile(np.array([0.2, 0.82, 0.5], np.float32), (n, 1))
    mixed = random.random(n) < strengths["colour"]
    slots[mixed] = random.permuted(slots[mixed], axis=1)

    def colour(slot: int) -> NDArray[np.float32]:
        hue = vary("colour", -np.pi, np.pi) + 2 * slot
        chroma = vary("colour", 0.05, 0.3)
        thirds = np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1) * np.float32(2 * np.pi / 3)
        light = slots[:, slot].reshape(n, 1, 1) + vary("colour", -0.06, 0.06)
        return light[:, None] + chroma[:, None] * np.cos(hue[:, None] - thirds)

    way = random.uniform(-np.pi, np.pi, (2, n, 1, 1)).astype(np.float32)
    slope = np.cos(way[0]) * px + np.sin(way[0]) * py
    ripple = np.sin(vary("background", 2, 8) * (np.cos(way[1]) * px + np.sin(way[1]) * py) + 3 * way[0])
    ground = strengths["background"] * (0.08 * slope + 0.08 * ripple)
    image = colour(0) + ground[:, None]
    paint, inside = paint[:, None], inside[:, None]
    ink = colour(1) * (1 - paint) + colour(2) * paint
    image += inside * (ink - image)
    turn = random.uniform(-np.pi, np.pi, (n, 1, 1)).astype(np.float32)
    light = vary("lighting", -0.12, 0.12) + strengths["lighting"] * 0.12 * (np.cos(turn) * px + np.sin(turn) * py)
    image = (image - 0.5) * vary("lighting", 0.7, 1.3)[:, None] + 0.5 + light[:, None]
    grain = random.standard_normal(image.shape, dtype=np.float32)
    image += np.float32(0.06 * strengths["noise"]) * grain
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)
