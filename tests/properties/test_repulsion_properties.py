"""The forces of the negatives: against autograd and plain sums; what each refuses, by name."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import covers, many, no_number, no_whole, refused, some

from minilab.spectra import repulsion

POSITIVE = st.floats(1e-6, 1e6)
SHARE = st.floats(0.0, 0.9999)
SEED = st.integers(0, 2**31)
BAD_SHAPES = [torch.zeros(0, 3), torch.zeros(4), torch.zeros(4, 0), torch.zeros(4, 3, dtype=torch.long), [[1.0]], None]


def cloud(rows: int, dim: int, seed: int) -> torch.Tensor:
    """Unit vectors (rows, dim) in float64."""
    z = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return z / z.norm(dim=1, keepdim=True)


Z = st.tuples(st.integers(2, 6), st.integers(2, 9), SEED)


@covers(repulsion.shares, repulsion.entropy, repulsion.forces, repulsion.forces_of_queue, repulsion.gradient)
@some
@given(Z, st.floats(0.05, 5))
def test_forces_are_the_negatives_part_of_the_gradient(size, temperature):
    images, dim, seed = size
    z = cloud(2 * images, dim, seed)
    share = repulsion.shares(z, temperature)
    for i, row in enumerate(share.tolist()):
        powers = [0 if j == i else math.exp(float(z[i] @ z[j]) / temperature) for j in range(len(z))]
        assert row == pytest.approx([power / sum(powers) for power in powers])
        told = -sum(p * math.log(p) for p in row if p)
        assert float(repulsion.entropy(share[i])) == pytest.approx(told)
        assert float(repulsion.entropy(share[i].float())) == pytest.approx(told, abs=1e-5), "a share of 0 in float32"
    leaf = z[:1].clone().requires_grad_()
    partner, others = images, [j for j in range(1, 2 * images) if j != images]
    unit = leaf / leaf.norm()
    logits = torch.cat([unit @ z[partner, :, None], unit @ z[others].T], dim=1) / temperature
    (slope,) = torch.autograd.grad(logits.logsumexp(dim=1).sum() - logits[0, 0], leaf)
    push = repulsion.forces(z, 0, temperature)
    missed = 1 - float(logits.softmax(dim=1)[0, 0])
    pull = missed / temperature * (z[partner] - (z[partner] @ z[0]) * z[0])
    assert torch.allclose(push.sum(dim=0) + pull, -slope[0], atol=1e-9)
    assert torch.allclose(repulsion.forces_of_queue(z[0], z[partner], z[others], temperature), push, atol=1e-12)
    assert repulsion.gradient(z, temperature).shape == z.shape
    assert float((repulsion.gradient(z, temperature) * z).sum(dim=1).abs().max()) < 1e-9, "only a turn changes the loss"


@given(no_number(0.0, low_too=True), no_whole(0, 5))
@some
def test_forces_name_what_they_refuse(temperature, anchor):
    z = cloud(6, 3, 0)
    refused(repulsion.shares, z, temperature, named="temperature is")
    refused(repulsion.forces, z, 0, temperature, named="temperature is")
    refused(repulsion.gradient, z, temperature, named="temperature is")
    refused(repulsion.forces_of_queue, z[0], z[1], z, temperature, named="temperature is")
    refused(repulsion.forces, z, anchor, 0.5, named="anchor is")
    for function in (lambda x: repulsion.forces(x, 0, 0.5), lambda x: repulsion.gradient(x, 0.5)):
        for wrong in (*BAD_SHAPES, z[:5], z[:2], z * math.nan):
            refused(function, wrong, named="z ")
    refused(repulsion.forces_of_queue, z[0, :2], z[1], z, 0.5, named="query is")
    refused(repulsion.forces_of_queue, z[0], z[1] * math.inf, z, 0.5, named="key is")
    refused(repulsion.entropy, torch.tensor([-0.1, 1.1]), named="share holds")
    refused(repulsion.entropy, torch.tensor([math.nan]), named="share holds")


@covers(repulsion.rank, repulsion.centred, repulsion.spectrum, repulsion.effective_rank)
@some
@given(st.integers(1, 5), st.integers(0, 5), st.integers(5, 9), SEED)
def test_ranks_are_those_of_the_factors(rank, more, dim, seed):
    rows = cloud(rank, dim, seed)
    rows = torch.cat([rows, torch.randn(more, rank, dtype=torch.float64) @ rows])
    assert repulsion.rank(rows) == rank
    spectrum = repulsion.spectrum(rows)
    assert torch.allclose(spectrum[:rank], torch.linalg.eigvalsh(rows @ rows.T / len(rows)).flip(0)[:rank], atol=1e-9)
    assert 1 - 1e-9 <= repulsion.effective_rank(rows) <= rank + 1e-9
    assert float(repulsion.centred(rows).sum(dim=0).abs().max()) < 1e-9
    for function in (repulsion.rank, repulsion.centred, repulsion.spectrum, repulsion.effective_rank):
        for wrong in (*BAD_SHAPES, rows * math.nan):
            refused(function, wrong, named="rows ")
    refused(repulsion.effective_rank, torch.zeros(2, 2), named="rows are all 0")


@covers(repulsion.Bounds, repulsion.bounds, repulsion.Union, repulsion.Union.total, repulsion.union)
@some
@given(st.integers(2, 5), st.integers(3, 12), SEED, no_whole(2))
def test_bounds_are_reached_by_random_embeddings(images, dim, seed, bad):
    z = cloud(2 * images, dim, seed)
    most = repulsion.bounds(images, dim)
    forces, slopes = repulsion.forces(z, 0, 0.5), repulsion.gradient(z, 0.5)
    found = [repulsion.rank(x) for x in (forces, repulsion.centred(forces), slopes, repulsion.centred(slopes))]
    assert found == [most.anchor, most.anchor_centred, most.batch, most.batch_centred]
    both = repulsion.union(forces, slopes)
    assert max(both.batch, both.queue) <= both.both <= min(both.total, dim) and both.total == both.batch + both.queue
    refused(repulsion.bounds, bad, 4, named="images is")
    refused(repulsion.bounds, 4, bad, named="dim is")
    refused(repulsion.union, forces, forces[:, :2], named="queue has")


@covers(repulsion.contrast, repulsion.Contrast, repulsion.Contrast.effective, repulsion.cosines)
@many
@given(st.floats(-1, 1), st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.floats(0.02, 10))
def test_a_contrast_is_the_softmax_in_plain_python(positive, negatives, temperature):
    found = repulsion.contrast(positive, negatives, temperature)
    powers = [math.exp((cosine - 1) / temperature) for cosine in (positive, *negatives)]
    assert found.positive == pytest.approx(powers[0] / sum(powers), rel=1e-6, abs=1e-300)
    assert found.shares.tolist() == pytest.approx([p / sum(powers) for p in powers[1:]], rel=1e-6, abs=1e-300)
    assert found.loss == pytest.approx(-math.log(powers[0] / sum(powers)), rel=1e-6, abs=1e-9)
    assert found.pull == pytest.approx(sum(found.shares.tolist()) / temperature, rel=1e-6, abs=1e-12)
    assert 1 - 1e-9 <= found.effective <= len(negatives) * (1 + 1e-9)
    assert repulsion.cosines("x", negatives).tolist() == negatives


@given(st.sampled_from([1.1, -2, math.nan, math.inf, "x", None, [], 10**400, 1j]), no_number(0.0, low_too=True))
@some
def test_a_contrast_names_what_it_refuses(bad, temperature):
    refused(repulsion.contrast, bad, [0.5], 0.1, named="positive ")
    refused(repulsion.contrast, 0.5, [0.1, bad], 0.1, named="negatives ")
    refused(repulsion.contrast, 0.5, [], 0.1, named="negatives ")
    refused(repulsion.contrast, 0.5, [0.5], temperature, named="temperature is")
    refused(repulsion.cosines, "x", [[0.5]], named="x has the shape")
