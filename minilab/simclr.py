"""SimCLR (Chen et al., arXiv 2002.05709): the negatives are the other views of the batch.

Lay it beside `moco.py`. What MoCo adds is a second encoder, a queue, and work after each step.
"""

from __future__ import annotations

from torch import Tensor, nn

from minilab.encoder import build_encoder, projection_head
from minilab.losses import nt_xent
from minilab.recipe import Recipe


class SimCLR(nn.Module):
    """One encoder, one head, and no other state.

    Batch norm sees the whole batch, both views together: the paper's global BN (section 2.2).
    `negatives`: per anchor and step, 2N - 2.
    """

    def __init__(self, recipe: Recipe, channels: int = 3) -> None:
        super().__init__()
        self.encoder = build_encoder(recipe.encoder, channels)  # kept after training
        self.head = projection_head(self.encoder.features, recipe.dim)  # thrown away
        self.temperature = recipe.temperature
        self.negatives = 2 * recipe.batch - 2

    def forward(self, views: Tensor) -> Tensor:
        """The loss of views (2N, C, H, W), where rows i and i + N come from one image."""
        embeddings = self.head(self.encoder(views))  # (2N, dim)
        return nt_xent(embeddings, self.temperature)

    def after_step(self) -> None:
        """Nothing to do once the optimiser has stepped: all state is in the weights."""

    def gauges(self) -> dict[str, float]:
        """Figures of its own for the progress line and the history: none."""
        return {}
