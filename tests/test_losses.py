"""The losses against slow loops that follow the papers' equations, values and gradients, in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minilab import losses
from minilab.losses import chance_loss, info_nce, normalize, nt_xent


def slow_nt_xent(embeddings: torch.Tensor, temperature: float) -> tuple[torch.Tensor, int]:
    """SimCLR's equation 1 with Python loops; also the number of terms in one denominator."""
    unit = [row / row.norm() for row in embeddings]
    views, total, terms = len(unit), torch.zeros((), dtype=embeddings.dtype), 0
    for anchor in range(views):
        partner = (anchor + views // 2) % views
        others = [torch.exp(unit[anchor] @ unit[k] / temperature) for k in range(views) if k != anchor]
        terms = len(others)
        positive = torch.exp(unit[anchor] @ unit[partner] / temperature)
        total = total - torch.log(positive / torch.stack(others).sum())
    return total / views, terms


def slow_info_nce(queries: torch.Tensor, keys: torch.Tensor, queue: torch.Tensor, temperature: float) -> torch.Tensor:
    """MoCo's equation 1 with Python loops."""
    losses = []
    for query, key in zip(queries, keys, strict=True):
        q, k = query / query.norm(), key / key.norm()
        positive = torch.exp(q @ k / temperature)
        negatives = torch.stack([torch.exp(q @ row / temperature) for row in queue]).sum()
        losses.append(-torch.log(positive / (positive + negatives)))
    return torch.stack(losses).mean()


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=25, deadline=None)
@given(images=st.integers(2, 9), dim=st.integers(1, 12), temperature=st.floats(0.05, 5), seed=st.integers(0, 999))
def test_nt_xent_equals_the_loops(images, dim, temperature, seed):
    fast, slow = (random(2 * images, dim, seed=seed).requires_grad_() for _ in range(2))
    loss = nt_xent(fast, temperature)
    expected, terms = slow_nt_xent(slow, temperature)
    loss.backward(), expected.backward()
    torch.testing.assert_close(loss, expected, atol=1e-12, rtol=1e-10)
    torch.testing.assert_close(fast.grad, slow.grad, atol=1e-11, rtol=1e-8)
    assert terms == 2 * images - 1  # 2N - 2 negatives and the positive


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 7), queue=st.integers(1, 20), dim=st.integers(1, 12), temperature=st.floats(0.05, 5),
    seed=st.integers(0, 999),
)  # fmt: skip
def test_info_nce_equals_the_loops(n, queue, dim, temperature, seed):
    rows = normalize(random(queue, dim, seed=seed + 1))
    fast, slow = (random(n, dim, seed=seed).requires_grad_() for _ in range(2))
    keys_fast, keys_slow = (random(n, dim, seed=seed + 2).requires_grad_() for _ in range(2))
    loss = info_nce(fast, keys_fast, rows, temperature)
    expected = slow_info_nce(slow, keys_slow, rows, temperature)
    loss.backward(), expected.backward()
    torch.testing.assert_close(loss, expected, atol=1e-12, rtol=1e-10)
    torch.testing.assert_close(fast.grad, slow.grad, atol=1e-11, rtol=1e-8)
    torch.testing.assert_close(keys_fast.grad, keys_slow.grad, atol=1e-11, rtol=1e-8)


@pytest.mark.parametrize("images", [2, 3, 128, 500])
@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0])
def test_identical_features_give_log_of_the_candidates(images, temperature):
    same = torch.ones(2 * images, 16)
    # Equal logits leave the log of a sum of ones: exact but for the last bit of float32.
    assert float(nt_xent(same, temperature)) == pytest.approx(math.log(2 * images - 1), rel=1e-6)
    loss = info_nce(same[:images], same[:images], normalize(same), temperature)
    assert float(loss) == pytest.approx(math.log(2 * images + 1), rel=1e-5)
    exact = same.double()
    assert float(nt_xent(exact, temperature)) == pytest.approx(math.log(2 * images - 1), rel=1e-13)
    loss = info_nce(exact[:images], exact[:images], normalize(exact), temperature)
    assert float(loss) == pytest.approx(math.log(2 * images + 1), rel=1e-13)
    assert chance_loss(2 * images - 2) == math.log(2 * images - 1)


