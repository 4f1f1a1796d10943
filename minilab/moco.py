"""MoCo (He et al., arXiv 1911.05722; v2: 2003.04297): the negatives are a queue of past keys.

Lay it beside `simclr.py`. What is new here is a second encoder, a queue, and work after each step.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from minilab import checks
from minilab.distributed import gather, own, world_size
from minilab.encoder import build_encoder, projection_head
from minilab.losses import chance_loss, info_nce, normalize
from minilab.recipe import Recipe
from minilab.transfer import send


class MoCo(nn.Module):
    """A query encoder that learns, a key encoder that follows it, and a queue of K past keys.

    All state is in the state_dict: both encoders, the queue (K, dim), the place of its oldest
    key, and how many of its rows are real keys. It starts full of random unit vectors, as in the
    paper's code: easy negatives, so the loss first rises while real keys replace them (K / N steps).
    The key encoder's weights are a moving average; its batch-norm statistics are its own, gathered
    in its own forward passes, as in the paper's code. `negatives`: per query, K.
    """

    queue: Tensor
    oldest: Tensor
    filled: Tensor

    def __init__(self, recipe: Recipe, channels: int = 3) -> None:
        super().__init__()
        checks.kind("recipe", recipe, Recipe, "a Recipe")
        self.encoder = build_encoder(recipe.encoder, channels, recipe.norm)  # kept after training
        self.head = projection_head(self.encoder.features, recipe.dim, recipe.head_norm)  # thrown away
        self.key_encoder = copy.deepcopy(nn.Sequential(self.encoder, self.head)).requires_grad_(False)
        self.temperature = recipe.temperature
        self.momentum = recipe.momentum
        self.symmetric = recipe.symmetric
        self.groups, self.shuffle = recipe.bn_groups, recipe.shuffle
        self.negatives = recipe.queue
        self.register_buffer("queue", normalize(torch.randn(recipe.queue, recipe.dim)))
        self.register_buffer("oldest", torch.zeros((), dtype=torch.long))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))
        # In lists of their own: walking the modules at every step would take longer than the averaging.
        self.query_weights: list[Tensor] = [*self.encoder.parameters(), *self.head.parameters()]
        self.key_weights: list[Tensor] = [*self.key_encoder.parameters()]
        self.waiting: list[Tensor] = []  # keys of this step, pushed once the optimiser has stepped

    def forward(self, views: Tensor) -> Tensor:
        """The loss of views (2N, C, H, W), where rows i and i + N come from one image."""
        checks.pairs(views)
        first, second = views.chunk(2)
        loss = self._one_way(first, second)
        if self.symmetric:
            loss = (loss + self._one_way(second, first)) / 2
        return loss

    def _one_way(self, query_views: Tensor, key_views: Tensor) -> Tensor:
        queries, keys = self.queries(query_views), self.keys(key_views)  # (N, dim) each
        if self.training:
            self.waiting.append(keys)  # after the logits: a key is never its own query's negative
        return info_nce(queries, keys, self.queue, self.temperature)

    def queries(self, views: Tensor) -> Tensor:
        """Queries (N, dim) of any length."""
        checks.floats(views, ())
        return torch.cat([self.head(self.encoder(part)) for part in views.chunk(self._groups_here())])

    @torch.no_grad()
    def keys(self, views: Tensor) -> Tensor:
        """Unit keys (N, dim). With several BN groups, an image's key is normalised among other
        images than its query: else the shared statistics give the pair away (ShuffleBN, section 3.3).
        """
        checks.floats(views, ())
        if self.groups == 1:
            return normalize(self.key_encoder(views))
        everyone = gather(views)  # of all processes, which draw the same order
        order = torch.randperm(len(everyone)) if self.shuffle else torch.arange(len(everyone))
        (order,) = send([order], views.device)
        shuffled = own(everyone[order])
        keys = torch.cat([self.key_encoder(part) for part in shuffled.chunk(self._groups_here())])
        return normalize(own(gather(keys)[order.argsort()]))

    def _groups_here(self) -> int:
        """Batch-norm groups that this process holds."""
        return max(1, self.groups // world_size())

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the key encoder towards the query encoder, and push this step's keys. Never in evaluation.

        theta_key <- m * theta_key + (1 - m) * theta_query: an average over about 1 / (1 - m) steps.
        """
        if not self.training:
            return
        torch._foreach_lerp_(self.key_weights, self.query_weights, 1 - self.momentum)
        for keys in self.waiting:
            self.push(gather(keys))  # of all processes, so that every one has the same queue
        self.waiting.clear()

    @torch.no_grad()
    def push(self, keys: Tensor) -> None:
        """Put keys (n, dim) in the place of the n oldest, wrapping at the end; any n."""
        checks.matrix("keys", keys, rows=0, dim=self.queue.shape[1])
        size, pushed = len(self.queue), len(keys)
        kept = keys[-size:]  # more keys than places: the newest stay
        places = self.oldest + torch.arange(pushed - len(kept), pushed, device=keys.device)
        self.queue.index_copy_(0, places % size, kept.to(self.queue.dtype))
        self.oldest.add_(pushed).remainder_(size)
        self.filled.add_(pushed).clamp_(max=size)

    def chance(self) -> float:
        """Loss in nats of a network that knows nothing."""
        return chance_loss(self.negatives)

    def gauges(self) -> dict[str, float]:
        """Figures of its own for the progress line and the history: the filled share of the queue."""
        return {"queue_filled": int(self.filled) / len(self.queue)}
