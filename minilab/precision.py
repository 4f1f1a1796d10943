"""Which number format the encoder runs in, and how memory is kept: measured and set at the start of a run."""

from __future__ import annotations

import ctypes
import sys
import time
from functools import lru_cache

import torch
from torch import nn

from minilab.encoder import build_encoder

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
IMAGES, ROUNDS = 256, 4  # of the measurement, about a second on two cores
GAIN = 1.5  # autocast must be this much faster, so that timing noise does not decide what a seed gives


def choose_precision(wanted: str, encoder: str, channels: int, size: tuple[int, int], device: torch.device) -> str:
    """The precision to train in: `wanted`, or for "auto" the faster of float32 and half precision here."""
    if wanted != "auto":
        return wanted
    return _fastest(encoder, channels, size, device, torch.get_num_threads())


@lru_cache
def _fastest(encoder: str, channels: int, size: tuple[int, int], device: torch.device, threads: int) -> str:
    """Measured once a process, so that all its runs agree. `threads` is part of the key only."""
    if device.type not in ("cpu", "cuda"):
        return "float32"
    half = "float16" if device.type == "cuda" and not torch.cuda.is_bf16_supported() else "bfloat16"
    with torch.random.fork_rng(devices=[]):  # measuring must not change what the seed gives
        network = build_encoder(encoder, channels).to(device)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        images = torch.rand(IMAGES, channels, *size, device=device)
    return half if _gain(network, images, DTYPES[half]) > GAIN else "float32"


def _gain(network: nn.Module, images: torch.Tensor, half: torch.dtype) -> float:
    """Seconds of a forward and backward pass in float32 over those in `half`: the best of each, in turn."""
    best = {torch.float32: float("inf"), half: float("inf")}
    for round_ in range(ROUNDS + 1):  # the first warms up
        for dtype in best:
            seconds = _seconds(network, images, dtype)
            best[dtype] = min(best[dtype], seconds) if round_ else best[dtype]
    return best[torch.float32] / best[half]


def _seconds(network: nn.Module, images: torch.Tensor, dtype: torch.dtype) -> float:
    _wait(images.device)
    start = time.perf_counter()
    with torch.autocast(images.device.type, dtype, enabled=dtype != torch.float32):
        network(images).float().square().mean().backward()
    _wait(images.device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def keep_freed_memory() -> None:
    """Ask glibc to keep freed memory: a training step frees and asks for the same blocks again.

    By default it returns them to the kernel, which must clear each page anew: about a tenth of a
    step on two cores. Elsewhere (macOS, Windows, musl) this does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, top_pad, mmap_threshold = -1, -2, -3
        mallopt(mmap_threshold, 32 << 20)  # the largest that glibc takes
        mallopt(trim_threshold, 1 << 30)
        mallopt(top_pad, 64 << 20)
