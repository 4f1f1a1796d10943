"""Activation bytes against counts by hand, and in proportion to the batch."""

import pytest
import torch
from torch import nn

from minilab.memory import activation_bytes
from minilab.recipe import Recipe
from minilab.training import build_method


def test_a_linear_layer_keeps_its_input_and_a_square_keeps_its_own():
    class Squares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(10, 3)

        def forward(self, x):
            return self.layer(x).square().sum()

    assert activation_bytes(Squares(), torch.rand(7, 10)) == 4 * (7 * 10 + 7 * 3)


def test_a_tensor_that_is_used_twice_counts_once():
    class Twice(nn.Module):
        def forward(self, x):
            x = x.requires_grad_()
            return (x * x.sin()).sum()

    assert activation_bytes(Twice(), torch.rand(5)) == 4 * (5 + 5)  # x, and its sine


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_they_grow_with_the_batch_and_not_with_the_queue(method):
    def count(batch: int, queue: int = 64) -> int:
        network = build_method(Recipe(method, "micro", batch=batch, queue=queue)).train()
        return activation_bytes(network, torch.rand(2 * batch, 3, 16, 16))

    small, large, larger = count(16), count(32), count(64)
    assert large / small == pytest.approx(2, rel=0.1) and larger / large == pytest.approx(2, rel=0.15)
    if method == "moco":
        assert count(16, queue=4096) == small
        assert small < 0.6 * activation_bytes(
            build_method(Recipe("simclr", "micro", batch=16)).train(), torch.rand(32, 3, 16, 16)
        )


def test_no_keys_are_left_waiting():
    moco = build_method(Recipe("moco", "micro", batch=8, queue=16)).train()
    activation_bytes(moco, torch.rand(16, 3, 16, 16))
    assert moco.waiting == [] and int(moco.filled) == 0
