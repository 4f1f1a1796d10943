"""Batch norm over the images of all processes: what SimCLR calls global BN (arXiv 2002.05709, section 2.2).

torch has `SyncBatchNorm`, for GPUs only. This one runs wherever `minilab.distributed` does.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minilab import checks
from minilab.distributed import gather, total, world_size


class NormaliseTogether(torch.autograd.Function):
    """Batch norm with the mean and variance of all processes: one collective forward, one backward.

    Once mean and variance are known, torch's own kernel normalises with them as constants, forward and backward.
    What is missing in its gradient is that they are not constant: the two sums that this takes are just the
    gradients of bias and weight, over all processes (Ioffe & Szegedy, arXiv 1502.03167, section 3).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        """x: (N, C, ...). Returns it normalised, and the mean and the variance (C,) of all processes."""
        variance, mean = torch.var_mean(x, [0, *range(2, x.ndim)], correction=0)
        means, variances = gather(torch.stack([mean, variance])).view(-1, 2, x.shape[1]).unbind(1)  # (W, C)
        mean = means.mean(0)
        variance = variances.mean(0) + (means - mean).square().mean(0)  # within the processes, and between them
        ctx.save_for_backward(x, weight, mean, variance)
        ctx.eps = eps
        ctx.mark_non_differentiable(mean, variance)
        return F.batch_norm(x, mean, variance, weight, bias, eps=eps), mean, variance

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Gradients of x, weight and bias, of the last two what own images give: averaging them is DDP's work."""
        x, weight, mean, variance = ctx.saved_tensors
        dx, dweight, dbias = torch.ops.aten.native_batch_norm_backward(
            gradient, x, weight, mean, variance, None, None, False, ctx.eps, [True, True, True]
        )
        scale = (variance + ctx.eps).rsqrt()
        all_weight, all_bias = total(torch.stack([dweight, dbias])) * (x.shape[1] / x.numel() / world_size())
        slope = weight * scale.square() * all_weight  # of dx in x, by channel
        offset = weight * scale * all_bias - mean * slope
        shape = [1, -1, *[1] * (x.ndim - 2)]
        dx = dx.sub_(torch.addcmul(offset.view(shape), x, slope.view(shape)))
        return dx, dweight, dbias, None


class _Synchronised(nn.modules.batchnorm._BatchNorm):
    """Batch norm whose statistics in training are of all processes; each must bring equally many images."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, C) or (N, C, H, W), kept."""
        if not self.training or world_size() == 1:
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            wide = x if x.dtype == torch.float64 else x.float()
            weight = wide.new_ones(x.shape[1]) if self.weight is None else self.weight
            bias = wide.new_zeros(x.shape[1]) if self.bias is None else self.bias
            y, mean, variance = NormaliseTogether.apply(wide, weight, bias, self.eps)
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
    checks.kind("module", module, nn.Module, "a torch.nn.Module")
    for layer in module.modules():
        if type(layer) in KINDS:
            layer.__class__ = KINDS[type(layer)]  # same parameters and buffers; only forward differs
