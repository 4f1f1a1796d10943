"""What a step keeps in memory, counted on the real networks."""

from __future__ import annotations

from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks


def activation_bytes(method: nn.Module, views: Tensor) -> int:
    """Bytes that a forward pass of `views` keeps for its backward pass, weights and buffers not counted.

    Counted as autograd stores each tensor, every piece of memory once. The module is left as it was,
    but for the statistics of batch norm, and for MoCo's keys that wait to be pushed, which are dropped.
    """
    own = {tensor.untyped_storage().data_ptr() for tensor in (*method.parameters(), *method.buffers())}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        loss = method(views)  # alive until here, so no two of its tensors share an address
    waiting = getattr(method, "waiting", None)
    if waiting is not None:
        waiting.clear()
    del loss
    return sum(kept.values())
