"""One batch spread over several processes: collectives with a gradient, and SimCLR's loss on top of them.

Without a process group, or alone in one, every function here is what it is on one device.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from minilab import checks
from minilab.losses import check_pairs, normalize

# Newer torch has renamed both; the old names warn there, and the new ones are missing in torch 2.4.
_all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


T = TypeVar("T")
_apart = False


def join_torchrun(seconds: float = 600.0) -> torch.device | None:
    """Join the group of the processes that torchrun has started, and return this one's device; None without torchrun.

    A process has a GPU of its own where the machine has enough, and all work on the CPU where not.
    A collective that another process does not join within `seconds` fails.
    """
    checks.number("seconds", seconds, 0, 10**6, open_low=True)
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        return None
    local, here = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    gpus = torch.cuda.device_count() >= here
    if gpus:
        torch.cuda.set_device(local)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // here))
        if here == int(os.environ["WORLD_SIZE"]):  # one machine: its own name need not resolve
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if os.uname().sysname == "Darwin" else "lo")
    dist.init_process_group("nccl" if gpus else "gloo", timeout=timedelta(seconds=seconds))
    return torch.device("cuda", local) if gpus else torch.device("cpu")


def leave_torchrun() -> None:
    """Leave the group of `join_torchrun`, once every process has come this far."""
    if dist.is_available() and dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def world_size() -> int:
    """Processes in the group; 1 without one, and within `apart`."""
    return dist.get_world_size() if not _apart and dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process in the group; 0 without one."""
    return dist.get_rank() if world_size() > 1 else 0


def share_gradients(module: nn.Module) -> DistributedDataParallel:
    """`module` such that a backward pass leaves in every process the mean of their gradients. Buffers are its own."""
    checks.kind("module", module, nn.Module, "a torch.nn.Module")
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError("the process group is missing; allowed: in processes that have joined one")
    known = inspect.signature(DistributedDataParallel).parameters
    switch = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"  # its old name
    options: dict[str, Any] = {switch: False}
    return DistributedDataParallel(module, **options)


@contextmanager
def apart() -> Iterator[None]:
    """Within, this process computes as if it were the only one: what one measures must not wait for the rest."""
    global _apart
    before, _apart = _apart, True
    try:
        yield
    finally:
        _apart = before


def own(rows: Tensor) -> Tensor:
    """Rows (W * n, ...) of all processes to this one's part (n, ...)."""
    if not isinstance(rows, Tensor) or rows.ndim < 1 or len(rows) % world_size():
        checks.refuse("rows", rows, f"a tensor whose number of rows {world_size()} divides")
    return rows.chunk(world_size())[rank()]


def agree(value: T) -> T:
    """What rank 0 calls it with, in every process. For small plain values, once an epoch."""
    if world_size() == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def total(values: Tensor) -> Tensor:
    """Values, the same shape in every process, added up over the processes. No gradient."""
    checks.kind("values", values, Tensor, "a tensor")
    if world_size() == 1:
        return values
    summed = values.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(summed)
    return summed


def average(values: Tensor) -> Tensor:
    """Values, the same shape in every process, averaged over the processes. No gradient."""
    return total(values) / world_size()


def gather(rows: Tensor) -> Tensor:
    """Rows (n, ...) of every process, in order of rank (W * n, ...), with a gradient.

    Every process must bring equally many. Backward, a process gets the gradients of its own rows
    from all processes, added up: what each of them computed with these rows is lost in no case.
    """
    if not isinstance(rows, Tensor) or rows.ndim < 1:
        checks.refuse("rows", rows, "a tensor of shape (n, ...)")
    if world_size() == 1:
        return rows
    gathered: Tensor = GatherWithGradient.apply(rows)
    return gathered


class GatherWithGradient(torch.autograd.Function):
    """All-gather forward, reduce-scatter (sum) backward: each is the other's transpose."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        """(n, ...) to (W * n, ...)."""
        gathered = rows.new_empty(world_size() * len(rows), *rows.shape[1:])
        _all_gather(gathered, rows.contiguous())
        return gathered

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """(W * n, ...) to (n, ...)."""
        own = gradient.new_empty(len(gradient) // world_size(), *gradient.shape[1:])
        _reduce_scatter(own, gradient.contiguous())  # a gradient can come in as a transposed or expanded view
        return own


def nt_xent_gathered(embeddings: Tensor, temperature: float) -> Tensor:
    """SimCLR's loss when the batch is spread over processes: own anchors, everyone's candidates.

    `embeddings`: (2n, dim), rows i and i + n are the two views of own image i; n is the same everywhere.
    Its mean over the processes is `minilab.losses.nt_xent` of the whole batch, and so is its gradient
    once it is averaged over the processes, as DistributedDataParallel does.
    """
    check_pairs(embeddings, temperature, least=4 if world_size() == 1 else 2)
    with torch.autocast(embeddings.device.type, enabled=False):
        z = normalize(embeddings)
        everyone = gather(z)  # (W * 2n, dim)
        own = rank() * len(z) + torch.arange(len(z), device=z.device)  # where own rows are among them
        logits = (z / temperature) @ everyone.T  # (2n, W * 2n)
        logits = logits.scatter(1, own[:, None], -math.inf)  # no anchor is its own candidate
        return F.cross_entropy(logits, own.roll(len(z) // 2))
