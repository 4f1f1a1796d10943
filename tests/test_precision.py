"""Precision is measured, once a process, and measuring changes nothing."""

import torch

from minilab import precision
from minilab.precision import choose_precision, keep_freed_memory

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
