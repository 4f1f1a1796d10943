"""Whether a recipe, the images and the processes fit together, asked before a run begins."""

from __future__ import annotations

import warnings

from minilab import checks
from minilab.data import Images
from minilab.distributed import world_size
from minilab.recipe import Recipe


def check_fit(recipe: Recipe, images: Images) -> None:
    """Raise `ValueError` if the batch is larger than the images; warn if the queue is nearly so.

    Images must be gray or RGB, and two of them for testing, whose features are compared after each epoch.
    """
    checks.kind("recipe", recipe, Recipe, "a Recipe")
    checks.kind("images", images, Images, "an Images")
    count, channels = images.train.shape[:2]
    if channels not in (1, 3):
        raise ValueError(f"images have {channels} channels; allowed: 1 or 3")
    if len(images.test) < 2:
        raise ValueError("images has 1 test image; allowed: 2 or more")
    if recipe.batch > count:
        raise ValueError(f"batch is {recipe.batch}; allowed: at most the number of images, {count}")
    _check_processes(recipe, world_size())
    if recipe.chunk is not None and recipe.chunk < recipe.batch:
        warnings.warn(
            f"chunk is {recipe.chunk}: batch norm uses the statistics of one chunk at a time, so the gradient is not "
            f"that of a batch of {recipe.batch}, but of bn_groups = {-(-recipe.batch // recipe.chunk)}",
            stacklevel=3,
        )
    if recipe.method == "moco" and recipe.queue > count - recipe.batch:
        warnings.warn(
            f"queue is {recipe.queue} and there are {count} images: each query meets old keys of its own image as "
            f"negatives. With a queue of a small share of the images few queries do.",
            stacklevel=3,
        )


def _check_processes(recipe: Recipe, world: int) -> None:
    """Raise `ValueError` unless `world` processes can share the recipe's batch evenly."""
    if world == 1:
        return
    where = f"allowed in {world} processes"
    if recipe.method not in ("simclr", "moco"):
        raise ValueError(f"method is {recipe.method!r}; {where}: simclr, moco")
    if recipe.batch % world or recipe.batch < 2 * world:
        raise ValueError(f"batch is {recipe.batch}; {where}: a multiple of {world}, {2 * world} or more")
    if recipe.bn_groups != 1 and recipe.bn_groups % world:
        raise ValueError(f"bn_groups is {recipe.bn_groups}; {where}: 1, over all of them, or a multiple of {world}")
    if recipe.chunk is not None:
        raise ValueError(f"chunk is {recipe.chunk}; {where}: None")
