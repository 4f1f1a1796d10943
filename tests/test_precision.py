"""Precision is measured, once a process, and measuring changes nothing."""

import pytest
import torch

from minilab import precision
from minilab.optimizers import LARS
from minilab.precision import Scaler, choose_precision, keep_freed_memory

CPU = torch.device("cpu")


def test_a_named_precision_is_taken_as_it_is():
    for name in ("float32", "bfloat16", "float16"):
        assert choose_precision(name, "micro", 3, (32, 32), CPU) == name


def test_auto_takes_half_precision_only_where_it_is_clearly_faster(monkeypatch):
    for gain, expected in ((2.0, "bfloat16"), (1.2, "float32"), (0.5, "float32")):
        precision._fastest.cache_clear()
        monkeypatch.setattr(precision, "_gain", lambda network, images, half, gain=gain: gain)
        assert choose_precision("auto", "micro", 3, (32, 32), CPU) == expected
    precision._fastest.cache_clear()


def test_the_gain_is_the_ratio_of_the_best_times(monkeypatch):
    """The first round warms up and does not count, and a slow spell does not either."""
    full, half = iter([99.0, 3.0, 2.0, 9.0, 4.0]), iter([0.1, 1.0, 8.0, 2.0, 3.0])
    monkeypatch.setattr(precision, "_seconds", lambda net, x, dtype: next(full if dtype == torch.float32 else half))
    assert precision._gain(torch.nn.Identity(), torch.zeros(1), torch.bfloat16) == 2.0


def test_auto_really_measures_and_agrees_with_itself():
    precision._fastest.cache_clear()
    state = torch.get_rng_state()
    first = choose_precision("auto", "micro", 3, (32, 32), CPU)
    assert first in ("float32", "bfloat16")
    assert choose_precision("auto", "micro", 3, (32, 32), CPU) == first
    assert precision._fastest.cache_info().hits == 1
    assert torch.equal(torch.get_rng_state(), state)


def test_keeping_freed_memory_is_harmless():
    keep_freed_memory()
    assert torch.ones(3_000_000).sum() == 3_000_000


@pytest.mark.parametrize("kind", ["sgd", "lars"])
def test_the_scaler_does_what_torch_s_does_and_skips_the_same_steps(kind):
    """Gradients overflow at the first step, before there is a momentum, and at the fourth."""

    def train(scaler):
        torch.manual_seed(0)
        weights = [torch.nn.Parameter(torch.randn(4, 3)), torch.nn.Parameter(torch.randn(3))]
        groups = [{"params": weights, "lr": 0.1, "weight_decay": 0.01, "adapt": True}]
        optimizer = LARS(groups) if kind == "lars" else torch.optim.SGD(weights, lr=0.1, momentum=0.9)
        seen = []
        for step in range(6):
            loss = (torch.randn(5, 4) @ weights[0] + weights[1]).square().mean() * (1e36 if step in (0, 3) else 1)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            seen.append(torch.cat([weight.detach().flatten() for weight in weights]).clone())
        return seen, scaler.get_scale()

    ours, theirs = train(Scaler("cpu", "float16")), train(torch.amp.GradScaler("cpu"))
    assert ours[1] == theirs[1] == 2.0**14  # halved twice
    assert all(torch.equal(a, b) for a, b in zip(ours[0], theirs[0], strict=True))
    assert torch.equal(ours[0][2], ours[0][3]) and not torch.equal(ours[0][1], ours[0][2])


def test_only_float16_is_scaled():
    assert [Scaler("cpu", name).is_enabled() for name in ("float32", "bfloat16", "float16")] == [False, False, True]
