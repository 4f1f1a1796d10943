"""Where MoCo runs away from its own queue: the rate of a linear model, small runs, and a boundary fitted to runs.

The plane is gamma = 1 - m, how far the key encoder moves in a step, against T = K / N, how many steps old the
queue is. Runs of it on real networks are the grid `phases`; `small_runs` takes a second for each age.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from minilab.checks import shown
from minilab.geometry import spread
from minilab.losses import chance_loss, normalize
from minilab.spectra.checks import above_zero, matrix, series, whole

SIZES = (64, 128, 128, 32)  # of the small network's layers
EVERY = 50  # steps between two measurements of it


def runaway_rate(leak: float, age: float, drive: float) -> float:
    """Growth rate, per step, of the direction that all embeddings share; 0 where it does not grow.

    Queries u are driven away from the mean of the queue, u' = kappa (v - <v>), with v' = gamma (u - v) the key
    encoder's direction and <v> its mean over the last T steps. kappa is `drive`, gamma `leak`, T `age`.
    The rate is the positive root of x (x + gamma) = kappa gamma (1 - (1 - exp(-x T)) / (x T)), which exists
    if and only if T > 2 / kappa, whatever gamma is.
    """
    for name, value in (("leak", leak), ("age", age), ("drive", drive)):
        if not above_zero(value):
            raise ValueError(f"{name} is {shown(value)}; allowed: a finite number above 0, from 1e-100 to 1e100")
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


def small_images(images: Tensor) -> Tensor:
    """Images (N, C, H, W), uint8, to gray values (N, 64) from 0 to 4 of 8 x 8 patches. Not centred: all are alike."""
    if images.ndim != 4 or images.dtype != torch.uint8 or not images.numel():
        raise ValueError(f"images is {images.dtype} {tuple(images.shape)}; allowed: uint8 (N, C, H, W)")
    gray = images.float().mean(dim=1, keepdim=True) / 255
    return 4 * F.adaptive_avg_pool2d(gray, 8).flatten(1)


@dataclass(frozen=True)
class SmallRuns:
    """What `small_runs` measured; every `EVERY` steps, but the loss at each."""

    loss: Tensor  # (runs, steps), as a share of log(K + 1)
    spread: Tensor  # (runs, marks), of the embeddings of the first 300 inputs: 0 for one point
    centre: Tensor  # (runs, marks, dim), their mean


def small_runs(
    inputs: Tensor,
    age: int,
    leaks: Sequence[float],
    rates: Sequence[float],
    *,
    norm: bool = False,
    steps: int = 400,
    batch: int = 32,
    seed: int = 0,
) -> SmallRuns:
    """MoCo by a perceptron without norm layers, side by side for each pair of `leaks` (1 - m) and learning `rates`.

    `inputs`: (N, 64). `age`: of the queue in steps. A view is an input plus noise of standard deviation 1; all runs
    start alike and see the same. SGD with momentum 0.9, temperature 0.1. `norm`: a batch norm without
    weights at the end, of queries and of keys. Raises `ValueError` for an age below 1, few steps or unequal lengths.
    """
    if not whole(age, 1, 100_000) or len(leaks) != len(rates) or not len(leaks):
        raise ValueError(f"age is {age}, leaks {leaks!r}, rates {rates!r}; allowed: 1 or more, and equally many")
    if not whole(steps, EVERY, 1_000_000):
        raise ValueError(f"steps is {steps}; allowed: {EVERY} or more, so that something is measured")
    _check_small(inputs, leaks, rates, batch, seed)
    dice, runs = Generator().manual_seed(seed), len(leaks)
    leak, rate = torch.tensor(leaks)[:, None, None], torch.tensor(rates)[:, None, None]
    query = _small_network(runs, dice)
    key, speed = [weight.clone() for weight in query], [torch.zeros_like(weight) for weight in query]
    queue = normalize(torch.randn(1, age * batch, SIZES[-1], generator=dice)).repeat(runs, 1, 1)
    losses, spreads, centres = [], [], []
    for step in range(1, steps + 1):
        seen = inputs[torch.randint(len(inputs), (batch,), generator=dice)]
        views = seen + torch.randn(2, *seen.shape, generator=dice)
        keys = _embed(key, views[1], norm)
        loss, slopes = _loss_and_slopes(query, views[0], keys, queue, norm)
        for weight, pushed, slope, follower in zip(query, speed, slopes, key, strict=True):
            weight.sub_(rate * pushed.mul_(0.9).add_(slope))
            follower.lerp_(weight, leak)
        queue = torch.cat([queue[:, batch:], keys], dim=1)
        losses.append(loss / chance_loss(age * batch))
        if step % EVERY == 0:
            shown = _embed(query, inputs[:300], norm)
            spreads.append(torch.tensor([spread(of_run) for of_run in shown]))
            centres.append(shown.mean(dim=1))
    return SmallRuns(torch.stack(losses, dim=1), torch.stack(spreads, dim=1), torch.stack(centres, dim=1))


def _check_small(inputs: Tensor, leaks: Sequence[float], rates: Sequence[float], batch: int, seed: int) -> None:
    matrix("inputs", inputs)
    if inputs.shape[1] != SIZES[0] or inputs.dtype != torch.float32:
        raise ValueError(f"inputs is {inputs.dtype} {tuple(inputs.shape)}; allowed: float32 (N, {SIZES[0]})")
    for name, values, most in (("leaks", leaks, 1.0), ("rates", rates, 100.0)):
        if (series(name, values) < 0).any() or (series(name, values) > most).any():
            raise ValueError(f"{name} is {shown(values)}; allowed: numbers from 0 to {most:g}")
    for name, value, least, greatest in (("batch", batch, 1, 100_000), ("seed", seed, 0, 2**63 - 1)):
        if not whole(value, least, greatest):
            raise ValueError(f"{name} is {shown(value)}; allowed: a whole number from {least} to {greatest}")


def _small_network(runs: int, dice: Generator) -> list[Tensor]:
    """Each layer's weight (runs, in, out), then its bias (runs, 1, out), as torch's Linear starts; runs start alike."""
    weights = []
    for inside, outside in itertools.pairwise(SIZES):
        for rows in (inside, 1):
            draw = torch.rand(1, rows, outside, generator=dice)
            weights.append(((2 * draw - 1) / math.sqrt(inside)).repeat(runs, 1, 1))
    return weights


def _embed(network: list[Tensor], inputs: Tensor, norm: bool) -> Tensor:
    """Unit embeddings (runs, n, dim) of inputs (n, 64)."""
    x = inputs.expand(len(network[0]), -1, -1)
    for place in range(0, len(network), 2):
        x = torch.baddbmm(network[place + 1], F.relu(x) if place else x, network[place])
    if norm:
        x = (x - x.mean(dim=1, keepdim=True)) / x.std(dim=1, keepdim=True, correction=0).clamp_min(1e-6)
    return normalize(x)


def _loss_and_slopes(
    query: list[Tensor], views: Tensor, keys: Tensor, queue: Tensor, norm: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """InfoNCE of each run (runs,) against `keys` (runs, n, dim) and `queue` (runs, K, dim), and its gradient."""
    weights = [weight.requires_grad_() for weight in query]
    z = _embed(weights, views, norm)
    logits = torch.cat([(z * keys).sum(dim=2, keepdim=True), z @ queue.transpose(1, 2)], dim=2) / 0.1
    loss = (logits.logsumexp(dim=2) - logits[:, :, 0]).mean(dim=1)
    slopes = torch.autograd.grad(loss.sum(), weights)
    for weight in weights:
        weight.requires_grad_(False)
    return loss.detach(), slopes


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
    if not whole(draws, 1, 100_000):
        raise ValueError(f"draws is {shown(draws)}; allowed: a whole number from 1 to 100000")
    x, y = _logs_and_kinds(leak, age, collapsed)
    entire = _logistic(x, y)
    dice = np.random.default_rng(0)
    found: list[tuple[float, float]] = []
    while len(found) < draws:
        chosen = dice.integers(len(y), size=len(y))
        if 0 < y[chosen].mean() < 1:
            found.append(_line(_logistic(x[chosen], y[chosen])))
    exponent, level = _line(entire)
    errors = np.percentile(found, [16, 84], axis=0)  # half of the middle two thirds: a standard error, outliers or not
    said = (entire[0] + x @ entire[1:] > 0) == (y > 0.5)
    spread = (errors[1] - errors[0]) / 2
    if not math.isfinite(exponent + level):
        raise ValueError(f"leak is {shown(leak)}; allowed: values on which the runs' kind depends")
    return Boundary(exponent, level, (float(spread[0]), float(spread[1])), float(said.mean()))


def _logs_and_kinds(
    leak: Sequence[float], age: Sequence[float], collapsed: Sequence[bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Log leak and log age (n, 2), and 1.0 where a run collapsed (n,)."""
    message = "leak, age and collapsed: allowed are equally many, numbers above 0, and runs of both kinds"
    if not len(leak) == len(age) == len(collapsed) or not len(leak):
        raise ValueError(message)
    x = np.column_stack([series("leak", leak), series("age", age)])
    y = np.asarray(collapsed, dtype=bool).astype(float)
    if not (x >= 1e-100).all() or not 0 < y.mean() < 1 or not (np.ptp(x, axis=0) > 0).all():
        raise ValueError(message)
    return np.log(x), y


