"""A batch in chunks: what is exact, what is not, and what must be left as it was."""

import copy

import pytest
import torch
from torch import Tensor, nn

from minilab import chunks
from minilab.losses import nt_xent
from minilab.recipe import Recipe
from minilab.training import build_method


class Embedder(nn.Module):
    """A stand-in for SimCLR in float64 with no batch norm, so that GradCache is exact; it counts its work."""

    def __init__(self, dropout: float = 0.0, norm: bool = False) -> None:
        super().__init__()
        middle = nn.BatchNorm1d(16) if norm else nn.Identity()
        self.layers = nn.Sequential(nn.Linear(12, 16), middle, nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 5))
        self.double()
        self.largest, self.calls = 0, 0

    def embed(self, views: Tensor) -> Tensor:
        self.largest, self.calls = max(self.largest, len(views)), self.calls + 1
        return self.layers(views)

    def loss(self, embeddings: Tensor) -> Tensor:
        return nt_xent(embeddings, 0.2)

    def forward(self, views: Tensor) -> Tensor:
        return self.loss(self.embed(views))


OFF = torch.autocast("cpu", enabled=False)


def gradients(method: nn.Module, way, *arguments) -> tuple[Tensor, Tensor]:
    """Loss and gradient, flat, of a copy of `method`."""
    method = copy.deepcopy(method)
    loss = way(method, *arguments, lambda value: value, OFF)
    return loss, torch.cat([p.grad.flatten() for p in method.parameters()])


@pytest.fixture()
def views() -> Tensor:
    return torch.randn(48, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("chunk", [2, 3, 5, 7, 8, 24, 100])
def test_gradcache_is_the_whole_batch_in_float64(views, chunk):
    torch.manual_seed(0)
    method = Embedder()
    loss, gradient = gradients(method, chunks.gradcache, views, chunk)
    whole_loss, whole = gradients(method, chunks.whole, views)
    assert loss.dtype == torch.float64
    torch.testing.assert_close(loss, whole_loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, whole, rtol=1e-9, atol=1e-12)


def test_naive_accumulation_is_the_mean_of_small_losses_and_not_the_large_one(views):
    torch.manual_seed(0)
    method = Embedder()
    loss, gradient = gradients(method, chunks.naive, views, 8)
    first, second = views.chunk(2)
    small = [gradients(method, chunks.whole, torch.cat([first[i : i + 8], second[i : i + 8]])) for i in (0, 8, 16)]
    torch.testing.assert_close(loss, torch.stack([value for value, _ in small]).mean())
    torch.testing.assert_close(gradient, torch.stack([value for _, value in small]).mean(dim=0))
    whole_loss, whole = gradients(method, chunks.whole, views)
    assert loss < whole_loss - 0.5 and float((gradient - whole).norm() / whole.norm()) > 0.1


def test_a_short_last_chunk_weighs_by_its_images(views):
    torch.manual_seed(0)
    method = Embedder()
    _, gradient = gradients(method, chunks.naive, views, 20)  # 20 images and 4
    first, second = views.chunk(2)
    parts = [(20, slice(0, 20)), (4, slice(20, 24))]
    expected = sum(
        n / 24 * gradients(method, chunks.whole, torch.cat([first[rows], second[rows]]))[1] for n, rows in parts
    )
    torch.testing.assert_close(gradient, expected)


def test_dropout_is_replayed_and_the_random_state_moves_on_as_once(views):
    torch.manual_seed(0)
    method = Embedder(dropout=0.5)
    state = torch.get_rng_state()
    _, gradient = gradients(method, chunks.gradcache, views, 8)
    after = torch.rand(3)
    torch.set_rng_state(state)  # by hand: the same draws, with all graphs in memory at once
    by_hand = copy.deepcopy(method)
    parts = [by_hand.embed(part).unflatten(0, (2, -1)) for part in chunks.split(views, 8)]
    by_hand.loss(torch.cat(parts, dim=1).flatten(0, 1)).backward()
    expected = torch.cat([p.grad.flatten() for p in by_hand.parameters()])
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)
    assert torch.equal(after, torch.rand(3))


def test_only_one_chunk_is_in_memory_and_each_is_embedded_twice(views):
    method = Embedder()
    chunks.gradcache(method, views, 6, lambda value: value, OFF)
    assert method.largest == 12 and method.calls == 8


def test_batch_norm_counts_a_step_once(views):
    method = Embedder(norm=True)
    chunks.gradcache(method, views, 8, lambda value: value, OFF)
    norm = method.layers[1]
    assert int(norm.num_batches_tracked) == 3 and norm.track_running_stats


def test_a_scaled_loss_scales_the_gradient_and_not_what_is_returned(views):
    method = Embedder()
    for way, rest in ((chunks.whole, ()), (chunks.naive, (8,)), (chunks.gradcache, (8,))):
        plain, scaled = copy.deepcopy(method), copy.deepcopy(method)
        loss = way(plain, views, *rest, lambda value: value, OFF)
        assert torch.equal(way(scaled, views, *rest, lambda value: 1024 * value, OFF), loss)
        for a, b in zip(plain.parameters(), scaled.parameters(), strict=True):
            torch.testing.assert_close(1024 * a.grad, b.grad)


def test_in_training_gradcache_equals_batch_norm_groups_of_the_same_size():
    """The real encoder: with batch norm over the same 8 images both ways, only the last bits differ."""
    views = torch.rand(64, 3, 16, 16, generator=torch.Generator().manual_seed(2))
    grouped = build_method(Recipe("simclr", "micro", batch=32, bn_groups=4))
    cached = build_method(Recipe("simclr", "micro", batch=32, chunk=8))
    first = chunks.backward(grouped, views, Recipe("simclr", "micro", batch=32, bn_groups=4), lambda v: v, OFF)
    second = chunks.backward(cached, views, Recipe("simclr", "micro", batch=32, chunk=8), lambda v: v, OFF)
    torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-6)
    for a, b in zip(grouped.parameters(), cached.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-5)
    for a, b in zip(grouped.buffers(), cached.buffers(), strict=True):
        torch.testing.assert_close(a, b)


def test_mocos_chunks_meet_the_same_queue_and_all_their_keys_are_pushed():
    recipe = Recipe("moco", "micro", batch=32, chunk=8, queue=100)
    moco = build_method(recipe)
    views = torch.rand(64, 3, 16, 16, generator=torch.Generator().manual_seed(2))
    before = moco.queue.clone()
    chunks.backward(moco, views, recipe, lambda value: value, OFF)
    assert torch.equal(moco.queue, before) and [len(keys) for keys in moco.waiting] == [8, 8, 8, 8]
    moco.after_step()
    assert int(moco.filled) == 32
