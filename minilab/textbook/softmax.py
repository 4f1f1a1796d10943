"""The softmax by temperature and number of negatives: a widget over real cosines, with no kernel."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from torch import Tensor

from minilab.checks import shown
from minilab.spectra.checks import above_zero
from minilab.spectra.repulsion import contrast, cosines

HERE = Path(__file__).parent
MOST = 4096  # negatives that a page carries: 11 kB
STEPS = 32767  # of a cosine from 0 to 1: two bytes each
TEMPERATURES = (
    0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15,
    0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0,
)  # fmt: skip
STILL = (0.05, 0.1, 0.2, 0.5, 1.0)  # of the table


def softmax_explorer(positive: float | Tensor, negatives: Tensor | Sequence[float], temperature: float = 0.1) -> None:
    """Display one query's softmax, with sliders for tau and K, and below it a folded table, which needs no script.

    `positive`: the query's cosine to its key. `negatives` (n,): to the others, in random order, for the slider takes
    the first K of them; n from 1 to 4096. `temperature`: where tau starts. Raises `ValueError` naming the argument.
    """
    from IPython.display import HTML, display  # only a notebook needs IPython

    display(widget(positive, negatives, temperature))
    display(HTML(still(positive, negatives, temperature)))


def widget(positive: float | Tensor, negatives: Tensor | Sequence[float], temperature: float = 0.1) -> Any:
    """The widget alone: an `anywidget.AnyWidget`."""
    import anywidget
    import traitlets

    class Softmax(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = HERE / "softmax.js"
        _css = HERE / "softmax.css"
        cosines: Any = traitlets.Unicode().tag(sync=True)
        temperatures: Any = traitlets.List().tag(sync=True)
        temperature: Any = traitlets.Float().tag(sync=True)

    return Softmax(**contents(positive, negatives, temperature))


def contents(positive: float | Tensor, negatives: Tensor | Sequence[float], temperature: float = 0.1) -> dict[str, Any]:
    """What the widget is given, as plain values: `cosines` (see `encode`), `temperatures, temperature`."""
    text = encode(positive, negatives)
    if not above_zero(temperature, 0.01, 1.0):
        raise ValueError(f"temperature is {shown(temperature)}; allowed: from 0.01 to 1")
    return {
        "cosines": text,
        "temperatures": sorted({*TEMPERATURES, float(temperature)}),
        "temperature": float(temperature),
    }


def encode(positive: float | Tensor, negatives: Tensor | Sequence[float]) -> str:
    """The cosines, the positive first, as two signed bytes each, low byte first, in base64."""
    alone: list[Any] = [positive]  # a number, or a tensor that holds one
    values = [*cosines("positive", alone).tolist(), *cosines("negatives", negatives).tolist()]
    if len(values) > MOST + 1:
        raise ValueError(f"negatives has {len(values) - 1} values; allowed: 1 to {MOST}")
    return base64.b64encode(struct.pack(f"<{len(values)}h", *(round(value * STEPS) for value in values))).decode()


def decode(text: str) -> tuple[float, list[float]]:
    """The positive and the negatives of `encode`, as the page sees them; `ValueError` if it is no such text."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError as error:  # and binascii's, which is one
        raise ValueError(f"text is {shown(text)}; allowed: what `encode` gives ({error})") from error
    if len(raw) % 2 or len(raw) < 4:
        raise ValueError(f"text holds {len(raw)} bytes; allowed: an even number, 4 or more")
    whole = struct.unpack(f"<{len(raw) // 2}h", raw)
    return whole[0] / STEPS, [n / STEPS for n in whole[1:]]


def still(positive: float | Tensor, negatives: Tensor | Sequence[float], temperature: float = 0.1) -> str:
    """The figures of some temperatures at all the negatives, and of some K at one temperature, as folded HTML."""
    contents(positive, negatives, temperature)  # which checks them
    plus, minus = decode(encode(positive, negatives))
    head = f"{'entropy':>8s}{'counts as':>11s}{'p+':>7s}{'pull':>7s}{'loss':>7s}"
    lines = [f"K = {len(minus):,} negatives", f"{'tau':>6s}{head}"]
    lines += [f"{tau:6g}{_row(plus, minus, tau)}" for tau in sorted({*STILL, temperature})]
    lines += ["", f"tau = {temperature:g}", f"{'K':>6s}{head}"]
    sizes = [16**power for power in range(4) if 16**power < len(minus)]
    lines += [f"{size:6,}{_row(plus, minus[:size], temperature)}" for size in [*sizes, len(minus)]]
    lines += ["", "Entropy of the negatives and loss in nats.", "Counts as: exp(entropy). Pull: (1 - p+) / tau."]
    return f"<details><summary>The same as a table</summary><pre>{escape(chr(10).join(lines))}</pre></details>"


def _row(positive: float, negatives: list[float], temperature: float) -> str:
    found = contrast(positive, negatives, temperature)
    return f"{found.entropy:8.2f}{found.effective:11,.1f}{found.positive:7.3f}{found.pull:7.2f}{found.loss:7.2f}"
