"""The forces of the negatives on an anchor, and how many directions they span.

For unit embeddings, negative j pushes anchor i by f_ij = -(p_ij / tau) (I - z_i z_i^T) z_j, where p_ij is its
share of the softmax: the part of the loss's gradient descent that j has, tangent to the sphere at z_i.
Everything is computed in float64, so that a rank is a number and not a matter of taste.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minilab.checks import shown
from minilab.losses import normalize, nt_xent
from minilab.spectra.checks import above_zero, matrix, pairs, whole


def shares(z: Tensor, temperature: float) -> Tensor:
    """The softmax of each anchor over its candidates: unit embeddings z (2N, d) to (2N, 2N), 0 for itself."""
    matrix("z", z, 2)
    _check_temperature(temperature)
    logits = z @ z.T / temperature
    return logits.fill_diagonal_(-math.inf).softmax(dim=1)


def entropy(share: Tensor) -> Tensor:
    """Entropy in nats of rows of shares (n, m) that add up to 1: 0 to log(m). Its exp counts effective candidates."""
    if not bool((share >= 0).all()):
        raise ValueError("share holds a number below 0, or nan; allowed: shares, from 0 to 1")
    return torch.special.entr(share).sum(dim=-1)  # 0 where the share is 0, in float32 too


def forces(z: Tensor, anchor: int, temperature: float) -> Tensor:
    """Forces (2N - 2, d) of an anchor's negatives on it in SimCLR: z (2N, d), rows i and i + N of one image."""
    matrix("z", z, 4)
    pairs("z", len(z))
    _check_temperature(temperature)
    if not whole(anchor, 0, len(z) - 1):
        raise ValueError(f"anchor is {shown(anchor)}; allowed: a row of z, from 0 to {len(z) - 1}")
    z = normalize(z.double())
    partner = (anchor + len(z) // 2) % len(z)
    negatives = [j for j in range(len(z)) if j not in (anchor, partner)]
    share = shares(z, temperature)[anchor, negatives]
    return _push(z[anchor], z[negatives], share, temperature)


def forces_of_queue(query: Tensor, key: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """Forces (K, d) of a queue (K, d) on one query (d,) whose positive is `key` (d,): MoCo."""
    matrix("queue", queue)
    _check_temperature(temperature)
    for name, vector in (("query", query), ("key", key)):
        if vector.shape != queue.shape[1:] or not bool(vector.isfinite().all()):
            raise ValueError(f"{name} is {shown(vector)}; allowed: finite, as long as a key, {queue.shape[1]}")
    query, key, queue = normalize(query.double()), normalize(key.double()), normalize(queue.double())
    share = (torch.cat([key[None], queue]) @ query / temperature).softmax(dim=0)[1:]
    return _push(query, queue, share, temperature)


def _push(anchor: Tensor, negatives: Tensor, share: Tensor, temperature: float) -> Tensor:
    tangent = negatives - (negatives @ anchor)[:, None] * anchor
    return -(share / temperature)[:, None] * tangent


def gradient(z: Tensor, temperature: float) -> Tensor:
    """Gradient (2N, d) of NT-Xent for the embeddings z (2N, d), in float64."""
    matrix("z", z, 4)
    pairs("z", len(z))
    _check_temperature(temperature)
    leaf = z.detach().double().requires_grad_()
    (found,) = torch.autograd.grad(nt_xent(leaf, temperature), leaf)
    return found


def rank(rows: Tensor) -> int:
    """Dimensions that rows (n, d) span, in float64."""
    matrix("rows", rows)
    return int(torch.linalg.matrix_rank(rows.double()))


def centred(rows: Tensor) -> Tensor:
    """Rows (n, d) minus their mean: the rank of these is the rank of the covariance."""
    matrix("rows", rows)
    return rows - rows.mean(dim=0)


def spectrum(rows: Tensor) -> Tensor:
    """Eigenvalues of the second moment rows^T rows / n (d x d), largest first, min(n, d) of them.

    The Gram matrix rows rows^T / n (n x n) has the same ones, but for zeros.
    """
    matrix("rows", rows)
    return torch.linalg.svdvals(rows.double()).square() / len(rows)


def effective_rank(rows: Tensor) -> float:
    """Exp of the entropy of the singular values over their sum (Roy & Vetterli 2007): 1 to the rank. Not centred."""
    matrix("rows", rows)
    singular = torch.linalg.svdvals(rows.double())
    if not float(singular.sum()) > 0:
        raise ValueError("rows are all 0; allowed: some direction")
    return float(entropy(singular / singular.sum()).exp())


@dataclass(frozen=True)
class Bounds:
    """The most directions that N images, two views each, can give in d dimensions, by what is looked at."""

    anchor: int  # forces on one anchor: 2N - 2 negatives, in the tangent plane
    anchor_centred: int  # their covariance
    batch: int  # the gradient of all embeddings
    batch_centred: int  # its covariance


def bounds(images: int, dim: int) -> Bounds:
    """The bounds for N = `images` of at least 2 and d = `dim`."""
    if not whole(images, 2, 2**62) or not whole(dim, 2, 2**62):
        raise ValueError(f"images is {shown(images)} and dim is {shown(dim)}; allowed: 2 or more of each")
    return Bounds(
        min(2 * images - 2, dim - 1), min(2 * images - 3, dim - 1), min(2 * images, dim), min(2 * images - 1, dim)
    )


@dataclass(frozen=True)
class Union:
    """Ranks of the forces from the batch, from the queue, their sum, and of both together."""

    batch: int
    queue: int
    both: int

    @property
    def total(self) -> int:
        """What adding the two ranks would give."""
        return self.batch + self.queue


def union(batch: Tensor, queue: Tensor) -> Union:
    """Ranks of batch forces (n, d) and queue forces (m, d), apart and together: together at most d."""
    matrix("batch", batch)
    matrix("queue", queue)
    if batch.shape[1] != queue.shape[1]:
        raise ValueError(f"queue has {queue.shape[1]} numbers a row and batch {batch.shape[1]}; allowed: equally many")
    return Union(rank(batch), rank(queue), rank(torch.cat([batch, queue])))


@dataclass(frozen=True)
class Contrast:
    """The softmax of one query over its positive and K negatives at one temperature; all in float64."""

    positive: float  # p+, the share of the positive
    shares: Tensor  # (K,) of the negatives, in their order; with p+ they add up to 1
    forces: Tensor  # (K,) length of each negative's push along the sphere: share / tau * sqrt(1 - cos^2)
    pull: float  # weight of the positive's pull, (1 - p+) / tau: equal to the sum of share / tau
    pull_along: float  # its length along the sphere: pull * sqrt(1 - cos^2)
    entropy: float  # nats, of the negatives among themselves: 0 to log K
    loss: float  # nats, -log p+; a guess has log(K + 1)

    @property
    def effective(self) -> float:
        """How many equal negatives would have this entropy: exp(entropy), 1 to K."""
        return math.exp(self.entropy)


def contrast(positive: float, negatives: Tensor | Sequence[float], temperature: float) -> Contrast:
    """What InfoNCE does with a query whose cosines are `positive` to its key and `negatives` (K,) to the others.

    Raises `ValueError` naming the argument if a cosine leaves -1 to 1 by more than rounding, there is no negative,
    or the temperature is not above 0. minilab/textbook/softmax.js is the same on the page.
    """
    plus, minus = cosines("positive", [positive]), cosines("negatives", negatives)
    _check_temperature(temperature)
    logits = minus / temperature
    among = logits.log_softmax(dim=0)  # log of each share among the negatives
    gap = logits.logsumexp(dim=0) - plus[0] / temperature
    missed = float(gap.sigmoid())  # 1 - p+, with all its digits
    share = among.exp() * missed
    forces = share / temperature * (1 - minus.square()).sqrt()
    pull = missed / temperature
    return Contrast(
        positive=float((-gap).sigmoid()),
        shares=share,
        forces=forces,
        pull=pull,
        pull_along=pull * float((1 - plus[0].square()).sqrt()),
        entropy=abs(float((among.exp() * among).sum())),
        loss=float(torch.logaddexp(gap, torch.zeros_like(gap))),
    )


def _check_temperature(temperature: float) -> None:
    if not above_zero(temperature):
        raise ValueError(f"temperature is {shown(temperature)}; allowed: a finite number above 0")


def cosines(name: str, values: Tensor | Sequence[float]) -> Tensor:
    """`values` as a float64 tensor (n,) from -1 to 1; `ValueError` naming `name` if they are not cosines."""
    try:
        found = torch.as_tensor(values, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(f"{name} is {shown(values)}; allowed: cosines, numbers from -1 to 1") from error
    if found.dim() != 1 or len(found) == 0:
        raise ValueError(f"{name} has the shape {tuple(found.shape)}; allowed: one dimension, one value or more")
    outside = found[~(found.abs() <= 1 + 1e-5)]  # float32 rounds a cosine of 1 up by less
    if len(outside):
        raise ValueError(f"{name} holds {float(outside[0]):g}; allowed: cosines, from -1 to 1")
    return found.clamp(-1, 1)
