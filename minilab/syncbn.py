"""Batch norm over the images of all processes: what SimCLR calls global BN (arXiv 2002.05709, section 2.2).

torch has `SyncBatchNorm`, for GPUs only. This one runs wherever `minilab.distributed` does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from minilab.distributed import average, world_size


class _Synchronised(nn.modules.batchnorm._BatchNorm):
    """Batch norm whose statistics in training are of all processes; each must bring equally many images."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, C) or (N, C, H, W), kept."""
        if not self.training or world_size() == 1:
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            wide = x if x.dtype == torch.float64 else x.float()
            over = [0, *range(2, x.ndim)]
            shape = [1, -1, *[1] * (x.ndim - 2)]  # of one number a channel
            mean = average(wide.mean(over))
            centred = wide - mean.view(shape)
            variance = average(centred.square().mean(over))
            y = centred * (variance + self.eps).rsqrt().view(shape)
            if self.affine:
                y = y * self.weight.view(shape) + self.bias.view(shape)
        if self.track_running_stats:
            self._remember(mean, variance, x.numel() // x.shape[1] * world_size())
        return y.to(x.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running statistics, the variance without bias, as torch's batch norm does."""
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
        self.running_var.lerp_((variance * (count / (count - 1))).to(self.running_var.dtype), self.momentum)


class SynchronisedBatchNorm1d(_Synchronised, nn.BatchNorm1d):
    """For (N, C)."""


class SynchronisedBatchNorm2d(_Synchronised, nn.BatchNorm2d):
    """For (N, C, H, W)."""


KINDS: dict[type, type[_Synchronised]] = {
    nn.BatchNorm1d: SynchronisedBatchNorm1d,
    nn.BatchNorm2d: SynchronisedBatchNorm2d,
}


def synchronise(module: nn.Module) -> None:
    """Let every batch norm in `module` use the statistics of all processes. Weights and names stay."""
    for layer in module.modules():
        if type(layer) in KINDS:
            layer.__class__ = KINDS[type(layer)]  # same parameters and buffers; only forward differs
