"""The table of gather schemes, in real processes: gradients, not losses."""

import functools

import pytest
import torch
import torch.nn.functional as F

from minilab.pitfalls.sharding import SCHEMES, Step, compare, sharded_loss
from minilab.recipe import Recipe
from minilab.training import build_method

RECIPE = Recipe("simclr", "micro", batch=16)
EXACT = ("own rows, gather with gradient", "all rows, gather with gradient")


@functools.cache
def table(world: int) -> dict[str, Step]:
    views = torch.rand(32, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    return compare(build_method(RECIPE), RECIPE, views, world)


def beside(step: Step, true: Step) -> tuple[float, float]:
    """Cosine and ratio of lengths."""
    cosine = F.cosine_similarity(step.gradient, true.gradient, dim=0)
    return float(cosine), float(step.gradient.norm() / true.gradient.norm())


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("scheme", EXACT)
def test_two_schemes_give_the_whole_batchs_gradient(world, scheme):
    steps = table(world)
    torch.testing.assert_close(steps[scheme].gradient, steps["one process"].gradient, rtol=1e-10, atol=1e-13)
    assert steps[scheme].temperature_gradient == pytest.approx(steps["one process"].temperature_gradient, rel=1e-10)


@pytest.mark.parametrize("world", [2, 4])
def test_all_rows_with_a_gradient_to_the_own_slice_is_short_by_the_number_of_processes(world):
    steps = table(world)
    cosine, ratio = beside(steps["all rows, gradient to own slice"], steps["one process"])
    assert cosine == pytest.approx(1, abs=1e-12) and ratio == pytest.approx(1 / world, rel=1e-10)


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("scheme", ["own rows, gradient to own slice", "own rows, gather without gradient"])
def test_own_rows_without_the_others_gradient_are_biased(world, scheme):
    cosine, ratio = beside(table(world)[scheme], table(world)["one process"])
    assert cosine < 1 - 1e-7 and abs(ratio - 1) > 0.1


@pytest.mark.parametrize("world", [2, 4])
def test_all_rows_without_a_gradient_learn_nothing_but_the_temperature(world):
    steps = table(world)
    assert not steps["all rows, gather without gradient"].gradient.any()
    assert steps["all rows, gather without gradient"].temperature_gradient == pytest.approx(
        steps["one process"].temperature_gradient, rel=1e-10
    )


@pytest.mark.parametrize("world", [2, 4])
def test_only_a_loss_per_device_shows_in_the_loss_and_in_the_count(world):
    steps = table(world)
    true = steps["one process"]
    for scheme in SCHEMES:
        if scheme.startswith("no gather"):
            assert steps[scheme].candidates == 2 * 16 // world - 1 and steps[scheme].loss < true.loss - 0.5
            assert steps[scheme].temperature_gradient < 0 < true.temperature_gradient  # even its sign is wrong here
        else:
            assert steps[scheme].candidates == true.candidates == 31
            assert steps[scheme].loss == pytest.approx(true.loss, abs=1e-12)


@pytest.mark.parametrize("world", [1, 3, 16, 2.0])
def test_unequal_or_empty_shards_are_refused(world):
    with pytest.raises(ValueError, match="world is .*allowed"):
        compare(build_method(RECIPE), RECIPE, torch.rand(32, 3, 16, 16), world)


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match="scheme is 'hearsay'; allowed: own rows"):
        sharded_loss(torch.rand(4, 2), torch.tensor(0.1), "hearsay")
