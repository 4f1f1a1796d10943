"""Other losses in SimCLR's place: against slow loops in float64, values and gradients, and as training uses them."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from minilab.alternatives import SimSiam, dcl, sigmoid_loss, without_false_negatives
from minilab.data import shapes
from minilab.losses import nt_xent
from minilab.recipe import ALTERNATIVES, Recipe
from minilab.training import build_method, train


@pytest.fixture()
def rows():
    return torch.randn(12, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def slow_loss(rows, temperature, is_candidate):
    """Cross-entropy over the candidates that `is_candidate(anchor, other, partner)` admits, by loops."""
    z, terms = normalize(rows), []
    for anchor in range(len(z)):
        partner = (anchor + len(z) // 2) % len(z)
        others = [
            z[anchor] @ z[j] / temperature for j in range(len(z)) if j != anchor and is_candidate(anchor, j, partner)
        ]
        terms.append(torch.logsumexp(torch.stack(others), 0) - z[anchor] @ z[partner] / temperature)
    return torch.stack(terms).mean()


def same_value_and_gradient(fast, slow, rows):
    """`fast` and `slow` of equal rows, to 1e-12."""
    found = []
    for loss in (fast, slow):
        leaf = rows.clone().requires_grad_()
        value = loss(leaf)
        value.backward()
        found.append((value.detach(), leaf.grad))
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_dcl_leaves_the_partner_out_of_the_denominator(rows, temperature):
    same_value_and_gradient(
        lambda z: dcl(z, temperature), lambda z: slow_loss(z, temperature, lambda a, j, partner: j != partner), rows
    )


def test_the_oracle_leaves_out_what_shows_the_same_class(rows):
    labels = torch.tensor([0, 1, 0, 2, 1, 0])
    same_value_and_gradient(
        lambda z: without_false_negatives(z, labels, 0.2),
        lambda z: slow_loss(z, 0.2, lambda a, j, partner: j == partner or labels[a % 6] != labels[j % 6]),
        rows,
    )


def test_the_oracle_without_false_negatives_is_nt_xent(rows):
    torch.testing.assert_close(without_false_negatives(rows, torch.arange(6), 0.2), nt_xent(rows, 0.2))


def test_an_oracle_that_sees_one_class_has_nothing_to_ask(rows):
    assert float(without_false_negatives(rows, torch.zeros(6, dtype=torch.long), 0.2)) == 0


def test_sigmoid_asks_every_pair_by_itself(rows):
    scale, bias = torch.tensor(7.0, dtype=torch.float64), torch.tensor(-3.0, dtype=torch.float64)

    def slow(z):
        first, second = normalize(z[:6]), normalize(z[6:])
        total = torch.zeros((), dtype=torch.float64)
        for i in range(6):
            for j in range(6):
                truth = 1 if i == j else -1
                total = total - torch.log(torch.sigmoid(truth * (first[i] @ second[j] * scale + bias)))
        return total / 6

    same_value_and_gradient(lambda z: sigmoid_loss(z[:6], z[6:], scale, bias), slow, rows)


def test_sigmoid_at_a_guess_is_its_chance():
    method = build_method(Recipe("sigmoid", "micro", batch=16))
    pairs = torch.zeros(32, 8)  # at right angles to everything: only the bias answers
    with torch.no_grad():
        method.moved[1] = 10 * (10 - math.log(15))  # probability 1 / 16
        assert float(method.loss(pairs)) == pytest.approx(method.chance(), rel=1e-6)


def test_simsiam_without_the_stop_sends_a_gradient_to_its_targets():
    for name, expected in (("simsiam", False), ("simsiam-no-stop", True)):
        method = build_method(Recipe(name, "micro", batch=8))
        assert isinstance(method, SimSiam)
        z = torch.randn(16, 128, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            prediction = normalize(method.predictor(z)).roll(8, 0)
        leaf = z.clone().requires_grad_()
        method.loss(leaf).backward()
        only_prediction = z.clone().requires_grad_()
        predicted = normalize(method.predictor(only_prediction))
        (-(predicted * normalize(z).roll(8, 0)).sum(1).mean()).backward()
        to_targets = leaf.grad - only_prediction.grad
        assert bool(to_targets.abs().max() > 1e-6) is expected
        if expected:  # -d/dz of mean(prediction of the partner . z / |z|)
            tangent = prediction - (prediction * normalize(z)).sum(1, keepdim=True) * normalize(z)
            torch.testing.assert_close(to_targets, -tangent / z.norm(dim=1, keepdim=True) / 16, rtol=1e-3, atol=1e-6)


def test_simsiam_of_equal_views_is_minus_one_at_best():
    method = build_method(Recipe("simsiam", "micro", batch=8))
    method.predictor = torch.nn.Identity()
    z = torch.randn(8, 128).repeat(2, 1)
    assert float(method.loss(z)) == pytest.approx(-1, abs=1e-6)


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_each_trains(name):
    images = shapes(concepts=4, train=1024, test=64, seed=0)
    run = train(Recipe(name, "micro", epochs=4, batch=32, precision="float32"), images, progress=False)
    assert all(math.isfinite(entry["loss"]) for entry in run.history)
    assert run.history[-1]["loss"] < run.history[0]["loss"]
    assert set(run.history[-1]) == set(run.history[0])


@pytest.mark.parametrize("name", ["sigmoid", "simsiam", "oracle"])
def test_chunks_are_refused_where_the_loss_has_more_than_embeddings(name):
    with pytest.raises(ValueError, match=f"chunk is 8; allowed: None for {name}"):
        Recipe(name, batch=32, chunk=8)
