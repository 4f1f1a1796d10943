"""What comes in is checked at the door and refused in one form everywhere: NAME is VALUE; allowed: WHAT.

Checks of tensors look at type and shape only, which costs a training step nothing. Those that read values say so, and
no step calls them.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NoReturn

import torch
from torch import Tensor

MOST = sys.float_info.max


def refuse(name: str, value: object, allowed: str) -> NoReturn:
    """Raise the `ValueError` that all checks raise."""
    raise ValueError(f"{name} is {shown(value)}; allowed: {allowed}")


def shown(value: object) -> str:
    """A value in a message: type and shape of a tensor, else its repr, cut to 200 characters."""
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    try:
        text = repr(value)
    except ValueError:  # a whole number of more than 4,300 digits
        text = f"of type {type(value).__name__}, and too long to show"
    return text if len(text) <= 200 else f"{text[:200]}…"


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse what is not one of these strings."""
    if not isinstance(value, str) or value not in allowed:
        refuse(name, value, ", ".join(allowed))


def whole(name: str, value: object, low: int, high: float = math.inf) -> None:
    """Refuse what is no `int` from `low` to `high`; True and 2.0 are none."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        refuse(name, value, f"a whole number from {low}" + (f" to {high}" if high < math.inf else ""))


def number(name: str, value: Any, low: float, high: float = MOST, *, open_low: bool = False) -> None:
    """Refuse what is no finite number from `low` to `high`; `open_low`: nor `low` itself."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    if not good or (open_low and value == low):
        start = f"above {low:g}" if open_low else f"from {low:g}"
        to = "" if high == MOST else f"{', at most' if open_low else ' to'} {high:g}"
        refuse(name, value, f"a{' finite' if high == MOST else ''} number {start}{to}")


def temperature(value: object) -> None:
    """Refuse what is no temperature: below 1e-6 a cosine over it would soon overflow float32."""
    number("temperature", value, 1e-6, 100)


def kind(name: str, value: object, wanted: Any, words: str) -> None:
    """Refuse what is no instance of `wanted`, a class or several; `words` say what that is."""
    if not isinstance(value, wanted):
        refuse(name, value, words)


def device(value: Any) -> torch.device:
    """The device that `value` is or names; refuse what names none. Whether the machine has it is not asked."""
    try:
        if isinstance(value, (str, torch.device)):
            return torch.device(value)
    except RuntimeError:
        pass
    refuse("device", value, 'a torch.device, or the name of one, such as "cpu" or "cuda"')


def matrix(name: str, value: Any, rows: int = 1, dim: int | None = None) -> None:
    """Refuse what is no floating-point tensor (N, dim) with `rows` rows or more; `dim` None: any, 1 or more."""
    good = isinstance(value, Tensor) and value.ndim == 2 and value.is_floating_point()
    if not good or len(value) < rows or value.shape[1] != (dim or max(1, value.shape[1])):
        refuse(name, value, f"floating-point numbers of shape (N, {dim or 'dim'}), N >= {rows}")


def labels(name: str, value: object, rows: int) -> None:
    """Refuse what is no int64 tensor (rows,)."""
    if not isinstance(value, Tensor) or value.dtype != torch.int64 or value.shape != (rows,):
        refuse(name, value, f"torch.int64 of shape ({rows},), one a row")


def pairs(value: Any, shape: str = "(2N, C, H, W)") -> None:
    """Refuse what are no views of images, two of each: floating-point numbers of this shape, or of "(2N, ...)"."""
    good = isinstance(value, Tensor) and value.ndim > 1 and value.is_floating_point()
    if not good or 0 in value.shape or len(value) % 2 or (value.ndim != 4 and "..." not in shape):
        refuse("views", value, f"floating-point numbers of shape {shape}, none of them 0")


def finite(name: str, value: Tensor) -> None:
    """Refuse a tensor with an infinite value or a NaN. Reads the values: not for a training step."""
    if not bool(value.isfinite().all()):
        raise ValueError(f"{name} holds a value that is not finite; allowed: finite numbers")


def floats(images: Tensor, channels: tuple[int, ...] = (1, 3)) -> int:
    """Channels of images (N, C, H, W), N >= 0; refuse what is no such images, or none of floats. `channels` (): any."""
    good = isinstance(images, Tensor) and images.ndim == 4 and images.is_floating_point()
    if not good or (channels and images.shape[1] not in channels):
        refuse("images", images, f"floats of shape (N, {' or '.join(map(str, channels)) or 'C'}, H, W)")
    return images.shape[1]


def ascending(rows: Tensor, count: int) -> None:
    """Refuse what are no row numbers (n,) of a tensor of `count` rows, in ascending order. Reads the values."""
    good = isinstance(rows, Tensor) and rows.ndim == 1 and rows.dtype == torch.int64
    if not good or bool((rows.diff() <= 0).any()) or bool(((rows < 0) | (rows >= count)).any()):
        refuse("rows", rows, f"torch.int64 of shape (n,), ascending, from 0 to {count - 1}")


def boxes(value: Tensor, images: Tensor) -> None:
    """Refuse what are no crop boxes (N, 5) of images (N, C, H, W): top, left, height, width, mirrored. Reads them."""
    count, (height, width) = len(images), images.shape[2:]
    if not isinstance(value, Tensor) or value.dtype != torch.int64 or value.shape != (count, 5):
        refuse("boxes", value, f"torch.int64 of shape ({count}, 5)")
    top, left, h, w, mirrored = value.unbind(dim=1)
    outside = (value < 0).any(dim=1) | (h < 1) | (w < 1) | (mirrored > 1)
    outside |= (top > height - h) | (left > width - w)
    if bool(outside.any()):
        refuse("boxes", value[outside][0].tolist(), f"top, left, height, width within {height} x {width}; 0 or 1")
