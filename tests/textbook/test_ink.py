"""Text on a coloured cell can be read, whatever the colour."""

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from minilab.textbook.ink import ink_on


def luminance(rgb):
    """WCAG 2's relative luminance."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@given(st.tuples(*[st.floats(0, 1)] * 3))
def test_ink_can_be_read_on_any_colour(colour):
    low, high = sorted(luminance(rgb) for rgb in (colour, to_rgb(ink_on((*colour, 1.0)))))
    assert (high + 0.05) / (low + 0.05) >= 4.5
