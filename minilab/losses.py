"""InfoNCE in its two forms, as pure functions.

Both are a cross-entropy: which of these candidates is the partner of this anchor?
Similarities are computed in float32 (float64 for float64 input) whatever the autocast:
in half precision a cosine divided by a small temperature is off by more than the differences that matter.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from minilab import checks

PART = 4096  # rows of the queue whose logits are in memory at once


def normalize(embeddings: Tensor) -> Tensor:
    """Rows of length 1, in float32 or float64, shape kept. A zero row stays zero and gets no gradient.

    So does one too short or too long for its length to be told in that format: of float32, 1e-12 to 1e19.
    Raises `ValueError` unless it gets a tensor of real numbers with one dimension or more.
    """
    if not isinstance(embeddings, Tensor) or embeddings.ndim < 1 or embeddings.is_complex():
        checks.refuse("embeddings", embeddings, "real numbers of shape (..., dim)")
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
    check_pairs(embeddings, temperature)
    views = embeddings.shape[0]
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
    Gradients go to queries and, if they want them, to keys; MoCo's do not.
    Raises `ValueError` if the shapes do not fit.
    """
    checks.matrix("queries", queries)
    checks.matrix("queue", queue, dim=queries.shape[1])
    if not isinstance(keys, Tensor) or keys.shape != queries.shape or not keys.is_floating_point():
        checks.refuse("keys", keys, f"floating-point numbers of shape {tuple(queries.shape)}, as queries")
    checks.temperature(temperature)
    with torch.autocast(queries.device.type, enabled=False):
        q, k = normalize(queries) / temperature, normalize(keys)
        k = k.to(q.dtype)  # where one of them came in float64
        # The positive is candidate 0 of every row, so as a cross-entropy every label would be 0. That is no bug.
        loss: Tensor = QueueCrossEntropy.apply(q, k, queue.to(q.dtype))
        return loss


class QueueCrossEntropy(torch.autograd.Function):
    """Mean over rows of the cross-entropy of q @ [k, queue]^T with the positive k as the label.

    The same as `F.cross_entropy`, with the gradient written out: for a query it is what the softmax
    expects minus what is right, sum_j p_j z_j - k. Both sums run over the queue part by part, each
    rescaled to the largest logit so far, so that N x K logits never lie in memory at once.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, queue: Tensor) -> Tensor:
        """q, k: (N, dim), q already divided by the temperature. queue: (K, dim)."""
        positive = (q * k).sum(dim=1)  # (N,)
        top, total, mean = positive, torch.ones_like(positive), k  # of the positive alone: weight exp(0)
        for part in queue.split(PART):
            logits = q @ part.T  # (N, PART)
            new_top = torch.maximum(top, logits.amax(dim=1))
            weights, old = logits.sub_(new_top[:, None]).exp_(), (top - new_top).exp()
            total = total * old + weights.sum(dim=1)
            mean = torch.addmm(mean * old[:, None], weights, part)  # (N, dim)
            top = new_top
        chosen = (positive - top).exp() / total  # the softmax's share for the positive
        ctx.save_for_backward(q, k, queue, mean / total[:, None], chosen)
        return (total.log() + top - positive).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        """Gradients of q and, if wanted, of k; none for the queue, which is data."""
        q, k, _, expected, chosen = ctx.saved_tensors
        share = grad / len(q)
        keys = (chosen - 1)[:, None] * q * share if ctx.needs_input_grad[1] else None
        return (expected - k) * share, keys, None


def chance_loss(negatives: int) -> float:
    """Loss in nats of a network that knows nothing: log(negatives + 1), a fair guess among the candidates."""
    checks.whole("negatives", negatives, 0)
    return math.log(negatives + 1)


def check_pairs(embeddings: Tensor, temperature: float, least: int = 4) -> None:
    """Raise `ValueError` unless these are embeddings (2N, dim) of two views an image, `least` rows or more."""
    checks.matrix("embeddings", embeddings, rows=0)
    rows = len(embeddings)
    if rows < least or rows % 2:
        raise ValueError(f"embeddings has {rows} rows; allowed: an even number, {least} or more (two views an image)")
    checks.temperature(temperature)
