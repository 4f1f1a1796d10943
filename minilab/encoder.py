"""Small CIFAR ResNets and the projection head.

The encoder is He et al.'s basic-block ResNet (arXiv 1512.03385) with the stem that
SimCLR uses on CIFAR-10 (appendix B.9): one 3 x 3 convolution and no max-pool.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minilab import checks

# name: (blocks in each of the four stages, channels of each stage, stride of the stem)
Stages = tuple[int, int, int, int]
ENCODERS: dict[str, tuple[Stages, Stages, int]] = {
    "micro": ((1, 1, 1, 1), (8, 16, 32, 64), 2),  # 0.08 M parameters: for tests
    "tiny": ((1, 1, 1, 1), (16, 32, 64, 256), 2),  # 0.8 M: for two CPU cores
    "small": ((1, 1, 1, 1), (32, 64, 128, 256), 2),  # 1.2 M
    "resnet10": ((1, 1, 1, 1), (64, 128, 256, 512), 1),  # 4.9 M
    "resnet18": ((2, 2, 2, 2), (64, 128, 256, 512), 1),  # 11 M: for a GPU
}


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with batch norm, and a shortcut around them."""

    def __init__(self, channels_in: int, channels: int, stride: int, norm: str = "batch") -> None:
        super().__init__()
        checks.whole("channels_in", channels_in, 1)
        checks.whole("channels", channels, 1)
        checks.whole("stride", stride, 1)
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = norm_layer(norm, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = norm_layer(norm, channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), norm_layer(norm, channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels_in, H, W) to (N, channels, H / stride, W / stride)."""
        _check_input(x, self.conv1)
        out = F.relu(self.norm1(self.conv1(x)), inplace=True)
        out = self.norm2(self.conv2(out))
        return F.relu(out + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    """Images (N, C, H, W) to features (N, widths[3]): the network that is kept after training."""

    def __init__(
        self, blocks: Stages, widths: Stages, stem_stride: int, channels: int = 3, norm: str = "batch"
    ) -> None:
        super().__init__()
        for name, stages in (("blocks", blocks), ("widths", widths)):
            if not isinstance(stages, (tuple, list)) or len(stages) != 4:
                checks.refuse(name, stages, "four whole numbers, one a stage")
            for count in stages:
                checks.whole(name, count, 1)
        checks.whole("stem_stride", stem_stride, 1)
        checks.whole("channels", channels, 1)
        layers: list[nn.Module] = [
            nn.Conv2d(channels, widths[0], 3, stem_stride, 1, bias=False),
            norm_layer(norm, widths[0]),
            nn.ReLU(True),
        ]
        channels_in = widths[0]
        for stage, (count, width) in enumerate(zip(blocks, widths, strict=True)):
            for index in range(count):
                layers.append(BasicBlock(channels_in, width, 2 if stage > 0 and index == 0 else 1, norm))
                channels_in = width
        self.layers = nn.Sequential(*layers)
        self.features = channels_in

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) to features (N, widths[3])."""
        _check_input(x, self.layers[0])
        x = x.contiguous(memory_format=torch.channels_last)  # the faster layout, on CPUs and GPUs alike
        return self.layers(x).mean(dim=(2, 3))  # (N, C, H', W') -> (N, C)


def norm_layer(norm: str, channels: int) -> nn.Module:
    """Batch norm, or group norm in 8 groups of channels, which no other image of the batch has a part in."""
    checks.one_of("norm", norm, ("batch", "group"))
    checks.whole("channels", channels, 1)
    if norm == "group" and channels % 8:
        raise ValueError(f"channels is {channels}; allowed: a multiple of 8, which has 8 groups")
    return nn.GroupNorm(8, channels) if norm == "group" else nn.BatchNorm2d(channels)


def build_encoder(name: str, channels: int = 3, norm: str = "batch") -> ResNet:
    """The encoder called `name`, for images with `channels` channels. Unknown names raise `ValueError`."""
    checks.one_of("encoder", name, tuple(ENCODERS))
    blocks, widths, stem_stride = ENCODERS[name]
    return ResNet(blocks, widths, stem_stride, channels, norm)


def projection_head(features: int, dim: int, norm: bool = False) -> nn.Sequential:
    """Features (N, features) to embeddings (N, dim): one hidden layer, as in SimCLR and MoCo v2.

    It is thrown away after training: what is evaluated is what goes into it. `norm`: a batch norm without
    weights at its end, so that each dimension has mean 0 and variance 1 over a batch.
    """
    checks.whole("features", features, 1)
    checks.whole("dim", dim, 1)
    checks.kind("norm", norm, bool, "True or False")
    layers = [nn.Linear(features, features), nn.ReLU(True), nn.Linear(features, dim)]
    return nn.Sequential(*layers, *([nn.BatchNorm1d(dim, affine=False)] if norm else []))


def _check_input(x: Tensor, first: nn.Module) -> None:
    """Refuse what the first convolution would fail on, in words of its own."""
    assert isinstance(first, nn.Conv2d)
    good = isinstance(x, Tensor) and x.ndim == 4 and x.is_floating_point() and x.shape[1] == first.in_channels
    if not good or 0 in x.shape or (x.dtype != first.weight.dtype and not torch.is_autocast_enabled(x.device.type)):
        checks.refuse("images", x, f"{first.weight.dtype} of shape (N, {first.in_channels}, H, W), none of them 0")
