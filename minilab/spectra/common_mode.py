"""The direction that all embeddings share, step by step: the linear system whose rate `phases.runaway_rate` predicts.

Queries u are driven away from the mean of the queue, u' = kappa (v - <v>_T); the key encoder follows, v' = gamma
(u - v); <v>_T is the mean of v over the last T steps. minilab/textbook/plane.js is the same on the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from minilab.checks import shown
from minilab.spectra.checks import above_zero, series, whole

PARTS = 8  # of a step: the queue's mean is a sum over so many places a step
START = 1e-3  # the largest value at the start, when the queue holds random vectors
OLDEST, LONGEST = 1_000_000, 1_000_000  # steps: minutes, not days
LARGEST = 690.0  # of the exponent of growth, so that no value leaves float64


def common_mode(leak: float, age: int, drive: float, steps: int) -> list[float]:
    """u after 0, 1, ... `steps` steps, a list of steps + 1 numbers without unit, from a small start.

    `leak` gamma and `drive` kappa per step, `age` T in whole steps. At the start u, v and the queue hold numbers
    of at most 0.001, always the same. Heun's method with eight parts a step and the trapezoidal rule over the queue,
    which keeps its mean age at T / 2. Raises `ValueError` naming the argument, also where u could leave float64.
    """
    _check(leak, age, drive, steps)
    part, length = 1 / PARTS, age * PARTS
    start = _numbers(length + 2)
    u, v = start[0], start[1]
    queue = [v, *start[2:]]  # a ring: v now and one entry for each part of the last T steps
    newest, total = 0, sum(queue)
    found = [u]
    for number in range(steps * PARTS):
        oldest = queue[(newest + 1) % (length + 1)]
        next_oldest = queue[(newest + 2) % (length + 1)]
        mean = (total - (v + oldest) / 2) / length
        up, vp = drive * (v - mean), leak * (u - v)
        ahead, key = u + part * up, v + part * vp
        mean = (total - oldest + key - (key + next_oldest) / 2) / length
        u += part * (up + drive * (key - mean)) / 2
        v += part * (vp + leak * (ahead - key)) / 2
        newest = (newest + 1) % (length + 1)
        total += v - queue[newest]
        queue[newest] = v
        if (number + 1) % PARTS == 0:
            found.append(u)
    return found


def growth_rate(values: Sequence[float]) -> float:
    """Slope, per step, of log |u| over the second half of `values`: the rate once the start is forgotten.

    Raises `ValueError` if there are fewer than four values, or one is not finite.
    """
    if len(values) < 4:
        raise ValueError(f"values has {len(values)} numbers; allowed: 4 or more")
    series("values", values, 4, most=1e308)
    half = len(values) // 2
    lengths = [math.log(abs(value) or 5e-324) for value in values[half:]]
    return float(np.polyfit(np.arange(len(lengths)), lengths, 1)[0])


def _numbers(count: int) -> list[float]:
    """`count` numbers from -START to START by a generator that JavaScript can repeat (Numerical Recipes, 7.1)."""
    state, found = 1, []
    for _ in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        found.append(START * (2 * state / 2**32 - 1))
    return found


def _check(leak: float, age: int, drive: float, steps: int) -> None:
    for name, value in (("leak", leak), ("drive", drive)):
        if not above_zero(value, most=1):
            raise ValueError(f"{name} is {shown(value)}; allowed: above 0, at most 1")
    for name, count, most in (("age", age, OLDEST), ("steps", steps, LONGEST)):
        if not whole(count, 1, most):
            raise ValueError(f"{name} is {shown(count)}; allowed: a whole number, 1 or more, at most {most:,}")
    longest = int(LARGEST / math.sqrt(leak * drive))  # no rate is above sqrt(gamma kappa)
    if steps > longest:
        raise ValueError(f"steps is {steps}; allowed: at most {longest} with this leak and drive")