@dataclass(frozen=True)
class Contour:
    """Where runs fail as the linear law has it: `runaway_rate` with this `drive` reaches `rate`, per step."""

    drive: float
    rate: float
    drives: tuple[float, float]  # the least and the greatest that are right about as many runs
    right: float  # share of the runs that lie on the side the law says


def fit_runaway(leak: Sequence[float], age: Sequence[float], failed: Sequence[bool]) -> Contour:
    """The drive and the rate that tell failed runs from others best: a bent boundary, with as many numbers as a line.

    Of equally good drives, searched from 0.05 to 50, it takes the middle one. Raises `ValueError` unless the three
    are equally many and there are runs of both kinds.
    """
    y = np.asarray(failed, dtype=bool)
    if not len(leak) == len(age) == len(y) or not len(y) or not 0 < y.mean() < 1:
        raise ValueError("leak, age and failed: allowed are equally many, and runs of both kinds")
    found = []
    for drive in np.geomspace(0.05, 50, 61):
        rates = np.array([runaway_rate(g, t, float(drive)) for g, t in zip(leak, age, strict=True)])
        cuts = np.unique(rates[rates > 0])
        right = [float(np.mean((rates >= cut) == y)) for cut in cuts]
        if right:
            best = int(np.argmax(right))
            below = rates[rates < cuts[best]].max(initial=0.0)
            found.append((right[best], float(drive), float(cuts[best] + below) / 2))
    if not found:
        raise ValueError(f"age is {shown(age)}; allowed: some of 0.04 steps or more, for nothing runs away below")
    most = max(right for right, _, _ in found)
    tied = [(drive, rate) for right, drive, rate in found if right == most]
    drive, rate = tied[len(tied) // 2]
    return Contour(drive, rate, (tied[0][0], tied[-1][0]), most)


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
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(weights[2] / weights[1]), float(-weights[0] / weights[1])
