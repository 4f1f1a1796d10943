"""A batch spread over devices: what each way to gather the embeddings does to SimCLR's loss and gradient.

Every scheme runs in real processes under DistributedDataParallel, each with images of its own, and is set
beside one process with the whole batch. Batch norm uses running statistics and numbers are float64, so
that a difference is the scheme's and not the statistics' or a rounding's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from minilab.checks import shown
from minilab.distributed import gather, rank, world_size
from minilab.losses import normalize
from minilab.pitfalls.accumulation import CandidateCounter, freeze_batch_norm
from minilab.processes import run_processes
from minilab.recipe import Recipe
from minilab.simclr import SimCLR
from minilab.spectra.checks import matrix, pairs, whole

# name: (whose rows are anchors, what of the candidates carries a gradient)
SCHEMES: dict[str, tuple[str, str]] = {
    "own rows, gather with gradient": ("own", "all"),
    "all rows, gather with gradient": ("all", "all"),
    "all rows, gradient to own slice": ("all", "own"),
    "own rows, gradient to own slice": ("own", "own"),
    "own rows, gather without gradient": ("own", "none"),
    "all rows, gather without gradient": ("all", "none"),
    "no gather: a loss per device": ("own", "no gather"),
}


class Learner(nn.Module):
    """SimCLR's encoder and head, and a temperature that is learned: its logarithm is a parameter, as in CLIP."""

    def __init__(self, method: SimCLR) -> None:
        super().__init__()
        self.method = method
        self.log_temperature = nn.Parameter(torch.tensor(math.log(method.temperature), dtype=torch.float64))

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """Views (2n, C, H, W) to unit embeddings (2n, dim) and the temperature."""
        return normalize(self.method.embed(views)), self.log_temperature.exp()


def sharded_loss(z: Tensor, temperature: Tensor, scheme: str) -> Tensor:
    """The loss of one process's unit embeddings z (2n, dim), rows i and i + n of one image, by `scheme`."""
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise ValueError(f"scheme is {scheme!r}; allowed: {', '.join(SCHEMES)}")
    matrix("z", z, 2)
    pairs("z", len(z), 2)
    rows, gradient = SCHEMES[scheme]
    first = rank() * len(z)  # where own rows are among everyone's
    if gradient == "no gather":
        candidates, first = z, 0
    elif gradient == "all":
        candidates = gather(z)
    else:
        candidates = gather(z.detach())
        if gradient == "own":
            candidates = candidates.index_copy(0, torch.arange(first, first + len(z)), z)
    if rows == "own":
        return _loss_of_rows(z, candidates, torch.arange(first, first + len(z)), len(z), temperature)
    return _loss_of_rows(candidates, candidates, torch.arange(len(candidates)), len(z), temperature)


def _loss_of_rows(anchors: Tensor, candidates: Tensor, place: Tensor, shard: int, temperature: Tensor) -> Tensor:
    """Cross-entropy of `anchors`, which are at `place` among `candidates`; a shard is `shard` rows, pair by pair."""
    logits = (anchors @ candidates.T / temperature).scatter(1, place[:, None], -math.inf)
    partner = place - place % shard + (place % shard + shard // 2) % shard
    return F.cross_entropy(logits, partner)


@dataclass(frozen=True)
class Step:
    """One step: the `loss` that is logged, `candidates` of an anchor, and the gradients of what is learned."""

    loss: float
    candidates: int
    gradient: Tensor  # of the encoder and head, flat
    temperature_gradient: float  # of the temperature's logarithm


def compare(method: SimCLR, recipe: Recipe, views: Tensor, world: int, seconds: float = 60.0) -> dict[str, Step]:
    """The step of views (2N, C, H, W) in one process ("one process"), and by each scheme in `world` processes.

    `method` is that of `recipe`, and is left alone. Raises `ValueError` if the images do not divide among the
    processes into shards of two or more, and `minilab.processes.WorkerError` if a process fails, dies or hangs.
    """
    pairs("views", len(views))
    check_shards(len(views) // 2, world)
    weights = {name: value.detach().cpu().numpy() for name, value in method.state_dict().items()}
    numbers = views.detach().cpu().double().numpy()
    results = run_processes(_all_schemes, world, recipe.to_dict(), weights, numbers, seconds=seconds)
    learner = _learner(recipe.to_dict(), weights)
    steps = {"one process": _step(learner, learner, torch.from_numpy(numbers), "no gather: a loss per device")}
    for scheme in SCHEMES:
        loss = sum(result[scheme][0] for result in results) / world
        _, candidates, gradient, of_temperature = results[0][scheme]  # DDP has made gradients equal on all ranks
        steps[scheme] = Step(loss, candidates, torch.from_numpy(gradient), of_temperature)
    return steps


def check_shards(images: int, world: int) -> None:
    """Raise `ValueError` unless `images` divide among `world` processes, two or more to each."""
    if not whole(images, 4, 2**62):
        raise ValueError(f"images is {shown(images)}; allowed: a whole number, 4 or more")
    if not whole(world, 2, images) or images % world or images // world < 2:
        raise ValueError(
            f"world is {shown(world)}; allowed: 2 or more, in equal shards of 2 or more of {images} images"
        )


def _all_schemes(
    recipe: dict[str, Any], weights: dict[str, np.ndarray], numbers: np.ndarray
) -> dict[str, tuple[float, int, np.ndarray, float]]:
    """What one process computes: each scheme on its own shard of the views."""
    pairs = torch.from_numpy(numbers).unflatten(0, (2, -1))  # (2, N, C, H, W)
    views = pairs.chunk(world_size(), dim=1)[rank()].flatten(0, 1)
    found = {}
    for scheme in SCHEMES:
        learner = _learner(recipe, weights)
        step = _step(learner, DistributedDataParallel(learner), views, scheme)
        found[scheme] = (step.loss, step.candidates, step.gradient.numpy(), step.temperature_gradient)
    return found


def _learner(recipe: dict[str, Any], weights: dict[str, np.ndarray]) -> Learner:
    method = SimCLR(Recipe.from_dict(recipe), channels=next(iter(weights.values())).shape[1])
    method.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    freeze_batch_norm(method)
    return Learner(method).double()


def _step(learner: Learner, network: nn.Module, views: Tensor, scheme: str) -> Step:
    """Forward and backward through `network`, which is `learner` or a wrapper of it."""
    with CandidateCounter() as counter:
        z, temperature = network(views)
        loss = sharded_loss(z, temperature, scheme)
    loss.backward()
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in learner.method.parameters()]
    of_temperature = learner.log_temperature.grad
    assert of_temperature is not None
    candidates = min(candidates for _, candidates in counter.seen)
    return Step(float(loss.detach()), candidates, torch.cat([part.flatten() for part in parts]), float(of_temperature))


def table(steps: dict[str, Step]) -> str:
    """What `compare` found, as text. Gradients are set beside those of one process; tau's in the last column."""
    if "one process" not in steps:
        raise ValueError(f"steps has {', '.join(steps) or 'nothing'}; allowed: what `compare` gives, with one process")
    true = steps["one process"]
    lines = [f"{'':33s} negatives   loss  cosine  length    tau"]
    for name, step in steps.items():
        length = float(step.gradient.norm() / true.gradient.norm())
        cosine = f"{float(F.cosine_similarity(step.gradient, true.gradient, dim=0)):7.3f}" if length else f"{'-':>7s}"
        warmth = step.temperature_gradient / true.temperature_gradient
        lines.append(f"{name:33s} {step.candidates - 1:9d} {step.loss:6.3f} {cosine} {length:7.3f} {warmth:6.2f}")
    return "\n".join(lines)
