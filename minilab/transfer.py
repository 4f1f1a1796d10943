"""Small tensors of the CPU on their way to the device, such as random draws: one copy, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

ALIGNED = 8  # bytes: a tensor can be looked at as its own type only from a multiple of its size on


def send(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Copies of CPU tensors of any shapes and types on `device`; on the CPU the tensors themselves.

    An ordinary copy to a GPU makes the CPU wait until the GPU has done all that was asked of it before. One from
    pinned memory need not, and torch keeps the pinned block until the copy is over. So all go as one pinned block.
    """
    if device.type == "cpu":
        return list(tensors)
    blocks = [_padded(tensor.contiguous().flatten().view(torch.uint8)) for tensor in tensors]
    packed = torch.cat(blocks)
    if device.type == "cuda":
        packed = packed.pin_memory()
    there = packed.to(device, non_blocking=True).split([len(block) for block in blocks])
    return [
        block[: tensor.numel() * tensor.element_size()].view(tensor.dtype).view(tensor.shape)
        for block, tensor in zip(there, tensors, strict=True)
    ]


def _padded(block: Tensor) -> Tensor:
    """Bytes (n,) with zeros behind them up to a multiple of `ALIGNED`."""
    return torch.nn.functional.pad(block, (0, -len(block) % ALIGNED))
