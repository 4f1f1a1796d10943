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

from minilab.losses import normalize


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
    if not leak > 0:
        raise ValueError(f"leak is {leak!r}; allowed: above 0")
    pull = variance / temperature * negatives / (negatives + 1)
    return (-leak + math.sqrt(leak * leak + 4 * leak * pull)) / 2


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
    that |W| is still small enough for the theory.
    """
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
    matrix = np.array([[growth - stiffness, stiffness], [leak, -leak]])
    rates = sorted(np.linalg.eigvals(matrix).astype(complex), key=lambda rate: -rate.real)
    return complex(rates[0]), complex(rates[1])


def fixed_leak_rate(growth: float, leak: float) -> float:
    """The rate of a' = A a - gamma a, a mode tied to a point that does not follow it: what the framework writes."""
    return growth - leak


def noisy_growth(rate: float, noise: float, time: float, paths: int = 20_000, seed: int = 0) -> tuple[float, float]:
    """Mean and median of a(time) / a(0) over paths of da = rate a dt + noise a dW (exact solution).

    In theory exp(rate t) and exp((rate - noise^2 / 2) t): the mean can explode while most paths die out.
    """
    dice = np.random.default_rng(seed)
    ends = np.exp((rate - noise * noise / 2) * time + noise * math.sqrt(time) * dice.standard_normal(paths))
    return float(ends.mean()), float(np.median(ends))


def _check(variance: float, temperature: float, negatives: int) -> None:
    for name, value in (("variance", variance), ("temperature", temperature)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}; allowed: a finite number above 0")
    if not isinstance(negatives, int) or negatives < 1:
        raise ValueError(f"negatives is {negatives!r}; allowed: a whole number, 1 or more")
