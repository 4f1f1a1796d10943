"""What a method costs beside its networks, all measured in one run, step by step in turn.

The limit is the bare encoder with its head on ready-made views: forward, backward and update, and for
MoCo the key encoder's forward. All else (views, loss, queue, averaging, logging) is what a method adds.
Then: a step against the length of the queue, peak memory against batch and queue, and the cost of kNN.
"""

from __future__ import annotations

import copy
import math
import multiprocessing
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from minilab import checks
from minilab.data import Images, shapes
from minilab.evaluation import knn
from minilab.losses import info_nce, normalize, nt_xent
from minilab.precision import DTYPES
from minilab.recipe import METHODS, Recipe
from minilab.training import Trainer, pick_device
from minilab.views import two_views

ROUNDS, WARM, LEAST = 40, 3, 3
CALLS = 4  # on a GPU: as in training, the CPU prepares the next step while the GPU is at this one
QUEUES = (1024, 4096, 16_384, 65_536)  # the first is what the others are compared with
BATCHES = (64, 256, 1024)
KNN = {"bank": 50_000, "queries": 10_000}


def bench(encoder: str = "tiny", batch: int = 256, precision: str = "auto") -> dict[str, Any]:
    """All figures; images are Shapes (their kind does not matter).

    For each method: `images_per_second`, `fraction_of_limit`, `limit_images_per_second`, `precision`, and
    `milliseconds` of a step by part, medians. `views_per_second`. `queue_step_ratio`: {K: a MoCo step
    over one at K = 1,024}. `peak_megabytes`, of a process of its own that takes three steps: by method
    and batch, and by queue. `knn`: seconds and megabytes for CIFAR-10's 10,000 test images against 50,000.
    Raises `ValueError` if encoder, batch or precision is none that a recipe may have.
    """
    Recipe("simclr", encoder, batch=batch, precision=precision)  # refuses what is wrong before anything is measured
    images = shapes(train=max(8192, batch), test=16)
    recipes = {method: Recipe(method, encoder, epochs=1000, batch=batch, precision=precision) for method in METHODS}
    figures: dict[str, Any] = {method: _measure(recipe, images) for method, recipe in recipes.items()}
    views = figures["simclr"]["milliseconds"]["views"]
    settings = {"encoder": encoder, "precision": figures["moco"]["precision"]}
    return {
        **figures,
        "views_per_second": 2000 * batch / views,
        "queue_step_ratio": _queue_step_ratio(Recipe("moco", epochs=1000, batch=batch, **settings), images),
        "peak_megabytes": _peak_megabytes(batch, settings),
        "knn": _in_a_process(_knn_cost),
    }


def table(figures: dict[str, Any]) -> str:
    """The figures of `bench` as a table to read."""
    wanted = (*METHODS, "views_per_second", "queue_step_ratio", "peak_megabytes", "knn")
    if not isinstance(figures, dict) or not set(wanted) <= set(figures):
        checks.refuse("figures", figures, f"what bench returns, with {', '.join(wanted)}")
    lines = ["method   images/s    limit   share   milliseconds of a step"]
    for method in METHODS:
        row = figures[method]
        parts = ", ".join(f"{name} {value:.1f}" for name, value in row["milliseconds"].items())
        lines.append(
            f"{method:7s} {row['images_per_second']:9,.0f} {row['limit_images_per_second']:8,.0f} "
            f"{row['fraction_of_limit']:7.3f}   {parts} ({row['precision']})"
        )
    lines.append(f"augmentation: {figures['views_per_second']:,.0f} views/s")
    ratios = ", ".join(f"{value:.2f} at K = {int(k):,}" for k, value in figures["queue_step_ratio"].items())
    lines.append(f"a MoCo step over one at K = {QUEUES[0]:,}: {ratios}")
    for name, row in figures["peak_megabytes"].items():
        peaks = ", ".join(f"{value:,.0f} at {int(size):,}" for size, value in row.items())
        lines.append(f"peak MB, {name}: {peaks}")
    cost = figures["knn"]
    sizes = f"{KNN['queries']:,} images against {KNN['bank']:,}"
    lines.append(f"kNN of {sizes}: {cost['seconds']:.1f} s, {cost['megabytes']:,.0f} MB beside the features")
    return "\n".join(lines)


