"""Collectives with a gradient, in real processes, against one process with all the rows."""

import warnings

import numpy as np
import pytest
import torch
import torch.distributed as dist

from minilab.distributed import gather, nt_xent_gathered, rank, world_size
from minilab.losses import nt_xent
from minilab.processes import run_processes
from minilab.recipe import Recipe
from minilab.training import build_method

TEMPERATURE = 0.2


def shard(rows, world, number):
    """Rank `number`'s part of rows (2N, d): both views of its own images."""
    return rows.unflatten(0, (2, -1)).chunk(world, dim=1)[number].flatten(0, 1)


def loss_and_gradient(numbers):
    mine = shard(torch.from_numpy(numbers), world_size(), rank()).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss = nt_xent_gathered(mine, TEMPERATURE)
        loss.backward()
    return float(loss.detach()), mine.grad.numpy() / world_size()  # the mean over processes, as DDP takes it


def gradient_through_a_view(numbers):
    mine = torch.from_numpy(numbers)[rank() : rank() + 1].requires_grad_()
    weights = torch.arange(6, dtype=torch.float64).view(3, 2) * (rank() + 1)
    (gather(mine).T * weights).sum().backward()  # the gradient that arrives is transposed
    expanded = torch.from_numpy(numbers)[rank() : rank() + 1].requires_grad_()
    gather(expanded).sum().backward()  # the gradient that arrives is one number, expanded
    return mine.grad.numpy(), expanded.grad.numpy()


def queue_after_steps(steps):
    method = build_method(Recipe("moco", "micro", batch=6, queue=32, dim=8)).train()
    optimizer = torch.optim.SGD(method.parameters(), 0.05)
    dice = torch.Generator().manual_seed(rank())  # images of its own on every rank
    for _ in range(steps):
        method(torch.rand(6, 3, 8, 8, generator=dice)).backward()
        for parameter in method.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        method.after_step()
    return method.queue.numpy(), int(method.oldest), int(method.filled)


@pytest.fixture()
def rows():
    return torch.randn(24, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("world", [2, 3])
def test_the_gathered_loss_is_that_of_the_whole_batch_and_so_is_its_gradient(rows, world):
    found = run_processes(loss_and_gradient, world, rows.numpy())
    whole = rows.clone().requires_grad_()
    loss = nt_xent(whole, TEMPERATURE)
    loss.backward()
    assert np.mean([value for value, _ in found]) == pytest.approx(float(loss.detach()), abs=1e-12)
    for number, (_, gradient) in enumerate(found):
        np.testing.assert_allclose(gradient, shard(whole.grad, world, number).numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("world", [2, 3])
def test_labels_are_right_on_every_rank(rows, world):
    """Each rank's own loss against a loop over its anchors: with rank 0's labels the others would differ."""
    found = run_processes(loss_and_gradient, world, rows.numpy())
    z = torch.nn.functional.normalize(rows)
    images = len(z) // 2
    for number, (value, _) in enumerate(found):
        terms = []
        for image in range(number * images // world, (number + 1) * images // world):
            for anchor, partner in ((image, image + images), (image + images, image)):
                similarities = z[anchor] @ z.T / TEMPERATURE
                others = [j for j in range(len(z)) if j != anchor]
                terms.append(torch.logsumexp(similarities[others], 0) - similarities[partner])
        assert value == pytest.approx(float(torch.stack(terms).mean()), abs=1e-12)


def test_a_gradient_that_is_not_contiguous_comes_back_right(rows):
    found = run_processes(gradient_through_a_view, 2, rows[:2, :3].numpy().copy())
    weights = np.arange(6.0).reshape(3, 2)
    for number, (through_view, through_sum) in enumerate(found):
        np.testing.assert_array_equal(through_view[0], weights[:, number] * 3)  # 1 x from rank 0 and 2 x from rank 1
        np.testing.assert_array_equal(through_sum, np.full((1, 3), 2.0))


def test_without_a_group_everything_is_as_on_one_device(rows):
    assert (world_size(), rank()) == (1, 0) and gather(rows) is rows
    assert torch.equal(nt_xent_gathered(rows, TEMPERATURE), nt_xent(rows, TEMPERATURE))


def test_the_queue_is_equal_on_all_ranks_after_50_steps():
    (first, *state), (second, *other) = run_processes(queue_after_steps, 2, 50)
    np.testing.assert_array_equal(first, second)
    assert state == other == [50 * 6 % 32, 32]  # three keys a step from each rank
