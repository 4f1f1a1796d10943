"""How old keys lose touch with today's: decay over age, the key encoder's lag, and what many alike keys are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minilab.checks import shown
from minilab.spectra.checks import finite, series, whole


@dataclass(frozen=True)
class Decay:
    """A fit of excess consistency = exp(-age / time), with what it is worth."""

    time: float  # tau_mix, in steps
    error: float  # standard error of `time`
    misfit: float  # root mean square of fitted minus measured excess, from 0 to about 1


def excess(consistency: Sequence[float], floor: float) -> list[float]:
    """Consistency rescaled so that 1 is an unchanged key and 0 is the cosine of two different images, `floor`."""
    if not (finite(floor) and floor < 1):
        raise ValueError(f"floor is {shown(floor)}; allowed: below 1; at 1 all embeddings are one point")
    series("consistency", consistency, 0)
    return [(value - floor) / (1 - floor) for value in consistency]


def fit_decay(ages: Sequence[float], values: Sequence[float]) -> Decay:
    """Least squares of exp(-age / time) to `values` over `ages` in steps; at least three ages.

    The misfit says whether the decay is exponential at all: where keys turn and come to point the other
    way, values fall below 0 and no such curve fits.
    """
    if len(ages) != len(values) or len(ages) < 3:
        raise ValueError(f"ages has {len(ages)} values and values has {len(values)}; allowed: equally many, 3 or more")
    try:
        x, y = series("ages", ages, 3, most=1e12), series("values", values, 3, most=1e12)
    except ValueError as fault:
        raise ValueError(f"ages or values hold what is not allowed: {fault}") from fault
    if not (x >= 1e-12).all():
        raise ValueError(f"ages or values hold what is not allowed: ages holds {x.min():g}; allowed: above 0")
    times = np.geomspace(x.min() / 100, x.max() * 1000, 400)
    for _ in range(6):  # each time ten times as fine around the best
        misfits = np.square(np.exp(-x / times[:, None]) - y).sum(axis=1)
        best = int(misfits.argmin())
        time = float(times[best])
        times = np.geomspace(times[max(best - 20, 0)], times[min(best + 20, 399)], 400)
    residual = np.exp(-x / time) - y
    slope = np.exp(-x / time) * x / time**2  # of the fitted values with the time
    error = math.sqrt(float(residual @ residual) / (len(x) - 1) / float(slope @ slope))
    return Decay(time, error, math.sqrt(float(np.mean(residual**2))))


def lag_of_average(momentum: float) -> float:
    """Steps by which theta <- m theta + (1 - m) x lags behind an x that moves at constant speed: m / (1 - m)."""
    _check(momentum)
    return momentum / (1 - momentum)


def noise_kept(momentum: float) -> float:
    """Share of the variance of independent noise that the average keeps: (1 - m) / (1 + m)."""
    _check(momentum)
    return (1 - momentum) / (1 + momentum)


def gap_closed(momentum: float, steps: int) -> float:
    """Share of a fixed gap that the average closes in `steps`: 1 - m^steps."""
    _check(momentum)
    if not (finite(steps) and steps >= 0):
        raise ValueError(f"steps is {shown(steps)}; allowed: 0 or more")
    return 1 - momentum**steps


def effective_samples(count: int, correlation: float) -> float:
    """What `count` equally spaced samples are worth whose neighbours correlate so (first-order autoregression).

    The variance of their mean is that of this many independent ones: from 1 to `count` as they
    are more or less alike.
    """
    if not (finite(correlation) and 0 <= correlation < 1):
        raise ValueError(f"correlation is {shown(correlation)}; allowed: from 0 to below 1")
    if not whole(count, 1, 10_000_000):
        raise ValueError(f"count is {shown(count)}; allowed: 1 or more, a whole number of at most 10,000,000")
    steps = np.arange(1, count)
    inflation = 1 + 2 * float(((1 - steps / count) * correlation**steps).sum())
    return count / inflation


def _check(momentum: float) -> None:
    if not (finite(momentum) and 0 <= momentum < 1):
        raise ValueError(f"momentum is {shown(momentum)}; allowed: from 0 to below 1")
