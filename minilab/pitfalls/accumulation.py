"""Gradient accumulation: what it does to SimCLR's negatives, beside GradCache and the true large batch.

Accumulation averages the gradients of small losses. Each small loss has a softmax of its own, so an anchor
meets the negatives of its chunk only. GradCache (arXiv 2101.06983) computes one loss over all embeddings and
still has one chunk's activations in memory at a time.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from minilab import chunks
from minilab.checks import shown
from minilab.memory import peak_saved_bytes
from minilab.simclr import SimCLR
from minilab.spectra.checks import pairs, whole

WAYS = ("whole", "naive", "gradcache")


class CandidateCounter(TorchFunctionMode):
    """Counts, while it is active, what every cross-entropy chooses among: `seen`, (anchors, candidates) of each."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, int]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the finite entries of each row of logits, and let the call go on as it was."""
        if func is F.cross_entropy:
            logits = args[0] if args else kwargs["input"]
            finite = torch.isfinite(logits.detach()).sum(dim=1)  # an anchor's own entry is -inf: no candidate
            self.seen.append((len(finite), int(finite.min())))
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Step:
    """One step's forward and backward: `loss`, the flat `gradient`, what each softmax chose among, and bytes kept."""

    loss: float
    gradient: Tensor
    seen: list[tuple[int, int]]
    peak_bytes: int


def one_step(method: SimCLR, views: Tensor, way: str, chunk: int) -> Step:
    """Forward and backward of views (2N, C, H, W) the given way, on a copy of `method`, which is left alone.

    `way`: "whole", "naive" or "gradcache". `chunk`: images at once; ignored by "whole". Raises `ValueError`
    naming the argument.
    """
    if way not in WAYS:
        raise ValueError(f"way is {way!r}; allowed: {', '.join(WAYS)}")
    _check(views, way, chunk)
    method = copy.deepcopy(method)
    off = torch.autocast(views.device.type, enabled=False)

    def work() -> Tensor:
        if way == "whole":
            return chunks.whole(method, views, _as_it_is, off)
        return getattr(chunks, way)(method, views, chunk, _as_it_is, off)

    with CandidateCounter() as counter:
        loss, peak = peak_saved_bytes(work, method)
    gradient = torch.cat([p.grad.flatten() for p in method.parameters() if p.grad is not None])
    return Step(float(loss), gradient, counter.seen, peak)


def compare(method: SimCLR, views: Tensor, chunk: int) -> dict[str, dict[str, float]]:
    """All three ways on the same views: `loss, softmaxes, candidates, cosine, norm_ratio, megabytes` of each.

    `cosine` and `norm_ratio` set a gradient beside that of the whole batch. `candidates` are of one anchor.
    """
    steps = {way: one_step(method, views, way, chunk) for way in WAYS}
    true = steps["whole"].gradient
    return {
        way: {
            "loss": step.loss,
            "softmaxes": len(step.seen),
            "candidates": min(candidates for _, candidates in step.seen),
            "cosine": float(F.cosine_similarity(step.gradient, true, dim=0)),
            "norm_ratio": float(step.gradient.norm() / true.norm()),
            "megabytes": step.peak_bytes / 1e6,
        }
        for way, step in steps.items()
    }


def freeze_batch_norm(method: nn.Module) -> None:
    """Batch norm by its running statistics, so that what a chunk computes does not depend on the other chunks."""
    for layer in method.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.eval()


def _check(views: Tensor, way: str, chunk: int) -> None:
    if views.ndim != 4:
        raise ValueError(f"views has the shape {tuple(views.shape)}; allowed: (2N, C, H, W)")
    pairs("views", len(views))
    images = len(views) // 2
    if way == "gradcache" and not whole(chunk, 1, images):
        raise ValueError(f"chunk is {shown(chunk)}; allowed: a whole number from 1 to {images}")
    if way == "naive" and (not whole(chunk, 2, images) or images % chunk == 1):
        raise ValueError(f"chunk is {shown(chunk)}; allowed: from 2 to {images}, leaving no single image")


def _as_it_is(loss: Tensor) -> Tensor:
    return loss
