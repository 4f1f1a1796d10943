"""Activation bytes against counts by hand, and in proportion to the batch."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from minilab.encoder import build_encoder
from minilab.memory import NETWORKS, Budget, activation_bytes, device_bytes, largest_batch
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


BUDGET = Budget("resnet50", 224, devices=8, gigabytes=32, half=False, batch=256, queue=65_536)


def test_known_networks():
    assert NETWORKS["resnet50"].weights() == 25_557_032 - 2_049_000  # torchvision's, less the classifier
    assert NETWORKS["resnet18"].weights() == 11_689_512 - 513_000
    outputs = sum(out * side**2 for _, out, _, side, _ in NETWORKS["resnet50"].convolutions(224))
    assert outputs == pytest.approx(11.11e6, rel=1e-3)  # as counted for this book in another way


@pytest.mark.parametrize("ours, real", [("tiny", "tiny"), ("resnet18, small images", "resnet18")])
def test_the_arithmetic_counts_the_labs_own_encoders(ours, real):
    encoder = build_encoder(real).train()
    assert NETWORKS[ours].weights() == sum(weight.numel() for weight in encoder.parameters())

    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder

        def forward(self, views):
            return self.encoder(views).sum()

    images = 8
    counted = activation_bytes(Sum(), torch.rand(images, 3, 32, 32)) / images / 4
    assert NETWORKS[ours].kept(32) == pytest.approx(counted, rel=0.01)


def test_published_memory_is_met():
    """MoCo v2 (arXiv 2003.04297), table 3, on 8 GPUs: 7.4 GB for end-to-end at 256, 93.0 GB (an estimate) at 4,096."""
    small = sum(device_bytes(BUDGET, "simclr").values()) / 1e9
    large = sum(device_bytes(BUDGET, "simclr", 4096).values()) / 1e9
    assert small == pytest.approx(7.4, rel=0.1) and large == pytest.approx(93.0, rel=0.05)


def test_kinds_of_memory():
    kinds = device_bytes(BUDGET, "moco")
    assert kinds["queue"] == 32 * 2**20 and kinds["logits"] == 8 * 32 * 65_537
    assert kinds["activations"] * 2 == device_bytes(BUDGET, "simclr")["activations"]
    assert device_bytes(replace(BUDGET, half=True), "moco")["activations"] * 2 == kinds["activations"]
    with pytest.raises(ValueError, match="method is 'byol'; allowed: simclr, moco"):
        device_bytes(BUDGET, "byol")


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_the_largest_batch_fits_and_one_more_does_not(method):
    found = largest_batch(BUDGET, method)
    assert found % 8 == 0 and found > 0
    fits = [sum(device_bytes(BUDGET, method, batch).values()) <= 0.9 * 32e9 for batch in (found, found + 8)]
    assert fits == [True, False]
    assert largest_batch(replace(BUDGET, gigabytes=0.5), method) == 0


@pytest.mark.parametrize(
    "field, value",
    [("network", "vit"), ("size", 4), ("devices", 0), ("batch", 1), ("batch", 2.5), ("queue", 0), ("dim", 0),
     ("gigabytes", 0), ("gigabytes", float("nan"))],
)  # fmt: skip
def test_a_wrong_budget_is_named(field, value):
    with pytest.raises(ValueError, match=f"{field} is .*; allowed: "):
        replace(BUDGET, **{field: value})
