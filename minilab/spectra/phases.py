"""Where MoCo runs away from its own queue: the rate of a linear model, and a boundary fitted to runs.

The plane is gamma = 1 - m, how far the key encoder moves in a step, against T = K / N, how many steps old the
queue is. Runs of it are the grid `phases`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


def runaway_rate(leak: float, age: float, drive: float) -> float:
    """Growth rate, per step, of the direction that all embeddings share; 0 where it does not grow.

    Queries u are driven away from the mean of the queue, u' = kappa (v - <v>), with v' = gamma (u - v) the key
    encoder's direction and <v> its mean over the last T steps. kappa is `drive`, gamma `leak`, T `age`.
    The rate is the positive root of x (x + gamma) = kappa gamma (1 - (1 - exp(-x T)) / (x T)), which exists
    if and only if T > 2 / kappa, whatever gamma is.
    """
    for name, value in (("leak", leak), ("age", age), ("drive", drive)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}; allowed: a finite number above 0")
    if age * drive <= 2:
        return 0.0

    def surplus(rate: float) -> float:
        x = rate * age
        return drive * leak * (1 + math.expm1(-x) / x) - rate * (rate + leak)

    low, high = 0.0, math.sqrt(drive * leak)  # above it the left side is larger whatever the age
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if surplus(middle) > 0 else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class Boundary:
    """Where half of the runs collapse: log gamma + `exponent` * log T = `level`; `errors` of both by bootstrap."""

    exponent: float
    level: float
    errors: tuple[float, float]
    right: float  # share of the runs that lie on the side the boundary says


def fit_boundary(leak: Sequence[float], age: Sequence[float], collapsed: Sequence[bool], draws: int = 200) -> Boundary:
    """A straight boundary in the plane of log gamma and log T, by logistic regression of the runs on both.

    An exponent of 1 says that gamma T decides, 0 that gamma alone does. Raises `ValueError` unless
    there are runs of both kinds and each of `leak` and `age` has two or more values, all above 0.
    """
    x = np.log(np.array([leak, age], dtype=float).T) if len(leak) == len(age) == len(collapsed) else np.empty((0, 2))
    y = np.asarray(collapsed, dtype=float)
    kinds = len(x) > 0 and np.isfinite(x).all() and 0 < y.mean() < 1 and (np.ptp(x, axis=0) > 0).all()
    if not kinds:
        raise ValueError("leak, age and collapsed: allowed are equally many, numbers above 0, and runs of both kinds")
    whole = _logistic(x, y)
    dice = np.random.default_rng(0)
    found: list[tuple[float, float]] = []
    while len(found) < draws:
        chosen = dice.integers(len(y), size=len(y))
        if 0 < y[chosen].mean() < 1:
            found.append(_line(_logistic(x[chosen], y[chosen])))
    exponent, level = _line(whole)
    errors = np.percentile(found, [16, 84], axis=0)  # half of the middle two thirds: a standard error, outliers or not
    said = (whole[0] + x @ whole[1:] > 0) == (y > 0.5)
    spread = (errors[1] - errors[0]) / 2
    return Boundary(exponent, level, (float(spread[0]), float(spread[1])), float(said.mean()))


def _logistic(x: np.ndarray, y: np.ndarray, ridge: float = 0.05) -> np.ndarray:
    """Weights (3,) of a logistic regression, by Newton's method; a little ridge, for runs that a line separates."""
    rows = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag([0.0, ridge, ridge])
    weights = np.zeros(3)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (chance - y) + penalty @ weights
        curve = (rows * (chance * (1 - chance))[:, None]).T @ rows + penalty + 1e-9 * np.eye(3)
        weights = weights - np.linalg.solve(curve, slope)
    return weights


def _line(weights: np.ndarray) -> tuple[float, float]:
    return float(weights[2] / weights[1]), float(-weights[0] / weights[1])
