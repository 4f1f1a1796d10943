"""Small CIFAR ResNets and the projection head.

The encoder is He et al.'s basic-block ResNet (arXiv 1512.03385) with the stem that
SimCLR uses on CIFAR-10 (appendix B.9): one 3 x 3 convolution and no max-pool.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# name: (blocks in each of the four stages, width of the first stage, stride of the stem)
ENCODERS: dict[str, tuple[tuple[int, int, int, int], int, int]] = {
    "micro": ((1, 1, 1, 1), 8, 2),  # 0.08 M parameters: for tests
    "tiny": ((1, 1, 1, 1), 24, 2),  # 0.7 M: for two CPU cores
    "small": ((1, 1, 1, 1), 48, 2),  # 2.8 M
    "resnet10": ((1, 1, 1, 1), 64, 1),  # 4.9 M
    "resnet18": ((2, 2, 2, 2), 64, 1),  # 11 M: for a GPU
}


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with batch norm, and a shortcut around them."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels_in, H, W) to (N, channels, H / stride, W / stride)."""
        out = F.relu(self.norm1(self.conv1(x)), inplace=True)
        out = self.norm2(self.conv2(out))
        return F.relu(out + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    """Images (N, C, H, W) to features (N, 8 * width): the network that is kept after training."""

    def __init__(self, blocks: tuple[int, int, int, int], width: int, stem_stride: int, channels: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(channels, width, 3, stem_stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(True),
        ]
        channels_in = width
        for stage, count in enumerate(blocks):
            for index in range(count):
                stride = 2 if stage > 0 and index == 0 else 1
                layers.append(BasicBlock(channels_in, width * 2**stage, stride))
                channels_in = width * 2**stage
        self.layers = nn.Sequential(*layers)
        self.features = channels_in

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) to features (N, 8 * width)."""
        x = x.contiguous(memory_format=torch.channels_last)  # the faster layout, on CPUs and GPUs alike
        return self.layers(x).mean(dim=(2, 3))  # (N, C, H', W') -> (N, C)


def build_encoder(name: str, channels: int = 3) -> ResNet:
    """The encoder called `name`, for images with `channels` channels. Unknown names raise `ValueError`."""
    if name not in ENCODERS:
        raise ValueError(f"encoder is {name!r}; allowed: {', '.join(ENCODERS)}")
    blocks, width, stem_stride = ENCODERS[name]
    return ResNet(blocks, width, stem_stride, channels)


def projection_head(features: int, dim: int) -> nn.Sequential:
    """Features (N, features) to embeddings (N, dim): one hidden layer, as in SimCLR and MoCo v2.

    It is thrown away after training: what is evaluated is what goes into it.
    """
    return nn.Sequential(nn.Linear(features, features), nn.ReLU(True), nn.Linear(features, dim))
