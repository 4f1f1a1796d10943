"""Losses: right beside slow loops for any good input, and a named refusal for any other."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    NO_TEMPERATURE,
    NO_TENSORS,
    Door,
    covers,
    few,
    many,
    no_labels,
    no_matrix,
    no_whole,
    one,
    refusals,
    refused,
    some,
)
from torch import Tensor, tensor

from minilab import alternatives, distributed, losses

TEMPERATURES = st.one_of(st.floats(1e-6, 100), st.integers(1, 100), st.sampled_from([1e-6, 0.07, 0.5, 100]))
KINDS = st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16])


@st.composite
def matrices(draw: st.DrawFn, rows: int, dim: int, kind: torch.dtype = torch.float64) -> Tensor:
    """(rows, dim), of any lengths; some rows zero, some the same as another."""
    dice = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    z = torch.randn(rows, dim, generator=dice, dtype=torch.float64) * draw(st.sampled_from([1e-3, 1.0, 50.0]))
    place, other = draw(st.integers(0, rows - 1)), draw(st.integers(0, rows - 1))
    z[place] = draw(st.sampled_from([z[place], torch.zeros(dim, dtype=torch.float64), z[other]]))
    return z.to(kind)


def unit(row: Tensor) -> Tensor:
    length = math.sqrt(sum(float(x) ** 2 for x in row))
    return row / length if length else row


def cross_entropy(anchor: Tensor, candidates: list[Tensor], temperature: float) -> float:
    """-log of the softmax's share for the first candidate, with nothing but Python's sums."""
    logits = [sum(float(a) * float(b) for a, b in zip(anchor, z, strict=True)) / temperature for z in candidates]
    top = max(logits)
    return top + math.log(sum(math.exp(logit - top) for logit in logits)) - logits[0]


def same(found: Tensor, expected: float, size: float) -> None:
    assert found.shape == () and bool(found.isfinite())
    assert float(found) == pytest.approx(expected, rel=1e-9, abs=1e-9 * size)


@covers(losses.normalize)
@many
@given(st.data())
def test_rows_are_made_of_length_1_and_only_zero_stays(data: st.DataObject) -> None:
    kind = data.draw(KINDS)
    z = data.draw(matrices(5, data.draw(st.integers(1, 6)), kind))
    found = losses.normalize(z)
    assert found.dtype == (torch.float64 if kind == torch.float64 else torch.float32) and found.shape == z.shape
    for row, out in zip(z.double(), found.double(), strict=True):
        assert torch.allclose(out, unit(row), rtol=1e-5, atol=1e-6)
    assert torch.equal(losses.normalize(z[None, :, None]), found[None, :, None])
    leaf = torch.zeros(3, requires_grad=True)
    losses.normalize(leaf).sum().backward()
    assert torch.equal(leaf.grad, torch.zeros(3))


@covers(losses.nt_xent, losses.check_pairs, alternatives.dcl, distributed.nt_xent_gathered)
@some
@given(st.data())
def test_losses_of_pairs_equal_the_loop(data: st.DataObject) -> None:
    images, dim, temperature = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 5)), data.draw(TEMPERATURES)
    z = data.draw(matrices(2 * images, dim))
    rows, count = [unit(row) for row in z], 2 * images
    losses.check_pairs(z, temperature)
    expected, decoupled = [], []
    for i in range(count):
        partner = (i + images) % count
        others = [rows[j] for j in range(count) if j not in (i, partner)]
        expected.append(cross_entropy(rows[i], [rows[partner], *others], temperature))
        logits = [float(rows[i] @ other) / temperature for other in others]
        pushed = max(logits) + math.log(sum(math.exp(x - max(logits)) for x in logits))
        decoupled.append(pushed - float(rows[i] @ rows[partner]) / temperature)
    same(losses.nt_xent(z, temperature), sum(expected) / count, 1 / temperature)
    same(distributed.nt_xent_gathered(z, temperature), sum(expected) / count, 1 / temperature)
    same(alternatives.dcl(z, temperature), sum(decoupled) / count, 1 / temperature)


@covers(alternatives.without_false_negatives)
@some
@given(st.data())
def test_false_negatives_are_left_out_as_in_the_loop(data: st.DataObject) -> None:
    images, temperature = data.draw(st.integers(2, 5)), data.draw(TEMPERATURES)
    z, count = data.draw(matrices(2 * images, 3)), 2 * images
    labels = tensor(data.draw(st.lists(st.integers(-3, 3), min_size=images, max_size=images)))
    rows, both, expected = [unit(row) for row in z], labels.tolist() * 2, 0.0
    for i in range(count):
        others = [rows[j] for j in range(count) if both[j] != both[i]]
        expected += cross_entropy(rows[i], [rows[(i + images) % count], *others], temperature) / count
    same(alternatives.without_false_negatives(z, labels, temperature), expected, 1 / temperature)


@covers(losses.info_nce, losses.QueueCrossEntropy, losses.QueueCrossEntropy.forward, losses.QueueCrossEntropy.backward)
@some
@given(st.data())
def test_the_loss_of_a_queue_and_its_gradient_equal_the_loop_however_it_is_cut(data: st.DataObject) -> None:
    count, dim, length = (data.draw(st.integers(1, most)) for most in (4, 4, 9))
    temperature = data.draw(st.floats(1e-2, 100))
    queries, keys = data.draw(matrices(count, dim)).requires_grad_(), data.draw(matrices(count, dim)).requires_grad_()
    queue = losses.normalize(data.draw(matrices(length, dim)))
    before, losses.PART = losses.PART, data.draw(st.integers(1, 10))
    try:
        loss = losses.info_nce(queries, keys, queue, temperature)
        found = torch.autograd.grad(loss, [queries, keys])
    finally:
        losses.PART = before
    q, k = (torch.nn.functional.normalize(x, dim=1, eps=1e-300) for x in (queries, keys))
    logits = torch.stack([torch.cat([a @ b[:, None], queue @ a]) / temperature for a, b in zip(q, k, strict=True)])
    expected = -logits.log_softmax(dim=1)[:, 0].mean()
    same(loss.detach(), float(expected.detach()), 1 / temperature)
    for mine, theirs, rows in zip(found, torch.autograd.grad(expected, [queries, keys]), (queries, keys), strict=True):
        there = (rows != 0).any(dim=1)  # a zero row has no direction, and gets no gradient
        torch.testing.assert_close(mine[there], theirs[there], rtol=1e-7, atol=1e-9)
        assert not mine[~there].any()


@covers(losses.info_nce)
@some
@given(st.data())
def test_queries_and_keys_of_any_two_types_give_a_finite_loss(data: st.DataObject) -> None:
    first, second, third = (data.draw(KINDS) for _ in range(3))
    queries, keys = data.draw(matrices(3, 4, first)), data.draw(matrices(3, 4, second))
    loss = losses.info_nce(queries, keys, losses.normalize(data.draw(matrices(7, 4, third))), data.draw(TEMPERATURES))
    assert bool(loss.isfinite()) and loss.dtype == (torch.float64 if first == torch.float64 else torch.float32)


@covers(alternatives.sigmoid_loss)
@some
@given(st.data())
def test_the_sigmoid_loss_equals_the_loop(data: st.DataObject) -> None:
    count, dim = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    first, second = data.draw(matrices(count, dim)), data.draw(matrices(count, dim))
    scale, bias = data.draw(st.floats(0, 50)), data.draw(st.floats(-50, 50))
    expected = 0.0
    for i in range(count):
        for j in range(count):
            logit = scale * float(unit(first[i]) @ unit(second[j])) + bias
            expected += math.log1p(math.exp(-logit if i == j else logit)) / count
    found = alternatives.sigmoid_loss(first, second, tensor(scale, dtype=torch.float64), bias)
    same(found, expected, 50)


@covers(losses.chance_loss)
@many
@given(st.integers(0, 10**9))
def test_a_guess_among_n_costs_log_n(negatives: int) -> None:
    assert math.exp(losses.chance_loss(negatives)) == pytest.approx(negatives + 1, rel=1e-9)


@few
@given(st.integers(0, 40), st.integers(2, 5))
def test_an_odd_number_of_rows_or_too_few_are_refused(rows: int, dim: int) -> None:
    for loss in (losses.nt_xent, distributed.nt_xent_gathered, alternatives.dcl, losses.check_pairs):
        if rows % 2 or rows < 4:
            refused(loss, torch.ones(rows, dim), 0.1, named="embeddings", shown=rows)


def pairs() -> dict[str, object]:
    return {"embeddings": torch.randn(8, 4), "temperature": 0.1}


def queue() -> dict[str, object]:
    return {
        "queries": torch.ones(8, 4), "keys": torch.ones(8, 4), "queue": torch.ones(5, 4), "temperature": 0.1
    }  # fmt: skip


BAD_PAIRS = {"embeddings": no_matrix(), "temperature": NO_TEMPERATURE}
test_refusals = refusals(
    Door(losses.normalize, lambda: {}, {"embeddings": one(*NO_TENSORS, torch.ones(()), torch.ones(2, 2) * 1j)}),
    Door(losses.chance_loss, lambda: {}, {"negatives": no_whole(0)}),
    *(Door(f, pairs, BAD_PAIRS) for f in (losses.nt_xent, losses.check_pairs, alternatives.dcl)),
    Door(distributed.nt_xent_gathered, pairs, BAD_PAIRS),
    Door(
        alternatives.without_false_negatives,
        lambda: {**pairs(), "labels": torch.zeros(4, dtype=torch.int64)},
        {**BAD_PAIRS, "labels": no_labels(4)},
    ),
    Door(
        losses.info_nce,
        queue,
        {"queries": no_matrix(), "keys": no_matrix(8, 4), "queue": no_matrix(1, 4), "temperature": NO_TEMPERATURE},
    ),
    Door(
        alternatives.sigmoid_loss,
        lambda: {"first": torch.ones(8, 4), "second": torch.ones(8, 4), "scale": tensor(10.0), "bias": tensor(-10.0)},
        {
            "first": no_matrix(),
            "second": no_matrix(8, 4),
            "scale": one("x", None, [1.0], torch.ones(2)),
            "bias": one("x", None, [1.0], torch.ones(2)),
        },
    ),
)