def test_no_gradient_comes_from_the_self_term():
    """A self-similarity left in, or masked after the softmax, would differ from the loops."""
    embeddings = (3 * random(8, 4)).requires_grad_()
    nt_xent(embeddings, 0.1).backward()
    # Embeddings are normalised, so a gradient along the embedding itself would show a self term.
    along = (embeddings.grad * embeddings).sum(dim=1)
    torch.testing.assert_close(along, torch.zeros(8, dtype=torch.float64), atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("temperature", [0.01, 0.1])
def test_zero_vectors_and_half_precision_are_finite(dtype, temperature):
    embeddings = torch.randn(8, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    embeddings[0] = 0
    embeddings[5] *= 1000
    embeddings.requires_grad_()
    loss = nt_xent(embeddings, temperature)
    loss.backward()
    assert loss.dtype == torch.float32 and bool(loss.isfinite()) and bool(embeddings.grad.isfinite().all())
    queries = embeddings.detach().requires_grad_()
    loss = info_nce(queries, queries.detach(), normalize(embeddings.detach()), temperature)
    loss.backward()
    assert loss.dtype == torch.float32 and bool(loss.isfinite()) and bool(queries.grad.isfinite().all())


def test_logits_stay_float32_under_autocast():
    embeddings = torch.randn(64, 32, generator=torch.Generator().manual_seed(1))
    queue = normalize(torch.randn(100, 32, generator=torch.Generator().manual_seed(2)))
    plain = nt_xent(embeddings, 0.05), info_nce(embeddings, embeddings.flip(0), queue, 0.05)
    with torch.autocast("cpu", torch.bfloat16):
        under = nt_xent(embeddings, 0.05), info_nce(embeddings, embeddings.flip(0), queue, 0.05)
    assert plain == under


def test_the_loss_does_not_depend_on_lengths():
    embeddings, scale = random(12, 5), random(12, 1, seed=4).abs() + 0.1
    torch.testing.assert_close(nt_xent(embeddings * scale, 0.2), nt_xent(embeddings, 0.2))


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7])
def test_too_few_or_odd_rows_are_refused(rows):
    with pytest.raises(ValueError, match=f"embeddings has {rows} rows; allowed: an even number, 4 or more"):
        nt_xent(torch.ones(rows, 4), 0.1)


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan"), float("inf")])
def test_wrong_temperatures_are_refused(temperature):
    for call in (
        lambda: nt_xent(torch.ones(4, 4), temperature),
        lambda: info_nce(torch.ones(4, 4), torch.ones(4, 4), torch.ones(4, 4), temperature),
    ):
        with pytest.raises(ValueError, match="temperature is .* allowed: a number from 1e-06 to 100"):
            call()


@pytest.mark.parametrize(
    "queries, keys, queue, message",
    [
        ((4, 8), (3, 8), (5, 8), r"keys is .* of shape \(3, 8\); allowed: .*\(4, 8\)"),
        ((4, 8), (4, 8), (5, 7), r"queue is .* of shape \(5, 7\); allowed: .*\(N, 8\)"),
        ((4, 8), (4, 8), (0, 8), "queue is .*N >= 1"),
        ((4,), (4,), (5, 8), "queries is .* of shape"),
    ],
)
def test_wrong_shapes_are_refused(queries, keys, queue, message):
    with pytest.raises(ValueError, match=message):
        info_nce(torch.ones(queries), torch.ones(keys), torch.ones(queue), 0.1)


@pytest.mark.parametrize("part", [1, 3, 7, 100])
@pytest.mark.parametrize("temperature", [0.01, 0.2])
def test_a_queue_in_parts_equals_cross_entropy(monkeypatch, part, temperature):
    """Values and gradients against PyTorch's own cross-entropy over all logits at once."""
    monkeypatch.setattr(losses, "PART", part)
    q, k = random(5, 6).requires_grad_(), random(5, 6, seed=1).requires_grad_()
    rows = normalize(random(20, 6, seed=2))
    loss = info_nce(q, k, rows, temperature)
    loss.backward()
    a, b = q.detach().clone().requires_grad_(), k.detach().clone().requires_grad_()
    unit = torch.nn.functional.normalize(a, dim=1), torch.nn.functional.normalize(b, dim=1)
    logits = torch.cat([(unit[0] * unit[1]).sum(1, keepdim=True), unit[0] @ rows.T], dim=1) / temperature
    expected = torch.nn.functional.cross_entropy(logits, torch.zeros(5, dtype=torch.long))
    expected.backward()
    torch.testing.assert_close(loss, expected, atol=1e-12, rtol=1e-10)
    torch.testing.assert_close(q.grad, a.grad, atol=1e-11, rtol=1e-8)
    torch.testing.assert_close(k.grad, b.grad, atol=1e-11, rtol=1e-8)


def test_the_queue_loss_scales_its_gradient():
    q, k, rows = random(4, 6).requires_grad_(), random(4, 6, seed=1), normalize(random(9, 6, seed=2))
    (info_nce(q, k, rows, 0.1) * 3).backward()
    tripled = q.grad.clone()
    q.grad = None
    info_nce(q, k, rows, 0.1).backward()
    torch.testing.assert_close(tripled, 3 * q.grad)
