"""How fast an embedding leaves the collapsed point, where every image has the same embedding: predicted and measured.

Near that point all candidates look alike, so every softmax share is 1 / (K + 1) and InfoNCE is, to second order,
log(K + 1) - (S / tau) K / (K + 1), with S the variance of the embedding along a mode. So it is never stable: spread
grows at every K >= 1. Predictions are for gradient flow (a learning rate that goes to zero) with the common mode held.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Generator, Tensor

from minilab.checks import shown
from minilab.losses import normalize
from minilab.spectra.checks import above_zero, finite, whole

LARGEST = 690.0  # of an exponent, so that no value leaves float64


def simclr_rate(variance: float, temperature: float, negatives: int) -> float:
    """Growth rate of the spread, per unit of time, with gradients to both sides: (2 S / tau) K / (K + 1)."""
    _check(variance, temperature, negatives)
    return 2 * variance / temperature * negatives / (negatives + 1)


def moco_rate(variance: float, temperature: float, negatives: int, leak: float) -> float:
    """The same with keys from an encoder that follows at rate gamma = `leak`, and no gradient to the keys.

    It is (-gamma + sqrt(gamma^2 + 4 gamma kappa)) / 2 with kappa = (S / tau) K / (K + 1): about kappa for a fast
    key encoder, sqrt(gamma kappa) for a slow one, and above 0 for any.
    """
    _check(variance, temperature, negatives)
    if not above_zero(leak):
        raise ValueError(f"leak is {shown(leak)}; allowed: above 0, from 1e-100 to 1e100")
    pull = variance / temperature * negatives / (negatives + 1)
    return 2 * pull / (1 + math.sqrt(1 + 4 * pull / leak))  # the same, and no difference of nearly equal numbers


def measured_rate(
    temperature: float,
    negatives: int,
    leak: float | None = None,
    *,
    noise: float = 0.3,
    steps: int = 500,
    seed: int = 0,
) -> float:
    """Growth rate of a linear encoder z = normalize(c + W x), x of variance 1, trained from W close to 0 by InfoNCE.

    `leak` None: SimCLR's gradients, to both sides. Else MoCo's: keys and negatives from a second W that follows at
    that rate, with no gradient. `noise`: standard deviation of the augmentation; to second order it has no part.
    Every step draws new images, each with `negatives` of its own. The rate is the slope of log |W| over the second
    half of the time, which is so long that by then the faster of MoCo's two modes has taken over, and so short
    that |W| is still small enough for the theory. Raises `ValueError` naming the argument.
    """
    _check(1.0, temperature, negatives)
    if not (finite(noise, 100) and noise >= 0):
        raise ValueError(f"noise is {shown(noise)}; allowed: from 0 to 100")
    for name, value, least, most in (
        ("negatives", negatives, 1, 100_000),
        ("steps", steps, 8, 100_000),
        ("seed", seed, 0, 2**63 - 1),
    ):
        if not whole(value, least, most):
            raise ValueError(f"{name} is {shown(value)}; allowed: a whole number from {least} to {most}")
    if leak is None:
        step = 2 / simclr_rate(1.0, temperature, negatives) / steps
    else:
        step = 24 / (2 * moco_rate(1.0, temperature, negatives, leak) + leak) / steps
    anchors = max(32, 2048 // (negatives + 1))
    dice = Generator().manual_seed(seed)
    inputs, dim = 3, 6
    centre = torch.zeros(dim, dtype=torch.float64)
    centre[0] = 1.0
    weights = 1e-9 * torch.randn(dim, inputs, generator=dice, dtype=torch.float64)
    weights[0] = 0.0  # along the centre nothing grows
    follower = weights.clone()
    lengths = []
    for _ in range(steps):
        weights.requires_grad_()
        keys_from = weights if leak is None else follower
        loss = _loss(weights, keys_from, centre, temperature, negatives, noise, anchors, dice)
        (slope,) = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            before = weights
            weights = weights - step * slope
            if leak is not None:
                follower = follower + step * leak * (before - follower)
            lengths.append(float(weights.norm().log()))
        weights = weights.detach()
    half = steps // 2
    times = step * np.arange(half, steps)
    return float(np.polyfit(times, lengths[half:], 1)[0])


def _loss(
    weights: Tensor,
    keys_from: Tensor,
    centre: Tensor,
    temperature: float,
    negatives: int,
    noise: float,
    anchors: int,
    dice: Generator,
) -> Tensor:
    """InfoNCE of `anchors` images, each with its own negatives: the mean of the (K + 1)-way cross-entropy."""
    inputs = weights.shape[1]
    images = torch.randn(anchors, negatives + 1, inputs, generator=dice, dtype=torch.float64)
    seen = images + noise * torch.randn(images.shape, generator=dice, dtype=torch.float64)
    query = images[:, 0] + noise * torch.randn(anchors, inputs, generator=dice, dtype=torch.float64)
    z = normalize(centre + query @ weights.T)  # (anchors, dim)
    keys = normalize(centre + seen @ keys_from.T)  # (anchors, K + 1, dim); candidate 0 is the partner
    logits = torch.einsum("ad,akd->ak", z, keys) / temperature
    return (logits.logsumexp(dim=1) - logits[:, 0]).mean()


def coupled_rates(growth: float, stiffness: float, leak: float) -> tuple[complex, complex]:
    """The two rates of a mode a tied to its own average: a' = A a - kappa (a - b), b' = gamma (a - b); larger first.

    `growth` A, `stiffness` kappa, `leak` gamma. Their product is -A gamma: with A > 0 one of them always grows.
    """
    _finite(growth=growth, stiffness=stiffness, leak=leak)
    matrix = np.array([[growth - stiffness, stiffness], [leak, -leak]])
    rates = sorted(np.linalg.eigvals(matrix).astype(complex), key=lambda rate: -rate.real)
    return complex(rates[0]), complex(rates[1])


def fixed_leak_rate(growth: float, leak: float) -> float:
    """The rate of a' = A a - gamma a, a mode tied to a point that does not follow it: what the framework writes."""
    _finite(growth=growth, leak=leak)
    return growth - leak