def _queue_step_ratio(recipe: Recipe, images: Images) -> dict[str, float]:
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of queues longer than the images: only time is measured
        trainers = {k: Trainer(_with(recipe, queue=k), images, pick_device(None), checkpoint=None) for k in QUEUES}
        batch = torch.arange(recipe.batch, device=pick_device(None))
        parts: dict[str, Callable[[], Any]] = {str(k): partial(t.take_step, batch) for k, t in trainers.items()}
        seconds = _in_turn(parts, max(3, ROUNDS // 2), pick_device(None))
    shortest, *longer = map(str, QUEUES)
    return {k: seconds[k] / seconds[shortest] for k in longer}


def _peak_megabytes(batch: int, settings: dict[str, str]) -> dict[str, dict[str, float]]:
    peaks: dict[str, dict[str, float]] = {}
    for method in METHODS:
        recipes = {str(size): Recipe(method, batch=size, **settings) for size in BATCHES}  # type: ignore[arg-type]
        peaks[f"{method} by batch"] = {size: _in_a_process(_peak, recipe) for size, recipe in recipes.items()}
    recipes = {str(k): Recipe("moco", batch=batch, queue=k, **settings) for k in QUEUES}  # type: ignore[arg-type]
    peaks["moco by queue"] = {k: _in_a_process(_peak, recipe) for k, recipe in recipes.items()}
    return peaks


def _in_a_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """What `work` returns in a fresh process: a peak of memory never falls, so each needs its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def _peak(recipe: Recipe) -> float:
    """Peak megabytes of three steps: allocated on the GPU, or else of the whole process, Python included."""
    device = pick_device(None)
    images = shapes(train=2 * recipe.batch, test=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = Trainer(recipe, images, device, checkpoint=None)
    for _ in range(3):
        trainer.take_step(torch.arange(recipe.batch, device=device))
    return _megabytes(device)


def _knn_cost() -> dict[str, float]:
    device = pick_device(None)
    generator = torch.Generator().manual_seed(0)
    features = {name: torch.randn(count, 256, generator=generator).to(device) for name, count in KNN.items()}
    labels = {name: torch.arange(count, device=device) % 10 for name, count in KNN.items()}
    before, start = _megabytes(device), time.perf_counter()
    knn(features["bank"], labels["bank"], features["queries"], labels["queries"])
    return {"seconds": time.perf_counter() - start, "megabytes": _megabytes(device) - before}


def _megabytes(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _with(recipe: Recipe, **changes: Any) -> Recipe:
    return Recipe.from_dict({**recipe.to_dict(), **changes})


def _measure(recipe: Recipe, images: Images, limit: float = math.inf) -> dict[str, Any]:
    """Speed and its parts; no new round begins after `limit` seconds, once there are `LEAST`."""
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
        seconds = _in_turn(parts, ROUNDS, trainer.device, limit)
    return {
        "images_per_second": recipe.batch / seconds["step"],
        "fraction_of_limit": seconds["networks"] / seconds["step"],
        "limit_images_per_second": recipe.batch / seconds["networks"],
        "precision": trainer.run.precision,
        "milliseconds": {name: 1000 * value for name, value in seconds.items()},
    }


def _in_turn(
    parts: dict[str, Callable[[], Any]], rounds: int, device: torch.device, limit: float = math.inf
) -> dict[str, float]:
    """Median seconds of each part; some calls of each in turn, so that a slow spell hits all alike."""
    spent: dict[str, list[float]] = {name: [] for name in parts}
    calls = CALLS if device.type == "cuda" else 1
    end = time.perf_counter() + limit
    for round_ in range(rounds + WARM):
        if round_ >= LEAST + WARM and time.perf_counter() > end:
            break
        for name, part in parts.items():
            _wait(device)
            start = time.perf_counter()
            for _ in range(calls):
                part()
            _wait(device)
            if round_ >= WARM:
                spent[name].append((time.perf_counter() - start) / calls)
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
