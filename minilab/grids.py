"""The book's grids of recorded runs, by name. `minilab sweep` trains them; a run in two grids is trained once.

On CIFAR-10 a run sees 10 x 20,000 images, about two minutes of one CPU core. In a grid all runs see
equally many. Learning rates follow the recipe's own rule, 0.06 * sqrt(batch / 256), unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from minilab import checks
from minilab.data import Images, open_images, shapes
from minilab.recipe import Recipe
from minilab.shapes import MOST_CONCEPTS

SOURCES = ("cifar10", "shapes")
IMAGES = 20_000


@dataclass(frozen=True)
class Cell:
    """One run of a grid: a recipe and its images, which can be made or opened anywhere.

    `source`: "cifar10" or "shapes". `images`: training images. `concepts`: of Shapes, else ignored.
    """

    recipe: Recipe
    source: str = "cifar10"
    images: int = IMAGES
    concepts: int = 10

    def __post_init__(self) -> None:
        checks.kind("recipe", self.recipe, Recipe, "a Recipe")
        checks.one_of("source", self.source, SOURCES)
        checks.whole("images", self.images, 1, 10**7)
        checks.whole("concepts", self.concepts, 1, MOST_CONCEPTS)

    @property
    def name(self) -> str:
        """A name for its record: the method and what is not as usual, such as "moco-momentum0.9-seed1"."""
        usual = Recipe(self.recipe.method, precision="float32")
        parts = [self.recipe.method]
        for item in fields(Recipe):
            value = getattr(self.recipe, item.name)
            if item.name != "seed" and value != getattr(usual, item.name):
                shown = value if isinstance(value, str) else f"{item.name.replace('_', '')}{value}"
                parts.append(str(shown))
        if self.source == "shapes":
            parts.insert(0, f"shapes{self.concepts}")
        if self.images != IMAGES:
            parts.append(f"images{self.images}")
        return "-".join([*parts, f"seed{self.recipe.seed}"])

    def open(self) -> Images:
        """Its images. Raises `OSError` if CIFAR-10 is not there and cannot be fetched."""
        if self.source == "shapes":
            return shapes(concepts=self.concepts, train=self.images, test=min(self.images, 10_000))
        return open_images("cifar10").subset(self.images)


@dataclass(frozen=True)
class Grid:
    """A named list of cells and the question that it answers."""

    question: str
    cells: list[Cell] = field(default_factory=list)

    def __post_init__(self) -> None:
        checks.kind("question", self.question, str, "a text")
        if not isinstance(self.cells, list) or not all(isinstance(cell, Cell) for cell in self.cells):
            checks.refuse("cells", self.cells, "a list of Cell")


def _cells(seeds: int, variants: list[dict[str, Any]], **common: Any) -> list[Cell]:
    """A cell for each variant of a recipe and each seed; seed by seed, so that a part of a grid is a whole one."""
    of_cell = {name: common.pop(name) for name in ("source", "images") if name in common}
    cells = []
    for seed in range(seeds):
        for variant in variants:
            settings = {"precision": "float32", **common, **variant, "seed": seed}
            here = {name: settings.pop(name) for name in ("concepts",) if name in settings}
            cells.append(Cell(Recipe(**settings), **of_cell, **here))
    return cells


def _over(name: str, values: tuple[Any, ...], **common: Any) -> list[dict[str, Any]]:
    return [{name: value, **common} for value in values]


def _momentum() -> Grid:
    values = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
    return Grid("What does the momentum coefficient do?", _cells(3, _over("momentum", values), method="moco"))


def _queue() -> Grid:
    values = (256, 1024, 4096, 16_384, 65_536)
    return Grid("How long should the queue be?", _cells(2, _over("queue", values), method="moco"))


def _batch() -> Grid:
    values = (16, 32, 64, 128, 256, 512, 1024)
    variants = _over("batch", values, method="simclr") + _over("batch", values, method="moco")
    return Grid("What does the batch do to SimCLR, and what to MoCo?", _cells(2, variants))


def _temperature() -> Grid:
    values = (0.05, 0.1, 0.2, 0.5)
    variants = _over("temperature", values, method="simclr") + _over("temperature", values, method="moco")
    return Grid("What does the temperature do?", _cells(1, variants))


def _accumulation() -> Grid:
    # Batch norm sees 32 images at a time in every arm but the first: only the negatives differ.
    variants: list[dict[str, Any]] = [
        {"batch": 256},
        {"batch": 256, "bn_groups": 8},
        {"batch": 256, "chunk": 32, "accumulation": "naive"},
        {"batch": 256, "chunk": 32},
        {"batch": 32},
    ]
    return Grid("Does gradient accumulation give SimCLR a larger batch?", _cells(3, variants, method="simclr"))


def _shards() -> Grid:
    # A loss per device, averaged over 8 devices, is what 8 accumulated chunks compute; a loss over gathered
    # embeddings, with a gradient through the gather, is what one device computes. So these are runs of `accumulation`.
    variants: list[dict[str, Any]] = [
        {"batch": 256, "bn_groups": 8},
        {"batch": 256, "chunk": 32, "accumulation": "naive"},
    ]
    return Grid("What does a loss per device cost SimCLR on 8 devices?", _cells(3, variants, method="simclr"))


def _concepts() -> Grid:
    variants = [
        {"concepts": concepts, "queue": queue} for concepts in (2, 4, 8, 16, 64) for queue in (64, 1024, 16_384)
    ]
    common: dict[str, Any] = {"method": "moco", "batch": 128, "source": "shapes"}  # at 256, too few steps for Shapes
    return Grid("Do more negatives hurt on a narrow corpus?", _cells(1, variants, **common))


def _batchnorm() -> Grid:
    variants: list[dict[str, Any]] = [{}, {"norm": "group"}]
    variants += [{"bn_groups": groups, "shuffle": shuffle} for groups in (8, 32) for shuffle in (False, True)]
    return Grid("What does MoCo learn from shared batch statistics?", _cells(2, variants, method="moco"))


def _alternatives() -> Grid:
    methods = ("simclr", "dcl", "sigmoid", "simsiam", "simsiam-no-stop")
    small: list[dict[str, Any]] = [{"method": method, "batch": 32} for method in ("simclr", "dcl")]
    return Grid("Are negatives needed, and a softmax?", _cells(2, [{"method": method} for method in methods] + small))


def _oracle() -> Grid:
    variants = [{"concepts": concepts, "method": method} for concepts in (2, 8, 64) for method in ("simclr", "oracle")]
    return Grid("What do false negatives cost?", _cells(1, variants, batch=128, source="shapes"))


def _phases() -> Grid:
    # How far the key encoder moves in a step, gamma = 1 - m, against how many steps old the queue is, Q / B.
    variants: list[dict[str, Any]] = [
        {"momentum": momentum, "queue": 64 * age, "head_norm": norm}
        for norm in (False, True)
        for age in (1, 4, 16, 64)
        for momentum in (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
    ]
    common: dict[str, Any] = {"method": "moco", "batch": 64, "epochs": 4, "images": 10_000}
    return Grid("Which pairs of momentum and queue age does MoCo survive?", _cells(1, variants, **common))


def _long() -> Grid:
    methods = _over("method", ("simclr", "moco"))
    return Grid("How far does half an hour of two cores go?", _cells(1, methods, epochs=70, images=50_000))


def _smoke() -> Grid:
    variants: list[dict[str, Any]] = [{"method": "simclr"}, {"method": "moco", "queue": 512}]
    common = {"encoder": "micro", "epochs": 2, "batch": 64, "source": "shapes", "images": 512}
    return Grid("Does sweeping work on this machine? Four runs of a few seconds.", _cells(2, variants, **common))


GRIDS: dict[str, Callable[[], Grid]] = {
    "momentum": _momentum,
    "queue": _queue,
    "temperature": _temperature,
    "accumulation": _accumulation,
    "shards": _shards,
    "batch": _batch,
    "concepts": _concepts,
    "batchnorm": _batchnorm,
    "alternatives": _alternatives,
    "oracle": _oracle,
    "phases": _phases,
    "long": _long,
    "smoke": _smoke,
}


def grid(name: str) -> Grid:
    """The grid called `name`. Unknown names raise `ValueError`."""
    checks.one_of("grid", name, tuple(GRIDS))
    return GRIDS[name]()