def noisy_growth(rate: float, noise: float, time: float, paths: int = 20_000, seed: int = 0) -> tuple[float, float]:
    """Mean and median of a(time) / a(0) over paths of da = rate a dt + noise a dW (exact solution).

    In theory exp(rate t) and exp((rate - noise^2 / 2) t): the mean can explode while most paths die out.
    Raises `ValueError` naming the argument, also where a path could leave float64.
    """
    _finite(rate=rate, noise=noise, time=time)
    if noise < 0 or time < 0:
        raise ValueError(f"noise is {noise!r} and time is {time!r}; allowed: 0 or more")
    if (abs(rate) + noise * noise / 2) * time + 10 * noise * math.sqrt(time) > LARGEST:
        raise ValueError(f"time is {time!r}; allowed: so short that no path leaves float64 at this rate and noise")
    for name, value, least, most in (("paths", paths, 1, 10_000_000), ("seed", seed, 0, 2**63 - 1)):
        if not whole(value, least, most):
            raise ValueError(f"{name} is {shown(value)}; allowed: a whole number from {least} to {most}")
    dice = np.random.default_rng(seed)
    ends = np.exp((rate - noise * noise / 2) * time + noise * math.sqrt(time) * dice.standard_normal(paths))
    return float(ends.mean()), float(np.median(ends))


def _check(variance: float, temperature: float, negatives: int) -> None:
    _above_zero(variance=variance, temperature=temperature)
    if not whole(negatives, 1, 2**63):
        raise ValueError(f"negatives is {shown(negatives)}; allowed: a whole number, 1 or more")


def _above_zero(**values: float) -> None:
    for name, value in values.items():
        if not above_zero(value):
            raise ValueError(f"{name} is {shown(value)}; allowed: a finite number above 0, from 1e-100 to 1e100")


def _finite(**values: float) -> None:
    for name, value in values.items():
        if not finite(value):
            raise ValueError(f"{name} is {shown(value)}; allowed: a finite number, at most 1e100 in size")
