"""Batch norm over processes against torch's own batch norm of all images: values, gradients, running statistics."""

import numpy as np
import pytest
import torch
from torch import nn

from minilab.chunks import statistics_kept
from minilab.distributed import own
from minilab.processes import run_processes
from minilab.syncbn import synchronise

SHAPES = {"images": (12, 5, 3, 4), "rows": (12, 5)}


def layer(shape, affine=True):
    torch.manual_seed(0)
    kind = nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d
    found = kind(shape[1], affine=affine).double()
    if affine:
        nn.init.normal_(found.weight)
        nn.init.normal_(found.bias)
    return found


def result(norm, x, weights):
    """What one process has to show: output, gradients, and running statistics."""
    x.requires_grad_()
    y = norm(x)
    (y * weights).sum().backward()
    gradients = [parameter.grad.numpy() for parameter in norm.parameters()]
    return [y.detach().numpy(), x.grad.numpy(), *gradients, norm.running_mean.numpy(), norm.running_var.numpy()]


def in_processes(name, affine):
    x, weights = numbers(name)
    norm = layer(SHAPES[name], affine)
    synchronise(norm)
    found = result(norm, own(x).clone(), own(weights))
    with statistics_kept(norm):
        norm(own(x))
    kept = norm.running_mean.numpy(), int(norm.num_batches_tracked)
    norm.eval()
    return found, kept, norm(own(x)).detach().numpy()


def numbers(name):
    dice = torch.Generator().manual_seed(1)
    x = 3 + 2 * torch.randn(*SHAPES[name], generator=dice, dtype=torch.float64)
    return x, torch.randn(*SHAPES[name], generator=dice, dtype=torch.float64)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("world", [2, 3])
def test_it_is_batch_norm_of_all_images(world, name, affine):
    parts = run_processes(in_processes, world, name, affine)
    norm = layer(SHAPES[name], affine)
    x, weights = numbers(name)
    y, gradient, *others = result(norm, x.clone(), weights)
    own_weights, statistics = others[:-2], others[-2:]
    found = [part[0] for part in parts]
    np.testing.assert_allclose(np.concatenate([part[0] for part in found]), y, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([part[1] for part in found]), gradient, atol=1e-11)
    for place, value in enumerate(own_weights):  # a process has the gradient of its own images; all of them add up
        np.testing.assert_allclose(sum(part[2 + place] for part in found), value, atol=1e-11)
    for part in found:
        for place, value in enumerate(statistics):
            np.testing.assert_allclose(part[place - 2], value, rtol=1e-12)
    norm.eval()
    for part in parts:
        np.testing.assert_allclose(part[1][0], statistics[0], rtol=1e-12)  # a pass that must not count did not
        assert part[1][1] == 1
    np.testing.assert_allclose(np.concatenate([part[2] for part in parts]), norm(x).detach().numpy(), atol=1e-12)


def test_alone_it_is_torchs_own_and_nothing_else_is_touched():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.Flatten(), nn.BatchNorm1d(16))
    x = torch.randn(6, 3, 4, 4)
    names, weights = list(network.state_dict()), [*network.parameters()]
    before = network(x)
    synchronise(network)
    assert torch.equal(network(x), before)
    assert list(network.state_dict()) == names
    assert all(a is b for a, b in zip(network.parameters(), weights, strict=True))
    assert [type(part).__name__ for part in network] == [
        "Conv2d", "SynchronisedBatchNorm2d", "GroupNorm", "Flatten", "SynchronisedBatchNorm1d",
    ]  # fmt: skip
