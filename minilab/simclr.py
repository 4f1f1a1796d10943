"""SimCLR (Chen et al., arXiv 2002.05709): the negatives are the other views of the batch.

Lay it beside `moco.py`. What MoCo adds is a second encoder, a queue, and work after each step.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from minilab import checks
from minilab.distributed import nt_xent_gathered, world_size
from minilab.encoder import build_encoder, projection_head
from minilab.losses import chance_loss, nt_xent
from minilab.recipe import Recipe


class SimCLR(nn.Module):
    """One encoder, one head, and no other state.

    Batch norm sees the whole batch, both views together: the paper's global BN (section 2.2). With
    several BN groups it sees one group of images at a time, as on devices that do not share statistics.
    `negatives`: per anchor and step, 2N - 2.
    """

    def __init__(self, recipe: Recipe, channels: int = 3) -> None:
        super().__init__()
        checks.kind("recipe", recipe, Recipe, "a Recipe")
        self.encoder = build_encoder(recipe.encoder, channels, recipe.norm)  # kept after training
        self.head = projection_head(self.encoder.features, recipe.dim, recipe.head_norm)  # thrown away
        self.temperature = recipe.temperature
        self.groups = recipe.bn_groups
        naive = recipe.chunk is not None and recipe.accumulation == "naive"
        self.negatives = 2 * (recipe.chunk if naive and recipe.chunk else recipe.batch) - 2

    def forward(self, views: Tensor) -> Tensor:
        """The loss of views (2N, C, H, W), where rows i and i + N come from one image."""
        return self.loss(self.embed(views))

    def embed(self, views: Tensor) -> Tensor:
        """Views (2N, C, H, W) to embeddings (2N, dim), in the same order."""
        checks.pairs(views)
        groups = self.groups // world_size()  # of this process
        if groups <= 1:
            return self.head(self.encoder(views))
        pairs = views.unflatten(0, (2, -1))  # (2, N, C, H, W): a group has both views of its images
        parts = [self.head(self.encoder(part.flatten(0, 1))) for part in pairs.chunk(groups, dim=1)]
        return torch.cat([part.unflatten(0, (2, -1)) for part in parts], dim=1).flatten(0, 1)

    def loss(self, embeddings: Tensor) -> Tensor:
        """The loss of embeddings (2N, dim), however they were computed."""
        loss = nt_xent if world_size() == 1 else nt_xent_gathered
        return loss(embeddings, self.temperature)

    def chance(self) -> float:
        """Loss in nats of a network that knows nothing."""
        return chance_loss(self.negatives)

    def after_step(self) -> None:
        """Nothing to do once the optimiser has stepped: all state is in the weights."""

    def gauges(self) -> dict[str, float]:
        """Figures of its own for the progress line and the history: none."""
        return {}
