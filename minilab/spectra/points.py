"""Points on a circle, trained by SimCLR or MoCo: the smallest model in which a queue can run away.

An image is 8 numbers x, the encoder is linear, z = normalize(c + W x) in the plane, and training is plain gradient
descent. The bias c moves all points together: that is the direction in which a cloud can flee its own old keys.
(c, W) is rescaled to length 1 after each step. That moves no point, as z does not change with the scale, and keeps
the steps from shrinking: each step lengthens the weights, so without it the learning rate would fade.
`minilab/textbook/points.js` is the same program for the page, step for step, down to the random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minilab.checks import shown
from minilab.spectra.checks import above_zero, whole

Array = NDArray[np.float64]
NUMBERS = 8  # in an image
DIFFERENCE = 0.4  # standard deviation, between images, of each of them
NOISE = 0.04  # standard deviation, between views of one image
CENTRED = 0.1  # a mean of the points that is shorter than this has no direction worth following
MOST = 100_000_000  # numbers at once
LIMITS = {"batch": (1, 64), "queue": (1, 512), "images": (2, 64), "seed": (0, 2**32 - 1)}  # whole numbers
RANGES = {"momentum": (0.0, 1.0), "temperature": (0.01, 10.0), "rate": (0.0, 100.0), "width": (0.001, 10.0)}


@dataclass(frozen=True)
class Setting:
    """One run. `rate`: the learning rate. `width`: standard deviation of W at the start; near 0 is almost one point.

    SimCLR uses neither `queue` nor `momentum`. A field out of its range raises `ValueError`.
    """

    method: str = "moco"
    batch: int = 8
    queue: int = 256
    momentum: float = 0.99
    temperature: float = 0.2
    rate: float = 0.1
    images: int = 12
    width: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in ("simclr", "moco"):
            raise ValueError(f"method is {self.method!r}; allowed: simclr, moco")
        for name, (least, most) in {**LIMITS, **RANGES}.items():
            value = getattr(self, name)
            whole = "a whole number" if name in LIMITS else "a number"
            fits = isinstance(value, int) or (name in RANGES and isinstance(value, float))
            if isinstance(value, bool) or not fits or not least <= value <= most:
                raise ValueError(f"{name} is {shown(value)}; allowed: {whole} from {least} to {most}")
        if self.method == "simclr" and self.batch < 2:
            raise ValueError(f"batch is {self.batch}; allowed: 2 or more, as SimCLR's negatives are the other images")

    @property
    def negatives(self) -> int:
        """Negatives of an anchor: 2N - 2 in SimCLR, K in MoCo."""
        return 2 * self.batch - 2 if self.method == "simclr" else self.queue

    @property
    def guess(self) -> float:
        """Loss in nats of an encoder that knows nothing, log(negatives + 1)."""
        return math.log(self.negatives + 1)


class Random:
    """Numbers that JavaScript can draw too: Tommy Ettinger's mulberry32, a mix of a 32-bit counter.

    Raises `ValueError` if the seed is no whole number of 32 bits, or a count is not from 1 to 100,000,000.
    """

    def __init__(self, seed: int) -> None:
        least, most = LIMITS["seed"]
        if not whole(seed, least, most):
            raise ValueError(f"seed is {shown(seed)}; allowed: a whole number from {least} to {most}")
        self.counter = seed

    def uniform(self, count: int) -> Array:
        """`count` numbers from 0 to 1, 1 excluded."""
        if not whole(count, 1, MOST):
            raise ValueError(f"count is {shown(count)}; allowed: a whole number from 1 to {MOST:,}")
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x6D2B79F5) + np.uint64(self.counter)
        a = steps.astype(np.uint32)
        self.counter = int(a[-1])
        t = (a ^ (a >> 15)) * (a | 1)  # 32-bit products, which wrap as JavaScript's Math.imul does
        t = (t + (t ^ (t >> 7)) * (t | 61)) ^ t
        return (t ^ (t >> 14)) / 2.0**32

    def normal(self, rows: int, columns: int) -> Array:
        """(rows, columns) of standard normal numbers, two uniform ones for each (Box and Muller)."""
        for name, value in (("rows", rows), ("columns", columns)):
            if not whole(value, 1, MOST):
                raise ValueError(f"{name} is {shown(value)}; allowed: a whole number from 1 to {MOST:,}")
        u = self.uniform(2 * rows * columns).reshape(rows, columns, 2)
        return np.sqrt(-2 * np.log(1 - u[..., 0])) * np.cos(2 * np.pi * u[..., 1])


def embed(weights: Array, images: Array) -> tuple[Array, Array]:
    """Unit vectors (N, 2) of images (N, 9), whose first number is 1, and the lengths (N, 1) before division."""
    if weights.ndim != 2 or images.ndim != 2 or weights.shape[1] != images.shape[1]:
        raise ValueError(f"images has the shape {images.shape}, weights {weights.shape}; allowed: (N, n) and (2, n)")
    long = images @ weights.T
    length = np.linalg.norm(long, axis=1, keepdims=True)
    if not length.all():
        raise ValueError("images holds one whose embedding is 0; allowed: images that have a direction")
    return long / length, length


def moco_loss(queries: Array, keys: Array, queue: Array, temperature: float) -> tuple[float, Array]:
    """Loss of unit queries (N, 2) against their keys and the queue (K, 2), and its gradient at the queries."""
    _check_temperature(temperature)
    if queries.ndim != 2 or queries.shape != keys.shape or queue.shape[1:] != keys.shape[1:] or not len(queries):
        shapes = f"{queries.shape}, {keys.shape} and {queue.shape}"
        raise ValueError(f"queries, keys and queue have the shapes {shapes}; allowed: (N, 2), (N, 2) and (K, 2)")
    logits = np.concatenate([(queries * keys).sum(1, keepdims=True), queries @ queue.T], axis=1) / temperature
    share, total = _softmax(logits)  # (N, K + 1)
    pull = share[:, :1] * keys + share[:, 1:] @ queue - keys  # what the softmax expects, less what is right
    return float((total - logits[:, 0]).mean()), pull / (temperature * len(queries))


def simclr_loss(z: Array, temperature: float) -> tuple[float, Array]:
    """Loss of unit vectors (2N, 2), rows i and i + N of one image, and its gradient: each is anchor and candidate."""
    _check_temperature(temperature)
    if z.ndim != 2 or len(z) % 2 or len(z) < 4:
        raise ValueError(f"z has the shape {z.shape}; allowed: (2N, 2), N of 2 or more")
    rows, partner = np.arange(len(z)), np.roll(np.arange(len(z)), len(z) // 2)
    logits = z @ z.T / temperature
    logits[rows, rows] = -np.inf
    share, total = _softmax(logits)  # (2N, 2N)
    loss = float((total - logits[rows, partner]).mean())
    share[rows, partner] -= 1
    return loss, (share + share.T) @ z / (temperature * len(z))


def _check_temperature(temperature: float) -> None:
    if not above_zero(temperature):
        raise ValueError(f"temperature is {shown(temperature)}; allowed: a finite number above 0")


def _softmax(logits: Array) -> tuple[Array, Array]:
    top = logits.max(axis=1, keepdims=True)
    powers = np.exp(logits - top)
    total = powers.sum(axis=1, keepdims=True)
    return powers / total, (np.log(total) + top)[:, 0]


def _rescaled(weights: Array) -> Array:
    return weights / np.sqrt((weights * weights).sum())


class Points:
    """A run in progress. `step()` trains; `gauges()` says how the points lie; `queue` (K, 2) holds the old keys.

    `weights`, `key_weights`: (2, 9), c in front of W. `oldest`: the row of the queue that goes next.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, self.random = setting, Random(setting.seed)
        self.images = np.hstack(
            [np.ones((setting.images, 1)), DIFFERENCE * self.random.normal(setting.images, NUMBERS)]
        )
        turn = 2 * np.pi * self.random.uniform(1)  # where the bias points
        slopes = setting.width * self.random.normal(2, NUMBERS)
        self.weights = _rescaled(np.hstack([np.array([np.cos(turn), np.sin(turn)]), slopes]))
        self.key_weights = self.weights.copy()
        turns = 2 * np.pi * self.random.uniform(setting.queue)
        self.queue = np.stack([np.cos(turns), np.sin(turns)], axis=1)  # random at first, as in MoCo's code
        self.oldest, self.steps, self.loss, self.turns = 0, 0, math.nan, 0.0
        self.mean = self.points().mean(axis=0)

    def points(self) -> Array:
        """Every image without noise, in the query encoder: (images, 2)."""
        return embed(self.weights, self.images)[0]

    def views(self) -> tuple[Array, Array]:
        """Two noisy views of `batch` images, each drawn with replacement: (N, 9) twice."""
        size = self.setting.batch
        chosen = self.images[(self.random.uniform(size) * self.setting.images).astype(int)]
        first, second = chosen.copy(), chosen.copy()
        first[:, 1:] += NOISE * self.random.normal(size, NUMBERS)
        second[:, 1:] += NOISE * self.random.normal(size, NUMBERS)
        return first, second

    def gradient(self, first: Array, second: Array) -> tuple[float, Array, Array]:
        """The loss of two views (N, 9), its gradient at the weights (2, 9), and the keys (N, 2), in MoCo's sense."""
        keys = embed(self.key_weights, second)[0]
        images = first if self.setting.method == "moco" else np.concatenate([first, second])
        z, length = embed(self.weights, images)
        if self.setting.method == "moco":
            loss, pull = moco_loss(z, keys, self.queue, self.setting.temperature)
        else:
            loss, pull = simclr_loss(z, self.setting.temperature)
        pull = (pull - (pull * z).sum(axis=1, keepdims=True) * z) / length  # a unit vector can only turn
        return loss, pull.T @ images, keys

    def step(self, count: int = 1) -> None:
        """Train for `count` steps: descend, move the key encoder, then replace the oldest keys."""
        if not whole(count, 0, 1_000_000):
            raise ValueError(f"count is {shown(count)}; allowed: a whole number from 0 to 1,000,000")
        for _ in range(count):
            self.loss, slope, keys = self.gradient(*self.views())
            self.weights = _rescaled(self.weights - self.setting.rate * slope)
            if self.setting.method == "moco":
                self.key_weights = self.setting.momentum * self.key_weights + (1 - self.setting.momentum) * self.weights
                self._push(keys)
            self.steps += 1
            self._follow()

    def _push(self, keys: Array) -> None:
        for key in keys:
            self.queue[self.oldest] = key
            self.oldest = (self.oldest + 1) % len(self.queue)

    def _follow(self) -> None:
        """Add to `turns` what the mean of the points has turned, the short way round, where it has a direction."""
        before, self.mean = self.mean, self.points().mean(axis=0)
        if min(np.hypot(*before), np.hypot(*self.mean)) >= CENTRED:
            cross = before[0] * self.mean[1] - before[1] * self.mean[0]
            self.turns += math.atan2(cross, before @ self.mean) / (2 * math.pi)

    def gauges(self) -> dict[str, float]:
        """`spread` (1 all round the circle, 0 one point), `mean` (its length), `turns`, `loss`, `guess`, `steps`."""
        return {
            "spread": float(self.points().std(axis=0).mean() * math.sqrt(2)),
            "mean": float(np.hypot(*self.mean)),
            "turns": self.turns,
            "loss": self.loss,
            "guess": self.setting.guess,
            "steps": self.steps,
        }
