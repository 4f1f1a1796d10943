"""The networks of a method through `torch.compile`, in training only."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from minilab.distributed import world_size


class Compiled(AbstractContextManager[None]):
    """A context in which the networks of a method run compiled; outside it they are as they were.

    Each way to call a network (training or evaluation, with or without gradient, another batch) is compiled by itself,
    which takes up to a minute: a step is called thousands of times, evaluation is not. Weights, buffers and their
    names are untouched, so a checkpoint is the same. `backend`: as in `torch.compile`. Raises `ValueError` in one of
    several processes, whose batch norm waits for the others.
    """

    def __init__(self, method: nn.Module, backend: str = "inductor") -> None:
        if world_size() > 1:
            raise ValueError(f"compile is True; allowed in {world_size()} processes: False")
        names = ("encoder", "head", "key_encoder")
        self.networks = [module for name, module in method.named_children() if name in names]
        self.forwards: list[Any] = [torch.compile(n.forward, backend=backend, dynamic=False) for n in self.networks]

    def __enter__(self) -> None:
        for network, forward in zip(self.networks, self.forwards, strict=True):
            network.__dict__["forward"] = forward  # found before the class's own

    def __exit__(self, *_: object) -> None:
        for network in self.networks:
            del network.__dict__["forward"]
