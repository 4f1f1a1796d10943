"""Forces against the gradient that autograd gives, ranks against their exact bounds."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minilab.losses import info_nce, normalize
from minilab.spectra import repulsion
from minilab.spectra.repulsion import bounds, centred, effective_rank, forces, forces_of_queue, gradient, rank, spectrum

DIM = 128


def cloud(images: int, dim: int = DIM, seed: int = 0) -> torch.Tensor:
    """Unit vectors (2N, dim)."""
    return normalize(torch.randn(2 * images, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


def test_the_forces_and_the_pull_add_up_to_the_gradient_of_the_anchors_own_term():
    z, temperature = cloud(5, 7), 0.3
    anchor = z[2].clone().requires_grad_()
    logits = normalize(anchor) @ torch.cat([z[:2], z[3:]]).T / temperature
    loss = logits.logsumexp(0) - logits[6]  # row 7 is the partner of row 2
    loss.backward()
    pull = (1 - repulsion.shares(z, temperature)[2, 7]) / temperature * (z[7] - (z[7] @ z[2]) * z[2])
    torch.testing.assert_close(forces(z, 2, temperature).sum(dim=0) + pull, -anchor.grad, rtol=1e-10, atol=1e-13)


def test_the_queues_forces_too():
    query, key, queue = cloud(1, 6)[0], cloud(1, 6, 1)[0], cloud(8, 6, 2)
    leaf = query.clone().requires_grad_()
    info_nce(leaf[None], key[None], queue, 0.2).backward()
    share = (torch.cat([key[None], queue]) @ query / 0.2).softmax(0)[0]
    pull = (1 - share) / 0.2 * (key - (key @ query) * query)
    found = forces_of_queue(query, key, queue, 0.2)
    torch.testing.assert_close(found.sum(dim=0) + pull, -leaf.grad, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("images", [2, 8, 32, 64, 65, 256])
def test_the_bounds_are_reached_exactly_by_random_embeddings(images):
    z, most = cloud(images), bounds(images, DIM)
    pushes, batch = forces(z, 0, 0.5), gradient(z, 0.5)
    assert rank(pushes) == most.anchor and rank(centred(pushes)) == most.anchor_centred
    assert rank(batch) == most.batch and rank(centred(batch)) == most.batch_centred


def test_the_figures_of_the_bounds():
    assert [bounds(n, 128).anchor for n in (2, 8, 32, 64, 65, 256)] == [2, 14, 62, 126, 127, 127]
    assert [bounds(n, 128).batch for n in (2, 8, 32, 64, 65, 256)] == [4, 16, 64, 128, 128, 128]


@settings(max_examples=30, deadline=None)
@given(images=st.integers(2, 12), dim=st.integers(2, 20), seed=st.integers(0, 1000))
def test_no_embedding_exceeds_a_bound(images, dim, seed):
    z, most = cloud(images, dim, seed), bounds(images, dim)
    pushes = forces(z, 0, 0.2)
    assert rank(pushes) <= most.anchor and rank(gradient(z, 0.2)) <= most.batch
    assert 1 - 1e-9 <= effective_rank(pushes) <= rank(pushes) + 1e-9


def test_gram_and_covariance_have_the_same_spectrum():
    rows = cloud(5, 20)
    covariance = torch.linalg.eigvalsh(rows.T @ rows / 10).flip(0)
    gram = torch.linalg.eigvalsh(rows @ rows.T / 10).flip(0)
    torch.testing.assert_close(spectrum(rows), gram, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(covariance[:10], gram, rtol=1e-10, atol=1e-14)
    assert float(covariance[10:].abs().max()) < 1e-14


def test_a_lower_temperature_concentrates_the_softmax():
    z = cloud(64)
    entropies = [float(repulsion.entropy(repulsion.shares(z, t)).mean()) for t in (0.05, 0.1, 0.5, 1.0)]
    assert entropies == sorted(entropies) and entropies[-1] < torch.tensor(127.0).log()
    ranks = [effective_rank(forces(z, 0, t)) for t in (0.05, 0.1, 0.5)]
    assert ranks == sorted(ranks)


def test_ranks_add_up_only_where_there_is_room():
    few = repulsion.union(forces(cloud(8), 0, 0.2), forces(cloud(10, seed=1), 0, 0.2))
    assert (few.batch, few.queue, few.both) == (14, 18, 32) and few.total == few.both
    many = repulsion.union(forces(cloud(100), 0, 0.2), forces(cloud(100, seed=1), 0, 0.2))
    assert many.batch == many.queue == 127 and many.both == DIM < many.total


@pytest.mark.parametrize("images, dim", [(1, 8), (4, 1)])
def test_too_few_images_or_dimensions_are_refused(images, dim):
    with pytest.raises(ValueError, match="allowed: 2 or more"):
        bounds(images, dim)


def test_a_querys_contrast_is_that_of_its_embeddings():
    query, key, queue = cloud(1, 6)[0], cloud(1, 6, 1)[0], cloud(8, 6, 2)
    found = repulsion.contrast(float(query @ key), queue @ query, 0.2)
    candidates = torch.cat([key[None], queue])
    share = (candidates @ query / 0.2).softmax(0)
    assert found.loss == pytest.approx(float(info_nce(query[None], key[None], queue, 0.2)))
    assert found.positive == pytest.approx(float(share[0])) and found.pull == pytest.approx(float(1 - share[0]) / 0.2)
    torch.testing.assert_close(found.shares, share[1:], rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(found.forces, forces_of_queue(query, key, queue, 0.2).norm(dim=1))
    along = key - (key @ query) * query
    assert found.pull_along == pytest.approx(found.pull * float(along.norm()))
    assert found.entropy == pytest.approx(float(repulsion.entropy(share[1:] / share[1:].sum())))
    assert float(found.shares.sum()) / 0.2 == pytest.approx(found.pull)


def test_equal_negatives_reach_the_ceiling_and_one_has_no_entropy():
    alike = repulsion.contrast(0.4, [0.4] * 7, 0.01)
    assert alike.effective == pytest.approx(7) and alike.loss == pytest.approx(math.log(8))
    assert alike.positive == pytest.approx(1 / 8)
    assert repulsion.contrast(0.9, [-1.0], 0.01).entropy == 0


@pytest.mark.parametrize("positive, negative", [(1.0, -1.0), (-1.0, 1.0)])
def test_the_extremes_keep_their_digits(positive, negative):
    found = repulsion.contrast(positive, [negative, negative], 0.01)
    far = 200 * (-1 if positive > 0 else 1) + math.log(2)
    assert found.loss == pytest.approx(math.exp(far) if far < 0 else far, rel=1e-9)
    assert found.pull == pytest.approx(100 * (math.exp(far) if far < 0 else 1), rel=1e-9)
    assert found.forces.tolist() == [0, 0] and found.pull_along == 0  # at the poles nothing is along the sphere


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((1.2, [0.1], 0.5), "positive holds 1.2; allowed: cosines"),
        ((0.2, [0.1, float("nan")], 0.5), "negatives holds nan; allowed: cosines"),
        ((0.2, [], 0.5), r"negatives has the shape \(0,\); allowed: one dimension, one value or more"),
        ((0.2, [[0.1]], 0.5), r"negatives has the shape \(1, 1\)"),
        ((0.2, ["a"], 0.5), r"negatives is \['a'\]; allowed"),
        ((0.2, [0.1], 0.0), "temperature is 0.0; allowed: a finite number above 0"),
    ],
)
def test_what_is_no_contrast_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        repulsion.contrast(*arguments)


def test_a_cosine_that_float32_rounded_up_is_one():
    assert repulsion.contrast(1.000001, [0.0], 1.0).pull_along == 0
