"""Checkpoints: the whole state of a run in one file, written aside and then renamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from minilab.files import written_aside
from minilab.recipe import Recipe

FORMAT = 2
FIELDS = {
    "format", "recipe", "data", "precision", "step", "seconds", "history", "curves", "losses", "probe",
    "method", "optimizer", "scaler", "views_rng", "global_rng",
}  # fmt: skip


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write `state` (all of `FIELDS` but the format) to `path`; a kill while writing leaves the old file."""
    with written_aside(path) as file:
        torch.save({"format": FORMAT, **state}, file)


def load_checkpoint(path: Path, recipe: Recipe, fingerprint: str) -> dict[str, Any]:
    """The state in `path`, if it belongs to `recipe` and to the images with this fingerprint.

    Loaded with `weights_only=True`: a checkpoint from elsewhere cannot run code. Raises
    `ValueError` naming the file if it is damaged, or naming the field that differs.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # torch raises many kinds for a damaged file
        raise ValueError(f"checkpoint {path} is damaged or not a checkpoint; delete it to start anew") from error
    if not isinstance(state, dict) or set(state) != FIELDS or state["format"] != FORMAT:
        raise ValueError(f"checkpoint {path} is not one of this version (format {FORMAT}); delete it to start anew")
    for name, value in recipe.to_dict().items():
        if state["recipe"].get(name) != value:
            there = state["recipe"].get(name)
            raise ValueError(f"checkpoint {path} is of another recipe: {name} is {there!r} there and {value!r} here")
    if state["data"] != fingerprint:
        raise ValueError(f"checkpoint {path} is of other images: fingerprint {state['data']}, here {fingerprint}")
    return state
