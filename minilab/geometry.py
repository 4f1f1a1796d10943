"""Gauges of collapse: how an encoder's features lie on the unit sphere.

Each takes features (N, d) of any length, N >= 2, and puts them on the sphere first.
Features that come out of a ReLU fill a corner of the sphere only: compare runs, not absolute values.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from minilab import checks
from minilab.losses import normalize


def spread(features: Tensor) -> float:
    """Standard deviation per dimension, times sqrt(d): 1 for a cloud all over the sphere, 0 for one point.

    The usual first monitor of collapse (SimSiam, arXiv 2011.10566, figure 2).
    """
    z = _on_sphere(features)
    return float(z.std(dim=0, correction=0).mean() * math.sqrt(z.shape[1]))


def effective_rank(features: Tensor) -> float:
    """Exp of the entropy of the singular values over their sum: from 1 to min(N, d).

    Roy & Vetterli 2007; RankMe (arXiv 2210.02885). Features are not centred, as in RankMe.
    """
    singular = torch.linalg.svdvals(_on_sphere(features).double())
    share = singular / singular.sum()
    share = share[share > 0]
    return float(torch.exp(-(share * share.log()).sum()))


def alignment(features: Tensor, partners: Tensor) -> float:
    """Mean squared distance between the features of two views of an image: 0 (equal) to 4 (opposite).

    Wang & Isola (arXiv 2005.10242) with alpha = 2. Row i of `partners` belongs to row i of `features`.
    """
    z = _on_sphere(features)
    if not isinstance(partners, Tensor) or partners.shape != features.shape:
        checks.refuse("partners", partners, f"shape {tuple(features.shape)}, as features")
    return float((z - _on_sphere(partners, "partners")).square().sum(dim=1).mean())


def uniformity(features: Tensor) -> float:
    """Log of the mean of exp(-2 * squared distance) over pairs: 0 for one point, lower for a wider cloud.

    Wang & Isola (arXiv 2005.10242) with t = 2. Memory N x N: give it a few thousand rows.
    """
    z = _on_sphere(features)
    squared = torch.pdist(z).square()
    return float(squared.mul(-2).exp().mean().log())


def _on_sphere(features: Tensor, name: str = "features") -> Tensor:
    if (
        not isinstance(features, Tensor)
        or features.ndim != 2
        or len(features) < 2
        or not features.shape[1]
        or features.is_complex()
    ):
        checks.refuse(name, features, "numbers of shape (N, d) with N >= 2")
    z = normalize(features.detach())
    checks.finite(name, features)
    return z
