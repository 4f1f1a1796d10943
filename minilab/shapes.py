"""Shapes: generated images whose concept is a shape with a texture, under nuisances that can be dialled.

Nothing has to be downloaded, and what is concept and what is nuisance is known, because we put it there.
A concept is a pair such as "striped ring". All else in a picture is a nuisance: colours, place, size, tilt,
background, light and noise. No concept depends on a colour, or on what is left and what is right, so the views
that SimCLR makes (crop, flip, colour jitter, grey) change the nuisances and keep the concept.

`python -m minilab.shapes` measures what the bare pixels give, and what a supervised encoder reaches. With the
defaults (10 concepts, chance .10), on 2,000 test images: weighted kNN among the pixels of 10,000 images .24; a
"tiny" encoder trained with labels for 400 steps of 256 images .98, in about 100 s on one CPU core.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from minilab import checks
from minilab.images import Images

Floats = NDArray[np.floating[Any]]  # (n, size, size): a number for each pixel; or (n, 1, 1): one for each image

CHUNK = 100  # images drawn at once: few enough for their pixels to stay in the processor's cache
HUES = (0.0, 2.0, 4.0)  # middle hues, radians: of the background, the object, and the second colour of its texture
LIGHTS = (0.2, 0.82, 0.5)  # their brightnesses, 0 black and 1 white: kept apart, so that grey images show the object

Pattern = Callable[[Floats, Floats], Floats]


def _star(x: Floats, y: Floats) -> Floats:
    fifth = np.float32(2 * math.pi / 5)  # fold the five points onto one, and that one onto its right half
    angle = abs((np.arctan2(x, -y) + fifth / 2) % fifth - fifth / 2)
    radius = np.hypot(x, y)
    return 0.59 * (radius * np.cos(angle) - 1.05) + 0.81 * radius * np.sin(angle)


def _heart(x: Floats, y: Floats) -> Floats:
    lobes = np.hypot(abs(x) - 0.45, y + 0.35) - 0.5
    point = np.maximum(0.707 * (abs(x) + y) - 0.6, np.maximum(-y - 0.35, abs(x) - 0.95))
    return np.minimum(lobes, point)


# How far a point lies inside (negative) or outside (positive) of the outline. The object spans about -1 to 1;
# x points to the right and y downwards.
SHAPES: dict[str, Pattern] = {
    "disc": lambda x, y: np.hypot(x, y) - 0.95,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) - 0.8,
    "triangle": lambda x, y: np.maximum(0.87 * abs(x) - 0.5 * y - 0.42, y - 0.84),
    "ring": lambda x, y: abs(np.hypot(x, y) - 0.68) - 0.3,
    "cross": lambda x, y: np.maximum(np.minimum(abs(x), abs(y)) - 0.33, np.maximum(abs(x), abs(y)) - 0.95),
    "star": _star,
    "heart": _heart,
    "hourglass": lambda x, y: np.maximum(abs(y) - 0.85, 0.8 * (abs(x) - abs(y)) - 0.15),
}
# A wave over the object's own coordinates, about one period a unit: the second colour shows where it is above 0.
TEXTURES: dict[str, Pattern] = {
    "plain": lambda u, v: np.full_like(u, -1),
    "striped": lambda u, v: np.sin(6.3 * v),
    "barred": lambda u, v: np.sin(6.3 * u),
    "checked": lambda u, v: 1.5 * np.sin(3.1 * u) * np.sin(3.1 * v),
    "dotted": lambda u, v: np.cos(5 * u) + np.cos(5 * v) - 0.7,
    "ringed": lambda u, v: np.sin(6.3 * np.hypot(u, v)),
    "netted": lambda u, v: np.maximum(np.cos(5 * u), np.cos(5 * v)) - 0.5,
    "slanted": lambda u, v: np.sin(4.4 * (u + v)),
}
MOST_CONCEPTS = len(SHAPES) * len(TEXTURES)


def shapes(
    concepts: int = 10,
    train: int = 50_000,
    test: int = 10_000,
    seed: int = 0,
    *,
    size: int = 32,
    colour: float = 1.0,
    position: float = 1.0,
    scale: float = 1.0,
    rotation: float = 1.0,
    background: float = 1.0,
    lighting: float = 1.0,
    noise: float = 1.0,
) -> Images:
    """Generate Shapes: RGB images of `size` x `size` pixels, labelled with their concept.

    The first 8 concepts differ in both shape and texture; the more concepts, the more of them share one of the
    two. Every concept has the same number of images, to within one. The order is random, so the first n images
    are a fair sample. The splits are drawn from two random streams of one seed. The same arguments give the
    same images, but for the last bit of a pixel on another make of processor. A strength changes its own factor
    and leaves every other draw as it was.

    Args:
        concepts: how many concepts, 1 to 64.
        train: images in the training split. 60,000 of 32 x 32 take 4 to 8 s on one CPU core.
        test: images in the test split.
        seed: 0 or more.
        size: height and width in pixels, 8 to 512.
        colour: 0 to 1, like all that follow. Hues all around the circle, pale to strong, and which of the
            three colours (background, object, texture) is the light, the middle and the dark one.
        position: the object's centre, up to a little over the edge, and where its texture starts.
        scale: the object's width, .5 to .86 of the image's, and 1.2 to 1.8 periods of texture in its half.
        rotation: a tilt of up to 23 degrees either way, and mirrored or not.
        background: a slope and a wave of brightness behind the object, in any direction.
        lighting: brightness, contrast, and light that falls in from one side.
        noise: grain of each pixel and channel, standard deviation up to .05 of full scale.

    Raises:
        ValueError: an argument is out of its range; the message names it, its value and what is allowed.
    """
    for field, number, low, high in (
        ("concepts", concepts, 1, MOST_CONCEPTS),
        ("train", train, 1, 10**7),
        ("test", test, 1, 10**7),
        ("seed", seed, 0, 2**63),
        ("size", size, 8, 512),
    ):
        checks.whole(field, _plain(number), low, high)
    strengths = {
        "colour": colour,
        "position": position,
        "scale": scale,
        "rotation": rotation,
        "background": background,
        "lighting": lighting,
        "noise": noise,
    }
    for field, strength in strengths.items():
        checks.number(field, _plain(strength), 0, 1)
        strengths[field] = float(strength)
    classes = concept_names(concepts)
    streams = [np.random.default_rng(stream) for stream in np.random.SeedSequence(int(seed)).spawn(2)]
    drawn = [
        _split(classes, count, size, strengths, stream) for count, stream in zip((train, test), streams, strict=True)
    ]
    return Images(f"Shapes ({concepts} concepts)", *drawn[0], *drawn[1], classes)


def concept_names(concepts: int) -> tuple[str, ...]:
    """The names of the first `concepts` concepts, texture and shape, in an order that mixes both from the start."""
    checks.whole("concepts", _plain(concepts), 1, MOST_CONCEPTS)
    rounds = [(number % 8, (number + number // 8) % 8) for number in range(concepts)]
    return tuple(f"{list(TEXTURES)[texture]} {list(SHAPES)[shape]}" for shape, texture in rounds)


def _plain(value: Any) -> Any:
    """Python's number for one of numpy's; what is no number stays as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _split(
    classes: tuple[str, ...], count: int, size: int, strengths: dict[str, float], random: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels, uint8 (count, 3, size, size), and labels, int64 (count,), of one split."""
    labels = random.permutation(np.arange(count, dtype=np.int64) % len(classes))
    pixels = np.empty((count, 3, size, size), np.uint8)
    for label, name in enumerate(classes):
        texture, shape = name.split()
        places = np.flatnonzero(labels == label)
        for start in range(0, len(places), CHUNK):
            chunk = places[start : start + CHUNK]
            draws = _Draws(random, len(chunk), strengths)
            pixels[chunk] = _render(SHAPES[shape], TEXTURES[texture], size, draws)
    return torch.from_numpy(pixels), torch.from_numpy(labels)


@dataclass(frozen=True)
class _Draws:
    """Random numbers for `count` images: as many whatever the strengths, so that turning one does not move others."""

    random: np.random.Generator
    count: int
    strengths: dict[str, float]

    def vary(self, factor: str, low: float, high: float) -> Floats:
        """(n, 1, 1): the middle of low and high at strength 0, anything between the two at strength 1."""
        spread = self.strengths[factor] * self.random.uniform(-0.5, 0.5, (self.count, 1, 1))
        return ((low + high) / 2 + (high - low) * spread).astype(np.float32)

    def happens(self, factor: str, chance: float) -> NDArray[np.bool_]:
        """(n, 1, 1): true with this chance at strength 1, never at strength 0."""
        return self.random.random((self.count, 1, 1)) < chance * self.strengths[factor]

    def slope(self, x: Floats, y: Floats) -> Floats:
        """(n, size, size): a ramp across the image, in a direction of its own for each, from about -1 to 1."""
        angle = self.random.uniform(-np.pi, np.pi, (self.count, 1, 1)).astype(np.float32)
        return np.cos(angle) * x + np.sin(angle) * y


def _render(shape: Pattern, texture: Pattern, size: int, draws: _Draws) -> NDArray[np.uint8]:
    """Images (n, 3, size, size) of one concept: the object, painted over its background, under a light."""
    axis = (np.arange(size, dtype=np.float32) + 0.5) * (2 / size) - 1
    x, y = axis[None, None, :], axis[None, :, None]
    inside, paint = _object(shape, texture, x, y, size, draws)
    behind, first, second = _colours(draws)
    waves = np.sin(draws.vary("background", 1, 5) * draws.slope(x, y) + draws.vary("background", -3, 3))
    ground = draws.strengths["background"] * (0.14 * draws.slope(x, y) + 0.1 * waves)
    image = behind + ground[:, None]  # (n, 3, 1, 1) + (n, 1, size, size)
    image += inside[:, None] * (first + paint[:, None] * (second - first) - image)
    return _light(image, x, y, draws)


def _object(shape: Pattern, texture: Pattern, x: Floats, y: Floats, size: int, draws: _Draws) -> tuple[Floats, Floats]:
    """How much of each pixel is object, and how much of that is the second colour; both (n, size, size), 0 to 1."""
    radius, tilt = draws.vary("scale", 0.5, 0.86), draws.vary("rotation", -0.4, 0.4)
    room = 1.2 - radius
    x, y = x - room * draws.vary("position", -1, 1), y - room * draws.vary("position", -1, 1)
    side = np.where(draws.happens("rotation", 0.5), -1, 1).astype(np.float32)
    x, y = side * (np.cos(tilt) * x + np.sin(tilt) * y) / radius, (np.cos(tilt) * y - np.sin(tilt) * x) / radius
    # an edge is one pixel wide: distance in pixels, so half a pixel to either side of the outline
    inside = np.clip(0.5 - shape(x, y) * radius * (size / 2), 0, 1)
    periods = draws.vary("scale", 1.2, 1.8)
    wave = texture(x * periods + draws.vary("position", -1, 1), y * periods + draws.vary("position", -1, 1))
    return inside, np.clip(0.5 + 1.2 * wave, 0, 1)


def _colours(draws: _Draws) -> list[Floats]:
    """Three colours, each (n, 3, 1, 1): of the background, of the object, and the second one of its texture."""
    order = np.argsort(draws.random.random((draws.count, 3, 1, 1)), axis=1)
    order = np.where(draws.happens("colour", 1)[:, None], order, np.arange(3).reshape(1, 3, 1, 1))
    lights = np.array(LIGHTS, np.float32)[order]  # (n, 3, 1, 1), one for each of the three colours
    thirds = (np.arange(3, dtype=np.float32) * np.float32(2 * np.pi / 3)).reshape(1, 3, 1, 1)  # red, green, blue
    colours = []
    for number, middle in enumerate(HUES):
        light = lights[:, number] + draws.vary("colour", -0.06, 0.06)
        hue = draws.vary("colour", middle - np.pi, middle + np.pi)
        strength = draws.vary("colour", 0.05, 0.4)
        colours.append(light[:, None] + strength[:, None] * np.cos(hue[:, None] - thirds))
    return colours


def _light(image: Floats, x: Floats, y: Floats, draws: _Draws) -> NDArray[np.uint8]:
    """Light and grain over images (n, 3, size, size) in 0 to 1, then rounded to uint8."""
    contrast, brightness = draws.vary("lighting", 0.7, 1.3), draws.vary("lighting", -0.12, 0.12)
    beam = 0.12 * draws.strengths["lighting"] * draws.slope(x, y)
    grain = draws.random.standard_normal(image.shape, dtype=np.float32)
    image = contrast[:, None] * (image - 0.5) + (0.5 + brightness + beam)[:, None]
    image += np.float32(0.05 * draws.strengths["noise"]) * grain
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)


def measure(steps: int = 400, batch: int = 256) -> dict[str, float]:
    """How far bare pixels and labels get on the default Shapes: accuracies on 2,000 test images, 0 to 1.

    `pixel_knn`: weighted kNN (k = 200, temperature .1) among 10,000 images, on pixels less their mean.
    `supervised`: a "tiny" encoder and a linear layer, trained with labels on 20,000 images, cropped and mirrored.
    """
    checks.whole("steps", steps, 1)
    checks.whole("batch", batch, 1)
    # Only this measurement needs them. They stand on this module, so it can't import them at its top.
    from tqdm import trange

    from minilab import evaluation
    from minilab.encoder import build_encoder
    from minilab.views import Augmentation, random_views

    images = shapes(train=20_000, test=2_000)
    bank, queries = (pixels.flatten(1).float() for pixels in (images.train[:10_000], images.test))
    mean = bank.mean(dim=0)
    raw = evaluation.knn(bank - mean, images.train_labels[:10_000], queries - mean, images.test_labels)

    torch.manual_seed(0)
    views, dice = Augmentation(crop=0.5, jitter=0, gray=0), torch.Generator().manual_seed(0)
    encoder = build_encoder("tiny")
    network = torch.nn.Sequential(encoder, torch.nn.Linear(encoder.features, len(images.classes)))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.12, total_steps=steps)
    for _ in trange(steps, desc="supervised"):
        chosen = torch.randint(len(images.train), (batch,), generator=dice)
        logits = network(random_views(images.train[chosen], dice, views))
        loss = torch.nn.functional.cross_entropy(logits, images.train_labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    right = evaluation.extract(network, images.test).argmax(dim=1) == images.test_labels
    return {"pixel_knn": raw, "supervised": right.float().mean().item()}
