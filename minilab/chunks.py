"""One update's gradient when the batch does not fit in memory at once: three ways to go through it.

Each is called with a method, its views and a `scale` for the loss (of mixed precision; else 1),
adds to the gradients of the method's parameters, and returns the loss, detached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from minilab import checks
from minilab.moco import MoCo
from minilab.recipe import Recipe
from minilab.simclr import SimCLR

Scale = Callable[[Tensor], Tensor]


def backward(method: nn.Module, views: Tensor, recipe: Recipe, scale: Scale, autocast: torch.autocast) -> Tensor:
    """Forward and backward of views (2N, C, H, W) as `recipe.chunk` and `recipe.accumulation` say.

    `method`: a SimCLR or a MoCo; or, with no chunk, one that DistributedDataParallel has wrapped.
    Raises `ValueError` if views or method do not fit.
    """
    checks.kind("recipe", recipe, Recipe, "a Recipe")
    if recipe.chunk is None or recipe.chunk >= recipe.batch:
        return whole(method, views, scale, autocast)
    if recipe.accumulation == "naive" or isinstance(method, MoCo):  # a query's loss does not need the other queries
        return naive(method, views, recipe.chunk, scale, autocast)
    return gradcache(cast(SimCLR, method), views, recipe.chunk, scale, autocast)


def whole(method: nn.Module, views: Tensor, scale: Scale, autocast: torch.autocast) -> Tensor:
    """One forward and one backward of the whole batch."""
    _check(method, views, scale, autocast)
    with autocast:
        loss = method(views)
    scale(loss).backward()
    return loss.detach()


def naive(method: nn.Module, views: Tensor, chunk: int, scale: Scale, autocast: torch.autocast) -> Tensor:
    """A loss for each chunk of images, averaged. SimCLR's anchors meet only the negatives of their chunk."""
    _check(method, views, scale, autocast)
    losses = []
    for part in split(views, chunk):
        with autocast:
            loss = method(part) * (len(part) / len(views))
        scale(loss).backward()
        losses.append(loss.detach())
    return torch.stack(losses).sum()


def gradcache(method: SimCLR, views: Tensor, chunk: int, scale: Scale, autocast: torch.autocast) -> Tensor:
    """One loss over all, with one chunk's activations in memory (GradCache, arXiv 2101.06983).

    First every chunk's embeddings without a graph; then the loss and its gradient on those alone;
    then each chunk again, with its share of that gradient sent back. Random draws of the first
    pass (dropout) are made again in the second. Exact, except that batch norm sees one chunk at a time.
    """
    _check(method, views, scale, autocast)
    if not (hasattr(method, "embed") and hasattr(method, "loss")):
        checks.refuse("method", type(method).__name__, "a SimCLR, whose loss is one of embeddings alone")
    parts = list(split(views, chunk))
    states, embeddings = [], []
    with torch.no_grad(), autocast, statistics_kept(method):
        for part in parts:
            states.append(random_state(views.device))
            embedded = method.embed(part)
            embedded = embedded if embedded.dtype == torch.float64 else embedded.float()
            embeddings.append(embedded.unflatten(0, (2, -1)))  # (2, n, dim)
    z = torch.cat(embeddings, dim=1).flatten(0, 1).requires_grad_()  # (2N, dim)
    loss = method.loss(z)
    (gradient,) = torch.autograd.grad(scale(loss), z)
    shares = gradient.unflatten(0, (2, -1)).split([len(part) // 2 for part in parts], dim=1)
    after = random_state(views.device)
    for part, state, share in zip(parts, states, shares, strict=True):
        set_random_state(state, views.device)
        with autocast:
            again = method.embed(part)
        again.backward(share.flatten(0, 1).to(again.dtype))
    set_random_state(after, views.device)
    return loss.detach()


def split(views: Tensor, chunk: int) -> Iterator[Tensor]:
    """Both views of `chunk` images at a time: (2N, ...) to several (2n, ...); the last may be shorter."""
    checks.pairs(views, "(2N, ...)")
    checks.whole("chunk", chunk, 1)
    for part in views.unflatten(0, (2, -1)).split(chunk, dim=1):
        yield part.flatten(0, 1)


@contextmanager
def statistics_kept(module: nn.Module) -> Iterator[None]:
    """Batch norm still normalises by the batch, but leaves its running statistics alone: a step counts once."""
    checks.kind("module", module, nn.Module, "a torch.nn.Module")
    layers = [layer for layer in module.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    before = [layer.track_running_stats for layer in layers]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer, value in zip(layers, before, strict=True):
            layer.track_running_stats = value


def random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    """State of the random generators that layers draw from: the CPU's, and the GPU's where it is used."""
    checks.kind("device", device, torch.device, "a torch.device")
    return torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def set_random_state(state: tuple[Tensor, Tensor | None], device: torch.device) -> None:
    """Back to a state that `random_state` returned."""
    checks.kind("device", device, torch.device, "a torch.device")
    good = isinstance(state, tuple) and len(state) == 2 and isinstance(state[0], Tensor)
    if not good or state[0].dtype != torch.uint8 or state[0].shape != torch.get_rng_state().shape:
        checks.refuse("state", state, "what random_state returned")
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state(state[1], device)


def _check(method: nn.Module, views: Tensor, scale: Scale, autocast: torch.autocast) -> None:
    checks.kind("method", method, nn.Module, "a SimCLR or a MoCo")
    checks.pairs(views, "(2N, ...)")
    checks.kind("scale", scale, Callable, "a function of the loss")
    checks.kind("autocast", autocast, AbstractContextManager, "a torch.autocast")
