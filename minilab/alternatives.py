"""What others put in the place of SimCLR's negatives or of its softmax. Each is SimCLR with another loss.

Lay them beside `simclr.py`: encoder, views, batch and optimiser stay, so a difference is the loss's.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minilab import checks
from minilab.losses import check_pairs, normalize
from minilab.recipe import Recipe
from minilab.simclr import SimCLR


def dcl(embeddings: Tensor, temperature: float) -> Tensor:
    """Decoupled contrastive loss (Yeh et al., arXiv 2110.06848, section 3.3), averaged over the 2N views.

    `embeddings`: (2N, dim), rows i and i + N are the two views of image i. As NT-Xent, but the partner is
    left out of the denominator, so that an easy partner does not shrink the whole gradient.
    """
    check_pairs(embeddings, temperature)
    z = normalize(embeddings)
    logits = (z / temperature) @ z.T  # (2N, 2N)
    views = torch.arange(len(z), device=z.device)
    partner = views.roll(len(z) // 2)
    not_negative = (views[:, None] == views) | (partner[:, None] == views)
    pushed = logits.masked_fill(not_negative, -math.inf).logsumexp(dim=1)
    return (pushed - logits.gather(1, partner[:, None])[:, 0]).mean()


def sigmoid_loss(first: Tensor, second: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """SigLIP's loss (Zhai et al., arXiv 2303.15343, equation 1): N x N separate yes-or-no questions.

    `first`, `second`: (N, dim), rows i show the same image. Summed over second views, averaged over first ones.
    There is no softmax: a pair's term does not depend on the other pairs.
    """
    checks.matrix("first", first)
    if not isinstance(second, Tensor) or second.shape != first.shape or not second.is_floating_point():
        checks.refuse("second", second, f"floating-point numbers of shape {tuple(first.shape)}, as first")
    for name, value in (("scale", scale), ("bias", bias)):
        if not isinstance(value, (int, float, Tensor)) or (isinstance(value, Tensor) and value.numel() != 1):
            checks.refuse(name, value, "a number, or a tensor of one")
    logits = normalize(first) @ normalize(second).T * scale + bias  # (N, N)
    truth = 2 * torch.eye(len(first), dtype=logits.dtype, device=logits.device) - 1  # 1 on the diagonal, else -1
    return -F.logsigmoid(truth * logits).sum(dim=1).mean()


def without_false_negatives(embeddings: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """NT-Xent of embeddings (2N, dim) without the negatives that show the anchor's class: `labels` (N,)."""
    check_pairs(embeddings, temperature)
    checks.labels("labels", labels, len(embeddings) // 2)
    z = normalize(embeddings)
    logits = (z / temperature) @ z.T
    both = labels.repeat(2)
    partner = torch.arange(len(z), device=z.device).roll(len(z) // 2)
    same = (both[:, None] == both).scatter(1, partner[:, None], False)  # the anchor itself is of its class, too
    return F.cross_entropy(logits.masked_fill(same, -math.inf), partner)


class DCL(SimCLR):
    """SimCLR with the decoupled loss."""

    def loss(self, embeddings: Tensor) -> Tensor:
        """The loss of embeddings (2N, dim)."""
        return dcl(embeddings, self.temperature)


class Sigmoid(SimCLR):
    """SimCLR with SigLIP's loss; its scale (an inverse temperature) and bias are learned, from 10 and -10.

    Both feel all N x N pairs at once. At the weights' learning rate the scale falls to 0 within an epoch and
    stays there, so here they move a hundred times as slowly: a tenth of what is learned is added.
    """

    def __init__(self, recipe: Recipe, channels: int = 3) -> None:
        super().__init__(recipe, channels)
        self.moved = nn.Parameter(torch.zeros(2))  # of log scale and bias, times 10
        self.negatives = recipe.batch - 1

    def scale_and_bias(self) -> tuple[Tensor, Tensor]:
        """Both as they are now; the bias starts low, because of N answers only one is yes."""
        return 10 * (self.moved[0] / 10).exp(), self.moved[1] / 10 - 10

    def loss(self, embeddings: Tensor) -> Tensor:
        """The loss of embeddings (2N, dim)."""
        check_pairs(embeddings, self.temperature)
        first, second = embeddings.chunk(2)
        return sigmoid_loss(first, second, *self.scale_and_bias())

    def chance(self) -> float:
        """Loss in nats of a network that gives every pair the same probability, 1 / N."""
        pairs = self.negatives + 1
        return math.log(pairs) + self.negatives * math.log(pairs / self.negatives)


class SimSiam(SimCLR):
    """No negatives (Chen & He, arXiv 2011.10566): a predictor, and targets that get no gradient.

    The loss is minus the cosine between a view's prediction and its partner's embedding: -1 at best,
    0 for vectors at right angles. Batch norm in head and predictor is part of the method.
    """

    stop_gradient = True

    def __init__(self, recipe: Recipe, channels: int = 3) -> None:
        super().__init__(recipe, channels)
        width, dim, narrow = self.encoder.features, recipe.dim, max(1, recipe.dim // 4)
        self.head = nn.Sequential(
            *(nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(True)),
            *(nn.Linear(width, dim, bias=False), nn.BatchNorm1d(dim, affine=False)),
        )
        self.predictor = nn.Sequential(
            *(nn.Linear(dim, narrow, bias=False), nn.BatchNorm1d(narrow), nn.ReLU(True)), nn.Linear(narrow, dim)
        )
        self.negatives = 0

    def loss(self, embeddings: Tensor) -> Tensor:
        """The loss of embeddings (2N, dim)."""
        check_pairs(embeddings, self.temperature)
        predictions = normalize(self.predictor(embeddings))
        targets = normalize(embeddings.detach() if self.stop_gradient else embeddings)
        return -(predictions * targets.roll(len(targets) // 2, dims=0)).sum(dim=1).mean()


class SimSiamNoStop(SimSiam):
    """The same with a gradient to the targets, to see what happens: it collapses."""

    stop_gradient = False


class Oracle(SimCLR):
    """SimCLR that is told which negatives show the anchor's class, and leaves them out. For measuring only."""

    labels: Tensor  # (N,) of the coming batch; the trainer sets them

    def loss(self, embeddings: Tensor) -> Tensor:
        """The loss of embeddings (2N, dim), whose classes are `labels`."""
        labels: Any = getattr(self, "labels", None)  # None, and refused, before the trainer has set any
        return without_false_negatives(embeddings, labels, self.temperature)
