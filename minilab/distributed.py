"""One batch spread over several processes: collectives with a gradient, and SimCLR's loss on top of them.

Without a process group, or alone in one, every function here is what it is on one device.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from minilab.losses import normalize

# Newer torch has renamed both; the old names warn there, and the new ones are missing in torch 2.4.
_all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def world_size() -> int:
    """Processes in the group; 1 without one."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process in the group; 0 without one."""
    return dist.get_rank() if world_size() > 1 else 0


def gather(rows: Tensor) -> Tensor:
    """Rows (n, ...) of every process, in order of rank (W * n, ...), with a gradient.

    Every process must bring equally many. Backward, a process gets the gradients of its own rows
    from all processes, added up: what each of them computed with these rows is lost in no case.
    """
    if world_size() == 1:
        return rows
    gathered: Tensor = GatherWithGradient.apply(rows)
    return gathered


class GatherWithGradient(torch.autograd.Function):
    """All-gather forward, reduce-scatter (sum) backward: each is the other's transpose."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        """(n, ...) to (W * n, ...)."""
        gathered = rows.new_empty(world_size() * len(rows), *rows.shape[1:])
        _all_gather(gathered, rows.contiguous())
        return gathered

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """(W * n, ...) to (n, ...)."""
        own = gradient.new_empty(len(gradient) // world_size(), *gradient.shape[1:])
        _reduce_scatter(own, gradient.contiguous())  # a gradient can come in as a transposed or expanded view
        return own


def nt_xent_gathered(embeddings: Tensor, temperature: float) -> Tensor:
    """SimCLR's loss when the batch is spread over processes: own anchors, everyone's candidates.

    `embeddings`: (2n, dim), rows i and i + n are the two views of own image i; n is the same everywhere.
    Its mean over the processes is `minilab.losses.nt_xent` of the whole batch, and so is its gradient
    once it is averaged over the processes, as DistributedDataParallel does.
    """
    with torch.autocast(embeddings.device.type, enabled=False):
        z = normalize(embeddings)
        everyone = gather(z)  # (W * 2n, dim)
        own = rank() * len(z) + torch.arange(len(z), device=z.device)  # where own rows are among them
        logits = (z / temperature) @ everyone.T  # (2n, W * 2n)
        logits = logits.scatter(1, own[:, None], -math.inf)  # no anchor is its own candidate
        return F.cross_entropy(logits, own.roll(len(z) // 2))
