"""kNN and the linear probe against slow references; evaluation must leave the model as it was."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minilab import evaluation
from minilab.data import shapes
from minilab.evaluation import evaluate, extract, knn, linear_probe
from minilab.recipe import Recipe
from minilab.simclr import SimCLR


def slow_knn(bank, bank_labels, queries, labels, k, temperature):
    """One query at a time, in float64, with a dictionary of votes."""
    right = 0
    for query, label in zip(queries.double(), labels, strict=True):
        cosines = [
            (float(query @ row / (query.norm() * row.norm())), int(c))
            for row, c in zip(bank.double(), bank_labels, strict=True)
        ]
        votes: dict[int, float] = {}
        for cosine, c in sorted(cosines, reverse=True)[:k]:
            votes[c] = votes.get(c, 0.0) + float(torch.tensor(cosine / temperature).exp())
        right += max(votes, key=votes.get) == int(label)
    return right / len(queries)


@settings(max_examples=20, deadline=None)
@given(
    bank=st.integers(1, 40), queries=st.integers(1, 12), k=st.integers(1, 60), seed=st.integers(0, 999),
    temperature=st.sampled_from([0.07, 0.1, 1.0]),
)  # fmt: skip
def test_knn_equals_the_loops(bank, queries, k, seed, temperature):
    generator = torch.Generator().manual_seed(seed)
    rows, asked = torch.randn(bank, 6, generator=generator), torch.randn(queries, 6, generator=generator)
    row_labels = torch.randint(0, 4, (bank,), generator=generator)
    labels = torch.randint(0, 5, (queries,), generator=generator)  # a class the bank has never seen is wrong
    expected = slow_knn(rows, row_labels, asked, labels, k, temperature)
    assert knn(rows, row_labels, asked, labels, k, temperature) == pytest.approx(expected)


def test_knn_in_chunks_equals_knn_at_once(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    rows, asked = torch.randn(300, 8, generator=generator), torch.randn(101, 8, generator=generator)
    labels, asked_labels = torch.arange(300) % 10, torch.arange(101) % 10
    whole = knn(rows, labels, asked, asked_labels)
    monkeypatch.setattr(evaluation, "_chunk", lambda bank: 7)
    assert knn(rows, labels, asked, asked_labels) == whole


def test_a_chunk_of_similarities_is_bounded():
    for bank in (1, 10, 50_000, 5_000_000, 100_000_000):
        assert evaluation._chunk(bank) * bank <= max(10_000_000, bank)


def test_knn_is_finite_at_a_tiny_temperature():
    rows = torch.eye(4)
    assert knn(rows, torch.arange(4), rows, torch.arange(4), temperature=1e-4) == 1.0


@pytest.mark.parametrize(
    "sizes, k, message",
    [
        ((3, 4, 2, 2), 5, r"bank_labels is .* of shape \(4,\)"),
        ((3, 3, 2, 1), 5, r"^labels is .* of shape \(1,\)"),
        ((3, 3, 0, 0), 5, r"queries is .* of shape \(0, 2\)"),
        ((3, 3, 2, 2), 0, "k is 0"),
    ],
)
def test_knn_refuses_what_does_not_fit(sizes, k, message):
    a, b, c, d = sizes
    with pytest.raises(ValueError, match=f"{message}.*allowed: "):
        knn(torch.ones(a, 2), torch.zeros(b).long(), torch.ones(c, 2), torch.zeros(d).long(), k=k)


def test_the_linear_probe_solves_what_a_line_can():
    generator = torch.Generator().manual_seed(0)
    centres = 3 * torch.randn(5, 20, generator=generator)
    labels = torch.arange(1000) % 5
    rows = centres[labels] + torch.randn(1000, 20, generator=generator)
    assert linear_probe(rows[:800], labels[:800], rows[800:], labels[800:]) > 0.97
    shuffled = labels[torch.randperm(1000, generator=generator)]
    assert linear_probe(rows[:800], shuffled[:800], rows[800:], shuffled[800:]) < 0.35


def test_the_linear_probe_reaches_the_optimum():
    """At the optimum of a convex loss the gradient is zero: check by an independent, longer fit."""
    generator = torch.Generator().manual_seed(1)
    rows, labels = torch.randn(200, 4, generator=generator), torch.arange(200) % 3
    rows[:, 0] += labels
    first = linear_probe(rows, labels, rows, labels)
    scaled = linear_probe(
        rows * torch.tensor([5.0, 0.1, 1.0, 30.0]) + 7, labels, rows * torch.tensor([5.0, 0.1, 1.0, 30.0]) + 7, labels
    )
    assert first == pytest.approx(scaled, abs=0.011)  # standardised, so units do not matter


@pytest.fixture(scope="module")
def images():
    return shapes(train=300, test=120, seed=1)


def small() -> SimCLR:
    torch.manual_seed(0)
    return SimCLR(Recipe("simclr", encoder="micro", batch=8))


def test_evaluation_leaves_the_model_as_it_was(images):
    simclr = small().train()
    before = copy.deepcopy(simclr.state_dict())
    state = torch.get_rng_state()
    evaluate(simclr.encoder, images)
    assert simclr.encoder.training and all(m.training for m in simclr.modules())
    assert all(torch.equal(value, before[name]) for name, value in simclr.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in simclr.parameters())


def test_evaluation_is_in_eval_mode_and_repeats(images):
    encoder = small().encoder
    first, second = evaluate(encoder, images), evaluate(encoder, images)
    assert first == second
    assert set(first) == {"knn", "spread", "effective_rank", "alignment", "uniformity"}
    # In eval mode an image's features do not depend on its neighbours in the batch.
    alone = torch.cat([extract(encoder, images.test[i : i + 1]) for i in range(5)])
    torch.testing.assert_close(alone, extract(encoder, images.test)[:5], atol=1e-5, rtol=1e-4)


def test_an_encoder_in_eval_mode_stays_in_eval_mode(images):
    encoder = small().encoder.eval()
    extract(encoder, images.test)
    assert not encoder.training


def test_evaluate_asks_as_many_as_it_is_told(images, monkeypatch):
    seen = {}
    monkeypatch.setattr(
        evaluation, "knn", lambda bank, bl, queries, ql: seen.update(bank=len(bank), test=len(queries)) or 0.5
    )
    evaluate(small().encoder, images, bank=50, test=30)
    assert seen == {"bank": 50, "test": 30}
    evaluate(small().encoder, images)
    assert seen == {"bank": 300, "test": 120}
