"""The three ways of a step: counted, and compared as gradients in float64."""

import pytest
import torch

from minilab.memory import peak_saved_bytes
from minilab.pitfalls.accumulation import CandidateCounter, compare, freeze_batch_norm, one_step
from minilab.recipe import Recipe
from minilab.training import build_method


@pytest.fixture()
def method():
    """The real encoder in float64, with batch norm by running statistics."""
    simclr = build_method(Recipe("simclr", "micro", batch=32)).double()
    freeze_batch_norm(simclr)
    return simclr


@pytest.fixture()
def views():
    return torch.rand(64, 3, 16, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_gradcache_is_the_large_batch_and_accumulation_is_not(method, views):
    found = compare(method, views, chunk=8)
    assert found["gradcache"]["cosine"] == pytest.approx(1, abs=1e-12)
    assert found["gradcache"]["norm_ratio"] == pytest.approx(1, abs=1e-12)
    assert found["gradcache"]["loss"] == pytest.approx(found["whole"]["loss"], abs=1e-12)
    assert found["naive"]["cosine"] < 0.999 and found["naive"]["loss"] < found["whole"]["loss"] - 1


@pytest.mark.parametrize("chunk", [5, 7, 12, 31])
def test_uneven_chunks_too(method, views, chunk):
    if 32 % chunk == 1:
        chunk -= 1
    whole, cached = (one_step(method, views, way, chunk).gradient for way in ("whole", "gradcache"))
    torch.testing.assert_close(cached, whole, rtol=1e-10, atol=1e-13)


def test_the_denominators_are_counted(method, views):
    assert one_step(method, views, "whole", 8).seen == [(64, 63)]
    assert one_step(method, views, "gradcache", 8).seen == [(64, 63)]
    assert one_step(method, views, "naive", 8).seen == [(16, 15)] * 4
    assert one_step(method, views, "naive", 12).seen == [(24, 23), (24, 23), (16, 15)]


def test_the_counter_sees_what_is_there_and_changes_nothing():
    logits = torch.tensor([[0.0, 1.0, -torch.inf], [1.0, 2.0, 3.0]])
    with CandidateCounter() as counter:
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor([0, 2]))
    assert counter.seen == [(2, 2)] and torch.equal(
        loss, torch.nn.functional.cross_entropy(logits, torch.tensor([0, 2]))
    )


def test_batch_norm_by_the_batch_makes_gradcache_inexact(views):
    training = build_method(Recipe("simclr", "micro", batch=32)).double().train()
    found = compare(training, views, chunk=8)
    assert abs(found["gradcache"]["norm_ratio"] - 1) > 0.01 or found["gradcache"]["cosine"] < 0.999


def test_memory_is_that_of_a_chunk_however_many_there_are(method):
    def megabytes(images: int, way: str) -> float:
        views = torch.rand(2 * images, 3, 16, 16, dtype=torch.float64)
        return one_step(method, views, way, chunk=8).peak_bytes

    few, many = megabytes(16, "gradcache"), megabytes(64, "gradcache")
    assert many < 1.1 * few  # and what the embeddings and their similarities take
    assert megabytes(64, "whole") > 3 * many


def test_peak_is_less_than_the_sum_where_graphs_go_one_by_one():
    layer = torch.nn.Linear(4, 4, bias=False)

    def work(times: int) -> None:
        for _ in range(times):
            layer(torch.rand(100, 4)).square().sum().backward()

    once = peak_saved_bytes(lambda: work(1), layer)[1]
    assert once == 2 * 100 * 4 * 4 and peak_saved_bytes(lambda: work(5), layer)[1] == once


def test_the_method_is_left_alone(method, views):
    before = {name: value.clone() for name, value in method.state_dict().items()}
    one_step(method, views, "gradcache", 8)
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
    assert all(p.grad is None for p in method.parameters())
    with pytest.raises(ValueError, match="way is 'sum'; allowed: whole, naive, gradcache"):
        one_step(method, views, "sum", 8)


def test_with_group_norm_gradcache_is_exact_in_training_too(views):
    training = build_method(Recipe("simclr", "micro", batch=32, norm="group")).double().train()
    whole, cached, naive = (one_step(training, views, way, 12).gradient for way in ("whole", "gradcache", "naive"))
    torch.testing.assert_close(cached, whole, rtol=1e-10, atol=1e-13)
    assert float((naive - whole).norm() / whole.norm()) > 0.01
