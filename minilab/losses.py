"""InfoNCE in its two forms, as pure functions.

Both are a cross-entropy: which of these candidates is the partner of this anchor?
Similarities are computed in float32 (float64 for float64 input) whatever the autocast:
in half precision a cosine divided by a small temperature is off by more than the differences that matter.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def normalize(embeddings: Tensor) -> Tensor:
    """Rows of length 1, in float32 or float64, shape kept. A zero row stays zero and gets no gradient."""
    wide = embeddings if embeddings.dtype == torch.float64 else embeddings.float()
    length = wide.norm(dim=-1, keepdim=True)
    # Dividing a zero row by a tiny epsilon, as is usual, sends back a gradient that overflows half precision.
    return wide * torch.where(length > 1e-12, 1 / length.clamp(min=1e-12), 0.0)


def nt_xent(embeddings: Tensor, temperature: float) -> Tensor:
    """SimCLR's loss (arXiv 2002.05709, equation 1), averaged over the 2N views.

    `embeddings`: (2N, dim), any length; rows i and i + N are the two views of image i.
    Each anchor has 2N - 1 candidates: its partner and 2N - 2 negatives. Itself is left out.
    Raises `ValueError` if there are fewer than 4 rows (no negatives) or an odd number of them.
    """
    _check(embeddings, temperature)
    views = embeddings.shape[0]
    if views < 4 or views % 2:
        raise ValueError(f"embeddings has {views} rows; allowed: an even number, 4 or more (two views an image)")
    with torch.autocast(embeddings.device.type, enabled=False):
        z = normalize(embeddings)
        logits = (z / temperature) @ z.T  # (2N, 2N); dividing z is cheaper than dividing the product
        itself = torch.eye(views, dtype=torch.bool, device=z.device)
        logits = logits.masked_fill(itself, -math.inf)
        partner = torch.arange(views, device=z.device).roll(views // 2)
        return F.cross_entropy(logits, partner)


def info_nce(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """MoCo's loss (arXiv 1911.05722, equation 1), averaged over the N queries.

    `queries`, `keys`: (N, dim), row i of `keys` is the positive of row i of `queries`.
    `queue`: (K, dim), the negatives, the same for every query, already of length 1: they are not
    normalised again, which at K = 65,536 would cost as much as the product. Each anchor has K + 1 candidates.
    Gradients go wherever they are wanted; MoCo wants them for the queries only.
    """
    _check(queries, temperature)
    if queries.shape != keys.shape:
        raise ValueError(f"keys has shape {tuple(keys.shape)}; allowed: that of queries, {tuple(queries.shape)}")
    if queue.ndim != 2 or queue.shape[0] < 1 or queue.shape[1] != queries.shape[1]:
        raise ValueError(f"queue has shape {tuple(queue.shape)}; allowed: (K, {queries.shape[1]}) with K >= 1")
    with torch.autocast(queries.device.type, enabled=False):
        q, k = normalize(queries) / temperature, normalize(keys)
        positive = (q * k).sum(dim=1, keepdim=True)  # (N, 1)
        logits = torch.cat([positive, q @ queue.to(q.dtype).T], dim=1)  # (N, 1 + K)
        # Column 0 is the positive for every query, so every label is 0. That is not a bug.
        labels = torch.zeros(len(q), dtype=torch.long, device=q.device)
        return F.cross_entropy(logits, labels)


def chance_loss(negatives: int) -> float:
    """Loss in nats of a network that knows nothing: log(negatives + 1), a fair guess among the candidates."""
    return math.log(negatives + 1)


def _check(embeddings: Tensor, temperature: float) -> None:
    if embeddings.ndim != 2 or not embeddings.is_floating_point():
        raise ValueError(
            f"embeddings have shape {tuple(embeddings.shape)} and type {embeddings.dtype}; "
            "allowed: two dimensions of floating-point numbers"
        )
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature is {temperature!r}; allowed: a finite number above 0")
