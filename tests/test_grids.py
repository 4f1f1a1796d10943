"""The grids are what the book says they are."""

import pytest

from minilab.grids import GRIDS, IMAGES, Cell, grid
from minilab.recipe import Recipe

NAMES = sorted(GRIDS)


def test_a_name_stands_for_one_run_in_all_grids():
    seen: dict[str, Cell] = {}
    for name in NAMES:
        for cell in grid(name).cells:
            assert seen.setdefault(cell.name, cell) == cell
            assert cell.name == cell.name.replace("/", "").replace(" ", "") and len(cell.name) < 100


@pytest.mark.parametrize("name", NAMES)
def test_in_a_grid_all_runs_see_equally_many_images_and_none_is_twice(name):
    cells = grid(name).cells
    assert len({cell.images * cell.recipe.epochs for cell in cells}) == 1
    assert len(set(cells)) == len(cells) and grid(name).question.endswith((".", "?"))
    assert all(cell.recipe.precision == "float32" for cell in cells)  # "auto" may choose otherwise each time


@pytest.mark.parametrize(
    "name, runs, fields",
    [
        ("momentum", 18, {"momentum": 6, "seed": 3}),
        ("queue", 10, {"queue": 5, "seed": 2}),
        ("batch", 28, {"batch": 7, "method": 2, "seed": 2}),
        ("temperature", 8, {"temperature": 4, "method": 2}),
        ("accumulation", 15, {"seed": 3}),
        ("shards", 6, {"seed": 3}),
        ("concepts", 15, {"queue": 3}),
        ("batchnorm", 12, {"bn_groups": 3, "shuffle": 2, "norm": 2, "seed": 2}),
        ("alternatives", 14, {"method": 5, "batch": 2, "seed": 2}),
        ("oracle", 6, {"method": 2}),
        ("phases", 80, {"momentum": 10, "queue": 4, "head_norm": 2}),
        ("long", 2, {"method": 2}),
    ],
)
def test_sizes(name, runs, fields):
    recipes = [cell.recipe for cell in grid(name).cells]
    assert len(recipes) == runs
    for field, values in fields.items():
        assert len({getattr(recipe, field) for recipe in recipes}) == values


def test_shards_are_runs_of_accumulation():
    assert set(grid("shards").cells) <= set(grid("accumulation").cells)


def test_a_name_says_what_is_unusual():
    assert Cell(Recipe("moco", momentum=0.9, seed=1, precision="float32")).name == "moco-momentum0.9-seed1"
    cell = Cell(Recipe("moco", encoder="micro", precision="float32"), "shapes", images=500, concepts=4)
    assert cell.name == "shapes4-moco-micro-images500-seed0"
    assert Cell(Recipe("simclr", precision="float32")).name == "simclr-seed0" and IMAGES == 20_000


def test_its_images_are_those_it_names():
    images = Cell(Recipe("moco"), "shapes", images=50, concepts=4).open()
    assert len(images.train) == 50 and images.name == "Shapes (4 concepts)"


def test_unknown_names_list_what_there_is():
    with pytest.raises(ValueError, match="grid is 'momentun'; allowed: momentum, queue"):
        grid("momentun")
    with pytest.raises(ValueError, match="source is 'imagenet'; allowed: cifar10, shapes"):
        Cell(Recipe("moco"), "imagenet")
