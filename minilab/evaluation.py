"""How good the features are: weighted kNN and a linear probe, on the frozen encoder in eval mode.

Nothing here changes the model: its mode is put back, and its statistics are not touched.
Features are taken before the projection head.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from minilab import checks, geometry
from minilab.data import Images
from minilab.losses import normalize
from minilab.views import plain_views, random_views

SAMPLE = 1000  # images that the gauges look at


@torch.no_grad()
def extract(
    encoder: nn.Module, images: Tensor, view: Callable[[Tensor], Tensor] = plain_views, batch: int = 500
) -> Tensor:
    """Features (N, d) in float32 of images (N, C, H, W), seen through `view`, in eval mode."""
    checks.kind("encoder", encoder, nn.Module, "a torch.nn.Module")
    checks.whole("batch", batch, 1)
    checks.kind("images", images, Tensor, "a tensor of images")
    if images.ndim != 4 or 0 in images.shape:
        checks.refuse("images", images, "shape (N, C, H, W), none of them 0")
    was_training = encoder.training
    encoder.eval()
    try:
        return torch.cat([encoder(view(part)).float() for part in images.split(batch)])
    finally:
        encoder.train(was_training)


@torch.no_grad()
def knn(
    bank: Tensor, bank_labels: Tensor, queries: Tensor, labels: Tensor, k: int = 200, temperature: float = 0.1
) -> float:
    """Share of `queries` (M, d) that their k nearest in `bank` (N, d) vote right.

    Cosine neighbours; a vote weighs exp(cosine / temperature) (Wu et al., arXiv 1805.01978, section 3.4).
    k is cut to N. Works in chunks: memory is about 40 MB however many queries there are.
    """
    checks.whole("k", k, 1)
    checks.temperature(temperature)
    _check(bank, bank_labels, queries, labels)
    bank, queries, k = normalize(bank), normalize(queries), min(k, len(bank))
    classes = int(bank_labels.max()) + 1
    right = 0
    for rows, row_labels in zip(queries.split(_chunk(len(bank))), labels.split(_chunk(len(bank))), strict=True):
        cosine, neighbour = (rows @ bank.T).topk(k, dim=1)  # (m, k)
        # exp(cosine / t) overflows at small t; only the ratio of votes counts, so start at the best.
        weight = ((cosine - cosine[:, :1]) / temperature).exp()
        votes = torch.zeros(len(rows), classes, dtype=rows.dtype, device=rows.device)
        votes.scatter_add_(1, bank_labels[neighbour], weight)
        right += int((votes.argmax(dim=1) == row_labels).sum())
    return right / len(queries)


def _chunk(bank_size: int) -> int:
    return max(1, 10_000_000 // bank_size)  # rows of similarities, 40 MB of float32


def linear_probe(
    bank: Tensor, bank_labels: Tensor, queries: Tensor, labels: Tensor, weight_decay: float = 1e-4
) -> float:
    """Accuracy on `queries` (M, d) of a linear softmax classifier fitted to `bank` (N, d) by L-BFGS.

    Features are standardised by the bank. The problem is convex: no learning rate to tune, no seed.
    """
    checks.number("weight_decay", weight_decay, 0, 1e6)
    _check(bank, bank_labels, queries, labels, least=2)
    bank, queries = (rows if rows.dtype == torch.float64 else rows.float() for rows in (bank, queries))
    mean, std = bank.mean(dim=0), bank.std(dim=0).clamp(min=1e-6)
    bank, queries = (bank - mean) / std, (queries - mean) / std
    classes = int(bank_labels.max()) + 1
    weight = torch.zeros(classes, bank.shape[1], dtype=bank.dtype, device=bank.device, requires_grad=True)
    bias = torch.zeros(classes, dtype=bank.dtype, device=bank.device, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(F.linear(bank, weight, bias), bank_labels)
        loss = loss + weight_decay * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        predicted = F.linear(queries, weight, bias).argmax(dim=1)
        return float((predicted == labels).float().mean())


def evaluate(encoder: nn.Module, images: Images, bank: int | None = None, test: int | None = None) -> dict[str, float]:
    """KNN and the four gauges of `encoder` on `images`: `knn, spread, effective_rank, alignment, uniformity`.

    kNN asks the first `test` test images of the first `bank` training images (None: all of them).
    The gauges are those of up to `SAMPLE` test images; alignment compares two views drawn from a fixed seed.
    """
    checks.kind("images", images, Images, "an Images")
    for name, count, least in (("bank", bank, 1), ("test", test, 2)):
        if count is not None:
            checks.whole(name, count, least)
    if len(images.test) < 2:
        raise ValueError("images has 1 test image; allowed: 2 or more")
    train, train_labels = images.train[:bank], images.train_labels[:bank]
    asked, asked_labels = images.test[:test], images.test_labels[:test]
    queries = extract(encoder, asked)
    sample = queries[:SAMPLE]
    generator = Generator().manual_seed(0)
    pair = [extract(encoder, asked[:SAMPLE], lambda part: random_views(part, generator)) for _ in range(2)]
    return {
        "knn": knn(extract(encoder, train), train_labels, queries, asked_labels),
        "spread": geometry.spread(sample),
        "effective_rank": geometry.effective_rank(sample),
        "alignment": geometry.alignment(*pair),
        "uniformity": geometry.uniformity(sample),
    }


def _check(bank: Tensor, bank_labels: Tensor, queries: Tensor, labels: Tensor, least: int = 1) -> None:
    """Raise `ValueError` unless these are features and labels of one kind, finite, class numbers from 0."""
    checks.matrix("bank", bank, rows=least)
    checks.matrix("queries", queries, dim=bank.shape[1])
    checks.labels("bank_labels", bank_labels, len(bank))
    checks.labels("labels", labels, len(queries))
    if queries.dtype != bank.dtype:
        checks.refuse("queries", queries, f"{bank.dtype}, as bank")
    checks.finite("bank", bank)
    checks.finite("queries", queries)
    low, high = bank_labels.min().item(), bank_labels.max().item()
    if low < 0 or high >= 10**6:
        raise ValueError(f"bank_labels holds {low if low < 0 else high}; allowed: class numbers from 0 to below 10^6")
