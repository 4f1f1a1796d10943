"""Which number format the encoder runs in, measured at the start of a run; float16's scaler; how memory is kept."""

from __future__ import annotations

import ctypes
import sys
import time
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from minilab import checks
from minilab.encoder import ENCODERS, build_encoder

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
IMAGES, ROUNDS = 256, 4  # of the measurement, about a second on two cores
GAIN = 1.5  # autocast must be this much faster, so that timing noise does not decide what a seed gives


def choose_precision(wanted: str, encoder: str, channels: int, size: tuple[int, int], device: torch.device) -> str:
    """The precision to train in: `wanted`, or for "auto" the faster of float32 and half precision here."""
    checks.one_of("precision", wanted, ("auto", *DTYPES))
    checks.one_of("encoder", encoder, tuple(ENCODERS))
    checks.whole("channels", channels, 1)
    checks.kind("device", device, torch.device, "a torch.device")
    if not isinstance(size, tuple) or len(size) != 2:
        checks.refuse("size", size, "(height, width)")
    for side in size:
        checks.whole("size", side, 1)
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


class Scaler(torch.amp.GradScaler):
    """torch's loss scaler for float16, which skips a step whose gradients overflowed without asking whether they did.

    torch's own reads that from the device, and so waits for it at every step. Here the step is made and, where
    gradients were not finite, taken back, all on the device; the numbers are the same. It costs one more copy of
    weights and momentum. Only float16 is too narrow for small gradients: in another precision it passes them through.
    """

    def __init__(self, device: str, precision: str) -> None:
        super().__init__(device, enabled=precision == "float16")

    def _maybe_opt_step(self, optimizer: Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        (overflow,) = optimizer_state["found_inf_per_device"].values()  # 1.0 or 0.0
        before = {tensor: tensor.detach().clone() for tensor in _changed_by(optimizer)}
        optimizer.step(*args, **kwargs)
        with torch.no_grad():
            for tensor in _changed_by(optimizer):  # a momentum that this step has begun was zero
                tensor.copy_(torch.where(overflow > 0, before.get(tensor, torch.zeros_like(tensor)), tensor))


def _changed_by(optimizer: Optimizer) -> list[Tensor]:
    """Weights and the optimiser's own tensors."""
    weights = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    own = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
    return [*weights, *own]


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
