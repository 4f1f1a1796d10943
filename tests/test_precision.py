"""Precision is measured, once a process, and measuring changes nothing."""

import torch

from minilab import precision
from minilab.precision import choose_precision, keep_freed_memory

CPU = torch.device("cpu")


def test_a_named_precision_is_taken_as_it_is():
    for name in ("float32", "bfloat16", "float16"):
        assert choose_precision(name, "micro", 3, (32, 32), CPU) == name


def test_auto_takes_half_precision_only_where_it_is_clearly_faster(monkeypatch):
    for half_seconds, expected in ((0.5, "bfloat16"), (0.95, "float32"), (2.0, "float32")):
        precision._fastest.cache_clear()
        monkeypatch.setattr(
            precision, "_seconds", lambda net, images, dtype, s=half_seconds: 1.0 if dtype == torch.float32 else s
        )
        assert choose_precision("auto", "micro", 3, (32, 32), CPU) == expected
    precision._fastest.cache_clear()


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
