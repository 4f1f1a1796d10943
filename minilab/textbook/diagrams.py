"""Drawings of the two mechanisms, made for this book. Each takes an empty matplotlib axes."""

from __future__ import annotations

from typing import Any

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from minilab.textbook.style import COLOURS

PEOPLE = 6  # images in the room
PAGES = 9  # keys in the album


def draw_room(axes: Any) -> None:
    """SimCLR: one batch, everyone in two views; the anchor compares itself with all others."""
    _clear(axes, (0, 10), (0, 5.6))
    _frame(axes, 0.2, 0.3, 9.6, 4.4, "the room: this step's batch, N images in two views")
    for column in range(PEOPLE):
        for row in (0, 1):
            kind = "negative" if column else ("anchor" if row else "positive")
            _person(axes, 1.2 + 1.5 * column, 1.3 + 1.8 * row, kind)
    for column in range(1, PEOPLE):
        for row in (0, 1):
            _arrow(axes, (1.5, 3.1), (0.95 + 1.5 * column, 1.3 + 1.8 * row), "negative")
    _arrow(axes, (1.2, 2.8), (1.2, 1.65), "positive")
    axes.text(1.2, 0.62, "partner", ha="center", fontsize=8)
    axes.text(1.2, 3.62, "anchor", ha="center", fontsize=8)
    axes.text(6.0, 0.62, "2N − 2 negatives: all others, in both views", ha="center", fontsize=8)


def draw_album(axes: Any) -> None:
    """MoCo: a small batch, and an album of keys in which each new page pushes out the oldest."""
    _clear(axes, (0, 10), (0, 5.6))
    _frame(axes, 0.2, 0.3, 2.6, 4.4, "this step's batch")
    _person(axes, 1.5, 3.1, "anchor")
    _person(axes, 1.5, 1.3, "positive")
    _arrow(axes, (1.5, 2.8), (1.5, 1.65), "positive")
    axes.text(1.5, 3.62, "query", ha="center", fontsize=8)
    axes.text(1.5, 0.62, "its key", ha="center", fontsize=8)
    _frame(axes, 3.3, 1.6, 6.5, 3.1, "the album: K keys of earlier steps")
    for page in range(PAGES):
        left = 3.6 + 0.68 * page
        faded = 1 - 0.75 * page / (PAGES - 1)
        axes.add_patch(Rectangle((left, 2.6), 0.5, 0.9, color=COLOURS["queue-age"], alpha=faded, linewidth=0))
    _arrow(axes, (1.85, 3.1), (3.55, 3.1), "negative")
    axes.text(6.6, 2.0, "new  →  old", ha="center", fontsize=8)
    axes.add_patch(FancyArrowPatch((1.8, 1.2), (3.8, 2.55), arrowstyle="->", mutation_scale=9, color="black", lw=0.9))
    axes.text(3.1, 1.05, "pushed in after the step", fontsize=8)
    axes.text(9.7, 1.05, "the oldest leaves", ha="right", fontsize=8)
    axes.add_patch(FancyArrowPatch((9.2, 2.55), (9.6, 1.3), arrowstyle="->", mutation_scale=9, color="black", lw=0.9))


def _clear(axes: Any, x: tuple[float, float], y: tuple[float, float]) -> None:
    axes.set(xlim=x, ylim=y)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _frame(axes: Any, left: float, low: float, width: float, height: float, title: str) -> None:
    box = FancyBboxPatch((left, low), width, height, boxstyle="round,pad=0,rounding_size=.25", fill=False, lw=0.9)
    axes.add_patch(box)
    axes.text(left, low + height + 0.2, title, fontsize=9)


def _person(axes: Any, x: float, y: float, kind: str) -> None:
    """A mark for one view: its shape tells its part, and so does its colour."""
    colour = "black" if kind == "anchor" else COLOURS[kind]
    marker = {"anchor": "o", "positive": "^", "negative": "x"}[kind]
    axes.plot([x], [y], marker, color=colour, markersize=9, markeredgewidth=2)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
    style = "-|>" if kind == "positive" else "->"
    width, alpha = (1.6, 1.0) if kind == "positive" else (0.8, 0.55)
    patch = FancyArrowPatch(start, end, arrowstyle=style, mutation_scale=9, color=COLOURS[kind], lw=width, alpha=alpha)
    axes.add_patch(patch)
