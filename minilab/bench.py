"""Speed of each method as a share of its networks' own speed, both measured in one run, step by step in turn.

The limit is the bare encoder with its head on ready-made views: forward, backward and update, and for
MoCo the key encoder's forward. All else (views, loss, queue, averaging, logging) is what a method adds.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from minilab.data import Images, shapes
from minilab.losses import info_nce, normalize, nt_xent
from minilab.precision import DTYPES
from minilab.recipe import METHODS, Recipe
from minilab.training import Trainer, pick_device
from minilab.views import two_views

ROUNDS = 40


def bench(encoder: str = "tiny", batch: int = 256, precision: str = "auto") -> dict[str, Any]:
    """Figures per method: `images_per_second`, `fraction_of_limit`, `limit_images_per_second`, `precision`,
    and `milliseconds` of a step by part. Medians; images are Shapes (their kind does not matter).
    """
    images = shapes(train=max(8192, batch), test=16)
    return {method: _measure(Recipe(method, encoder, epochs=1000, batch=batch, precision=precision), images)
            for method in METHODS}  # fmt: skip


def table(figures: dict[str, Any]) -> str:
    """The figures as a table to read."""
    lines = ["method   images/s    limit   share   milliseconds of a step"]
    for method, row in figures.items():
        parts = ", ".join(f"{name} {value:.1f}" for name, value in row["milliseconds"].items())
        lines.append(
            f"{method:7s} {row['images_per_second']:9,.0f} {row['limit_images_per_second']:8,.0f} "
            f"{row['fraction_of_limit']:7.3f}   {parts} ({row['precision']})"
        )
    return "\n".join(lines)


def _measure(recipe: Recipe, images: Images) -> dict[str, Any]:
    with torch.random.fork_rng(devices=[]):
        trainer = Trainer(recipe, images, pick_device(None), checkpoint=None)
        trainer.run.method.train()
        batches = [torch.randperm(len(images.train))[: recipe.batch].to(trainer.device) for _ in range(4)]
        views = two_views(trainer.images.train.index_select(0, batches[0]), trainer.views_rng)
        parts: dict[str, Callable[[], Any]] = {
            "step": lambda: trainer.take_step(batches[trainer.step % 4]),
            "networks": _bare_step(trainer, views),
            "views": lambda: two_views(trainer.images.train.index_select(0, batches[0]), trainer.views_rng),
            "loss": _loss(trainer),
            "after step": trainer.run.method.after_step,
        }
        seconds = _in_turn(parts, ROUNDS, trainer.device)
    return {
        "images_per_second": recipe.batch / seconds["step"],
        "fraction_of_limit": seconds["networks"] / seconds["step"],
        "limit_images_per_second": recipe.batch / seconds["networks"],
        "precision": trainer.run.precision,
        "milliseconds": {name: 1000 * value for name, value in seconds.items()},
    }


def _in_turn(parts: dict[str, Callable[[], Any]], rounds: int, device: torch.device) -> dict[str, float]:
    """Median seconds of each part; one call of each in turn, so that a slow spell hits all alike."""
    spent: dict[str, list[float]] = {name: [] for name in parts}
    for round_ in range(rounds + 3):  # three to warm up
        for name, part in parts.items():
            _wait(device)
            start = time.perf_counter()
            part()
            _wait(device)
            if round_ >= 3:
                spent[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in spent.items()}


def _bare_step(trainer: Trainer, views: Tensor) -> Callable[[], None]:
    """Forward, backward and update of networks of its own on `views`; MoCo's half of them are keys."""
    encoder = copy.deepcopy(nn.Sequential(trainer.run.encoder, trainer.run.method.head))
    optimizer = torch.optim.SGD(encoder.parameters(), lr=1e-3, momentum=0.9)
    keys = trainer.recipe.method == "moco"
    queries = views.chunk(2)[0] if keys else views
    dtype = DTYPES[trainer.run.precision]

    def step() -> None:
        with torch.autocast(trainer.device.type, dtype, enabled=dtype != torch.float32):
            if keys:
                with torch.no_grad():
                    encoder(views.chunk(2)[1])
            loss = encoder(queries).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def _loss(trainer: Trainer) -> Callable[[], None]:
    """The loss alone, forward and backward, on ready-made embeddings."""
    recipe, method = trainer.recipe, trainer.run.method
    queue = getattr(method, "queue", torch.empty(0))
    embeddings = torch.randn(2 * recipe.batch, recipe.dim, device=trainer.device, requires_grad=True)

    def step() -> None:
        if recipe.method == "moco":
            queries, keys = embeddings.chunk(2)
            loss = info_nce(queries, normalize(keys.detach()), queue, recipe.temperature)
        else:
            loss = nt_xent(embeddings, recipe.temperature)
        loss.backward()
        embeddings.grad = None

    return step


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
