"""The gauges of collapse against clouds whose answer is known."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minilab.geometry import alignment, effective_rank, spread, uniformity


def cloud(count: int, dim: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))


def test_a_cloud_all_over_the_sphere():
    z = cloud(4000, 32)
    assert spread(z) == pytest.approx(1.0, abs=0.01)
    assert effective_rank(z) == pytest.approx(32, rel=0.02)
    # Far pairs are at squared distance 2 on average: the log mean of exp(-2 * 2) and a little more.
    assert -4.0 < uniformity(z[:1000]) < -3.6


def test_one_point_is_collapse():
    z = torch.ones(50, 8)
    assert spread(z) == pytest.approx(0, abs=1e-6)
    assert effective_rank(z) == pytest.approx(1, abs=1e-4)
    assert uniformity(z) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_equal_orthogonal_directions_have_that_effective_rank(rank):
    z = torch.eye(16)[:rank].repeat(5, 1)
    if rank == 1:
        z[1::2] *= -1
    assert effective_rank(z) == pytest.approx(rank, rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(count=st.integers(2, 40), dim=st.integers(1, 20), seed=st.integers(0, 999))
def test_bounds_and_scale(count, dim, seed):
    z, w = cloud(count, dim, seed), cloud(count, dim, seed + 1)
    assert 1 - 1e-6 <= effective_rank(z) <= min(count, dim) + 1e-6
    assert -1e-6 <= spread(z) <= 1 + 1e-6
    assert -8 - 1e-4 <= uniformity(z) <= 1e-4
    assert -1e-6 <= alignment(z, w) <= 4 + 1e-5
    for gauge in (spread, effective_rank, uniformity):
        assert gauge(z * 7) == pytest.approx(gauge(z), abs=1e-4)


def test_alignment_of_equal_orthogonal_and_opposite_pairs():
    z = torch.eye(4)
    assert alignment(z, 3 * z) == pytest.approx(0)
    assert alignment(z, z.roll(1, 0)) == pytest.approx(2)
    assert alignment(z, -z) == pytest.approx(4)


def test_uniformity_equals_the_loop():
    z = torch.nn.functional.normalize(cloud(9, 4), dim=1)
    terms = [math.exp(-2 * float((z[i] - z[j]).square().sum())) for i in range(9) for j in range(i + 1, 9)]
    assert uniformity(z) == pytest.approx(math.log(sum(terms) / len(terms)), abs=1e-5)


@pytest.mark.parametrize("gauge", [spread, effective_rank, uniformity])
@pytest.mark.parametrize("features", [torch.ones(1, 4), torch.ones(4), torch.tensor([[1.0], [math.nan]])])
def test_bad_features_are_refused(gauge, features):
    with pytest.raises(ValueError, match="features .* allowed: "):
        gauge(features)


def test_pairs_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"partners is .* \(3, 2\); allowed: shape \(4, 2\)"):
        alignment(torch.ones(4, 2), torch.ones(3, 2))
