"""The five colours: the same in the figures and on the page, visible on both grounds, told apart."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from minilab.textbook.style import COLOURS, LINES

CSS = (Path(__file__).resolve().parents[2] / "book" / "site" / "css" / "book.css").read_text(encoding="utf-8")
# Machado et al. 2009, full severity, for linear RGB.
SEEN_WITH = {
    "no deficiency": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    """A hex colour as linear RGB in 0 … 1."""
    share = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    low, high = sorted(float(linear(colour) @ TO_XYZ[1]) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Linear RGB as CIE L*a*b*, in which distance is about difference as seen."""
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def grounds() -> list[str]:
    """The page's background in each theme."""
    return re.findall(r"--page: (#[0-9a-f]{6})", CSS)


def test_css_and_figures_use_the_same_colours() -> None:
    for name, colour in COLOURS.items():
        assert re.findall(rf"--{name}: (\S+);", CSS) == [colour]


@pytest.mark.parametrize("name", list(COLOURS))
def test_each_colour_shows_on_both_grounds(name: str) -> None:
    assert len(grounds()) == 2
    for ground in grounds():
        assert contrast(COLOURS[name], ground) >= 3


@pytest.mark.parametrize("sight", list(SEEN_WITH))
def test_colours_stay_apart(sight: str) -> None:
    seen = {name: lab(np.array(SEEN_WITH[sight]) @ linear(colour)) for name, colour in COLOURS.items()}
    for first, second in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[first] - seen[second]) > 10, f"{first} and {second} look alike"


def test_colour_is_never_the_only_sign() -> None:
    assert set(LINES) == set(COLOURS)
    assert all(line["color"] == COLOURS[name] for name, line in LINES.items())
    assert len({str(line["linestyle"]) + line["marker"] for line in LINES.values()}) == len(LINES)
    assert len({line["marker"] for line in LINES.values()}) == len(LINES)
