"""Text on the coloured cells of a picture."""

from __future__ import annotations

from collections.abc import Sequence


def ink_on(colour: Sequence[float]) -> str:
    """Near-black or white, whichever is easier to read on `colour` (red, green, blue from 0 to 1): 4.5 to 1 or better.

    Near-black, because a figure's pure black follows the theme of the page, and the colour below does not.
    Raises `ValueError` if it is no colour.
    """
    if len(colour) < 3 or not all(0 <= part <= 1 for part in colour[:3]):
        raise ValueError(f"colour is {colour!r}; allowed: red, green and blue, each from 0 to 1")
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    luminance = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))  # WCAG 2
    return "#010101" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "#ffffff"
