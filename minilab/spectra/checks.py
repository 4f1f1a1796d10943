"""Tests of single arguments, which hold for any value whatever: used at the boundary of public functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minilab.checks import shown


def finite(value: Any, most: float = 1e100) -> bool:
    """Whether `value` is a finite number of at most `most` in size: Python's, numpy's, or a tensor of one.

    A text or a truth value is none. `most` keeps squares and ratios of what passes within float64.
    """
    if isinstance(value, (bool, str, bytes, bytearray)) or (isinstance(value, (Tensor, np.ndarray)) and value.ndim):
        return False
    try:
        return math.isfinite(value) and abs(float(value)) <= most
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return False


def above_zero(value: Any, least: float = 1e-100, most: float = 1e100) -> bool:
    """Whether `value` is a finite number above 0, and neither so small nor so large that its square is lost."""
    return finite(value, most) and float(value) >= least


def whole(value: Any, least: int, most: int) -> bool:
    """Whether `value` is a whole number from `least` to `most`; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(least <= value <= most)


def series(name: str, values: Any, least: int = 1, most: float = 1e100) -> np.ndarray:
    """`values` as float64 (n,); `ValueError` naming `name` unless they are `least` or more finite numbers."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ValueError(f"{name} is {shown(values)}; allowed: finite numbers") from error
    if found.ndim != 1 or len(found) < least:
        raise ValueError(f"{name} has the shape {found.shape}; allowed: one dimension, {least} numbers or more")
    if not (np.abs(found) <= most).all():
        raise ValueError(f"{name} is {shown(values)}; allowed: finite numbers, at most {most:g} in size")
    return found


def matrix(name: str, rows: Any, least: int = 1, most: float = 1e100) -> None:
    """Raise `ValueError` naming `name` unless `rows` is a finite tensor (n, d) of floats, n of `least` or more."""
    if not isinstance(rows, Tensor) or not rows.is_floating_point():
        raise ValueError(f"{name} is {shown(rows)}; allowed: a tensor of floating-point numbers")
    if rows.ndim != 2 or len(rows) < least or not rows.shape[1]:
        raise ValueError(f"{name} has the shape {tuple(rows.shape)}; allowed: (n, d), n of {least} or more")
    if not bool((rows.detach().abs() <= min(most, torch.finfo(rows.dtype).max)).all()):
        raise ValueError(f"{name} holds nan, or a number above {most:g} in size; allowed: finite numbers")


def pairs(name: str, rows: int, least: int = 4) -> None:
    """Raise `ValueError` naming `name` unless it has an even number of rows, two views an image."""
    if rows < least or rows % 2:
        raise ValueError(f"{name} has {rows} rows; allowed: an even number, {least} or more (two views an image)")
