"""When memory runs out in training: about what a step takes, and what to change."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import nn

from minilab.distributed import apart, world_size
from minilab.images import Images
from minilab.memory import activation_bytes
from minilab.recipe import CACHED, Recipe

REFUSALS = ("out of memory", "can't allocate memory", "bad_alloc", "ALLOC_FAILED")  # in torch's own messages
HALF = ("bfloat16", "float16")

Build = Callable[[Recipe, int], nn.Module]  # of a recipe and a number of channels, as `training.build_method`


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that there is too little memory, on a GPU or on the CPU."""
    words = str(error)
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(refusal in words for refusal in REFUSALS)


@contextmanager
def explained(recipe: Recipe, images: Images, build: Build) -> Iterator[None]:
    """Turn running out of memory within into a `MemoryError` that names batch, chunk, bytes and the way out."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        traceback.clear_frames(error.__traceback__)  # they hold the tensors, in a notebook until the next error
        raise MemoryError(_explanation(recipe, images, build)) from error


def _explanation(recipe: Recipe, images: Images, build: Build) -> str:
    try:
        kinds = step_bytes(recipe, images, build)
    except (RuntimeError, MemoryError):  # not even a few images fit
        needed = "more than there is"
    else:
        parts = ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in kinds.items() if size)
        needed = f"about {sum(kinds.values()):,} bytes in {_precision(recipe)}: {parts}"
    ways = ["a smaller batch"]
    if recipe.method in CACHED and recipe.bn_groups == 1 and world_size() == 1:
        ways.append("a smaller chunk" if recipe.chunk else "a chunk, the images that are in memory at once")
    if recipe.method == "moco":
        ways.append("a shorter queue")
    return (
        f"out of memory: batch is {recipe.batch} and chunk is {recipe.chunk}, for which a step takes {needed}; "
        f"allowed: what fits, so {' or '.join(ways)}"
    )


def step_bytes(recipe: Recipe, images: Images, build: Build) -> dict[str, int]:
    """About the bytes that a step of `recipe` takes in each process, by kind; `build` makes its method.

    Kinds: `images`, the data itself; `weights`, with gradients and momentum, and MoCo's key encoder; `activations`,
    what the forward pass keeps for the backward pass, logits included; `queue`. Activations are counted on the real
    network with a few images. They are a polynomial of degree 2 in the batch (logits are its square), so three
    counts give all. Left out: what lives for a moment within a layer, and torch itself.
    """
    groups = recipe.bn_groups
    unit, moco = 2 * groups, recipe.method == "moco"
    method = build(replace(recipe, method="moco" if moco else "simclr", queue=unit), images.train.shape[1]).train()
    half = torch.autocast("cpu", torch.bfloat16, enabled=_precision(recipe) in HALF)
    with apart(), half, torch.random.fork_rng(devices=[]):
        first, second, third = (
            activation_bytes(method, torch.rand(2 * count * unit, *images.train.shape[1:])) for count in (1, 2, 3)
        )
    bend = third - 2 * second + first

    def kept(count: int) -> float:
        more = count / unit - 1
        return first + more * (second - first) + more * (more - 1) / 2 * bend

    whole = recipe.batch // world_size()
    part = min(recipe.chunk or whole, whole)
    activations = kept(part)
    if part < whole and not moco and recipe.accumulation == "gradcache":  # the logits are of the whole batch
        activations += bend / 2 * (whole**2 - part**2) / unit**2
    learned = sum(weight.nbytes for weight in method.parameters() if weight.requires_grad)
    return {
        "images": sum(split.nbytes for split in (images.train, images.test)),
        "weights": sum(weight.nbytes for weight in method.parameters()) + 2 * learned,
        "activations": round(activations),
        "queue": 4 * recipe.queue * recipe.dim if moco else 0,
    }


def _precision(recipe: Recipe) -> str:
    return "float32" if recipe.precision == "auto" else recipe.precision
