"""The formulas of a card, which stand between dollar signs: as HTML for MathJax, and as plain words."""

from __future__ import annotations

import re
from html import escape

FORMULA = re.compile(r"\$([^$]+)\$")
SIGNS = {
    "log": "log", "exp": "exp", "min": "min", "max": "max", "sqrt": "√", "sum": "Σ", "tau": "τ", "theta": "θ",
    "gamma": "γ", "lambda": "λ", "kappa": "κ", "cdot": "·", "times": "×", "le": "≤", "ge": "≥", "approx": "≈",
    "to": "→", "leftarrow": "←", "infty": "∞",
}  # fmt: skip


def mathjax(text: str) -> str:
    r"""HTML of ``text``, escaped; each formula between \( and \), which MathJax and Anki render."""
    return FORMULA.sub(r"\\(\1\\)", escape(text, quote=False))


def plain(text: str) -> str:
    """``text`` for a terminal: formulas without dollar signs and braces, commands as signs."""
    return FORMULA.sub(lambda found: _plain(found.group(1)), text)


def _plain(formula: str) -> str:
    """One formula as plain words; a command that is not in ``SIGNS`` stays as it is."""
    signs = re.sub(r"\\([a-zA-Z]+) ?", lambda found: SIGNS.get(found.group(1), found.group(0)), formula)
    return re.sub(r"\\,|[{}]", "", signs)
