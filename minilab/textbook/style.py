"""One look for every figure of the book.

The five colours stand here and in ``book/site/css/book.css``; a test keeps them equal.
Each has a contrast of at least 3:1 on the light and on the dark page, and stays apart
from the others for the common kinds of colour blindness. Colour is still never the only
sign: ``LINES`` gives each method its own dash and marker.
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from cycler import cycler

COLOURS: dict[str, str] = {
    "simclr": "#2368b8",
    "moco": "#dd5f14",
    "positive": "#0f9d80",
    "negative": "#d058b0",
    "queue-age": "#7d6b3c",
}

LINES: dict[str, dict[str, Any]] = {
    "simclr": {"color": COLOURS["simclr"], "linestyle": "-", "marker": "o"},
    "moco": {"color": COLOURS["moco"], "linestyle": (0, (5, 2)), "marker": "s"},
    "positive": {"color": COLOURS["positive"], "linestyle": "-", "marker": "^"},
    "negative": {"color": COLOURS["negative"], "linestyle": (0, (1, 1.5)), "marker": "x"},
    "queue-age": {"color": COLOURS["queue-age"], "linestyle": (0, (4, 1.5, 1, 1.5)), "marker": "D"},
}


def use_book_style() -> None:
    """Set matplotlib's defaults to the book's look, for this process.

    Backgrounds are clear and lines are black, which ``show`` turns into the text colour of
    the page, so that one figure serves the light and the dark theme.
    """
    mpl.rcParams.update(
        {
            "figure.figsize": (6.4, 3.4),
            "figure.dpi": 96,
            "figure.facecolor": "none",
            "figure.constrained_layout.use": True,
            "font.size": 10,
            "axes.facecolor": "none",
            "axes.titlesize": 10.5,
            "axes.titlelocation": "left",
            "axes.labelsize": 10,
            "axes.linewidth": 0.7,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": False,
            "axes.prop_cycle": cycler(color=list(COLOURS.values())),
            "grid.linewidth": 0.5,
            "grid.alpha": 0.25,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "xtick.major.width": 0.7,
            "ytick.major.width": 0.7,
            "lines.linewidth": 1.7,
            "lines.markersize": 4.5,
            "legend.frameon": False,
            "legend.fontsize": 9,
            "image.interpolation": "none",
            "savefig.facecolor": "none",
            "svg.fonttype": "none",
            "svg.hashsalt": "minilab",
        }
    )
