"""The queue in motion: a widget in which keys enter, age and leave, with no kernel."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from minilab.checks import number, whole

HERE = Path(__file__).parent
START = {"keys": 4096, "batch": 256, "m": 0.99}


def album() -> None:
    """Display the queue in motion, and below it a folded table of ages, which needs no script."""
    from IPython.display import HTML, display  # only a notebook needs IPython

    display(widget())
    display(HTML(still()))


def widget() -> Any:
    """The widget alone: an `anywidget.AnyWidget`."""
    import anywidget
    import traitlets

    class Album(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = HERE / "album.js"
        _css = HERE / "album.css"
        start: Any = traitlets.Dict().tag(sync=True)

    return Album(start=START)


def moved(steps: int, momentum: float) -> float:
    """Share of a fixed gap between the encoders that the moving average closes in `steps` steps: 1 - m^steps.

    Raises `ValueError` if momentum is not from 0 to 1, or steps is no whole number.
    """
    number("momentum", momentum, 0.0, 1.0)
    whole("steps", steps, 0)
    return 1 - momentum**steps


def still() -> str:
    """Ages and what the key encoder has done since, as HTML."""
    lines = ["age in steps   share of a gap that the key encoder has closed", f"{'':15s}m = 0.9   m = 0.99   m = 0.999"]
    for steps in (1, 4, 16, 64, 256):
        shares = "".join(f"{moved(steps, m):>11.0%}" for m in (0.9, 0.99, 0.999))
        lines.append(f"{steps:12,} {shares}")
    return f"<details><summary>The same as a table</summary><pre>{escape(chr(10).join(lines))}</pre></details>"
