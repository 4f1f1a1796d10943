"""Checkpoints: the whole state of a run in one file, written aside and then renamed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from minilab.files import written_aside
from minilab.recipe import Recipe
from minilab.shortage import is_out_of_memory

FORMAT = 3
FIELDS = {
    "format": int, "recipe": dict, "data": str, "precision": str, "step": int, "seconds": float, "history": list,
    "curves": list, "losses": Tensor, "probe": dict, "method": dict, "optimizer": dict, "scaler": dict,
    "views_rng": Tensor, "global_rng": Tensor,
}  # fmt: skip
DAMAGED = "checkpoint {} is damaged or not a checkpoint; delete it to start anew"
MARK = b"minilab "  # then the SHA-256 of all before it: torch writes checksums but does not look at them


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write `state` (all of `FIELDS` but the format) to `path`; a kill while writing leaves the old file.

    Raises `OSError` naming the path if it cannot be written.
    """
    with written_aside(path) as file:
        hashed = Hashed(file)
        try:
            torch.save({"format": FORMAT, **state}, hashed)  # type: ignore[arg-type]  # no more than this is asked of it
        except RuntimeError:
            if hashed.fault is not None:  # which torch has hidden behind an error of its own
                raise hashed.fault from None
            raise
        file.write(MARK + hashed.digest.digest())


class Hashed:
    """A file to write to that keeps a SHA-256 of what was written, and the first error."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()
        self.fault: OSError | None = None

    def write(self, data: bytes) -> int:
        """Write `data` and count it in."""
        self.digest.update(data)
        try:
            return self.file.write(data)
        except OSError as error:
            self.fault = self.fault or error
            raise

    def flush(self) -> None:
        """Nothing: the file is flushed once it is whole."""


def load_checkpoint(path: Path, recipe: Recipe, fingerprint: str) -> dict[str, Any]:
    """The state in `path`, if it belongs to `recipe` and to the images with this fingerprint.

    Loaded with `weights_only=True`: a checkpoint from elsewhere cannot run code. Raises
    `ValueError` naming the file if one bit of it is wrong, or naming the field that differs.
    """
    _check_bytes(path)
    with refused(path):
        state = torch.load(path, map_location="cpu", weights_only=True)
    right = isinstance(state, dict) and set(state) == set(FIELDS) and state["format"] == FORMAT
    if not right or not all(isinstance(state[name], kind) for name, kind in FIELDS.items()):
        raise ValueError(f"checkpoint {path} is not one of this version (format {FORMAT}); delete it to start anew")
    for name, value in recipe.to_dict().items():
        if state["recipe"].get(name) != value:
            there = state["recipe"].get(name)
            raise ValueError(f"checkpoint {path} is of another recipe: {name} is {there!r} there and {value!r} here")
    if state["data"] != fingerprint:
        raise ValueError(f"checkpoint {path} is of other images: fingerprint {state['data']}, here {fingerprint}")
    with refused(path):
        _check_place(state, recipe.epochs)
    return state


def _check_place(state: dict[str, Any], epochs: int) -> None:
    steps, done = len(state["losses"]), state["step"]  # `losses`: of one epoch
    if not 0 <= done <= epochs * steps or not len(state["history"]) == len(state["curves"]) == done // steps:
        raise ValueError(f"step {done} is not where a run of {epochs} epochs of {steps} steps is saved")


def _check_bytes(path: Path) -> None:
    digest = hashlib.sha256()
    tail = len(MARK) + digest.digest_size
    with open(path, "rb") as file:
        left = path.stat().st_size - tail
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
        if file.read() != MARK + digest.digest():
            raise ValueError(DAMAGED.format(path))


@contextmanager
def refused(path: Path) -> Iterator[None]:
    """While what `path` holds is put to use: an error means that no run has saved it, a `ValueError` naming it."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # torch raises many kinds
        if is_out_of_memory(error):
            raise
        raise ValueError(DAMAGED.format(path)) from error
