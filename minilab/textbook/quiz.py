"""Multiple-choice questions as plain HTML and CSS: they need neither a kernel nor a script."""

from __future__ import annotations

import re
from html import escape
from itertools import count

from minilab.textbook.cards import Card, Choice, load_bank
from minilab.textbook.maths import mathjax

STYLE = """
.quiz{margin:1.5em 0;max-width:44em;color:inherit}
.quiz fieldset{margin:0 0 1.5em;padding:0;border:0;min-width:0}
.quiz legend{padding:0;margin:0 0 .5em;font-weight:600;color:inherit;font-size:inherit;line-height:1.45}
.quiz-option{display:grid;grid-template-columns:1.6em 1fr;align-items:baseline;padding:.3em 0}
.quiz-option input{width:1.05em;height:1.05em;margin:0;position:relative;top:.15em;accent-color:currentColor}
.quiz-option label{cursor:pointer;margin:0;font-weight:inherit}
.quiz-option input:focus-visible{outline:3px solid currentColor;outline-offset:3px}
.quiz-why{grid-column:2;display:none;margin:.25em 0 .35em;padding:.1em 0 .1em .8em;font-size:.94em;
border-left:3px double currentColor}
.quiz-right{border-left-style:solid}
.quiz-option input:checked~.quiz-why{display:block}
@media print{.quiz-why{display:block}}
"""

PREFIX = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_drawn = count()


def quiz(*ids: str) -> None:
    """Display the cards with these ids, in this order, as questions to answer by a click.

    Raises ``ValueError`` if no id is given, one is given twice, one is not in the bank, or one has no options.
    """
    from IPython.display import HTML, display  # only a notebook needs IPython

    display(HTML(quiz_html(*ids, prefix=f"quiz{next(_drawn)}")))


def quiz_html(*ids: str, prefix: str = "quiz") -> str:
    """The HTML that ``quiz`` displays. Every element id starts with ``prefix``."""
    if not ids or len(set(ids)) < len(ids):
        raise ValueError(f"quiz needs one or more different card ids, got {ids!r}")
    if not PREFIX.fullmatch(prefix):
        raise ValueError(f"prefix is {prefix!r}; allowed: a letter, then letters, digits and hyphens")
    bank = load_bank()
    unknown = [name for name in ids if name not in bank]
    if unknown:
        raise ValueError(f"no card has the id {unknown[0]!r}; there are {', '.join(sorted(bank))}")
    for name in ids:
        if not bank[name].choices:
            raise ValueError(
                f"the card {name!r} asks for a number, which needs a script to check; allowed: cards with choices"
            )
    questions = (_question(number, bank[name], f"{prefix}-{name}") for number, name in enumerate(ids, start=1))
    return f'<div class="quiz mathjax_process"><style>{STYLE}</style>{"".join(questions)}</div>'


def _question(number: int, card: Card, prefix: str) -> str:
    """One card as a group of radio buttons."""
    options = (
        _option(choice, group=prefix, name=f"{prefix}-{letter}")
        for letter, choice in zip("abcde", card.choices, strict=False)
    )
    log = f"<pre>{escape(card.context, quote=False)}</pre>" if card.context else ""
    return (
        f'<fieldset id="{prefix}"><legend>{number}. {mathjax(card.question)}</legend>{log}{"".join(options)}</fieldset>'
    )


def _option(choice: Choice, group: str, name: str) -> str:
    """One radio button, its label, and what is said once it is chosen."""
    verdict, kind = ("✓ Right.", "quiz-right") if choice.right else ("✗ Not quite.", "quiz-wrong")
    return (
        f'<div class="quiz-option"><input type="radio" name="{group}" id="{name}">'
        f'<label for="{name}">{mathjax(choice.text)}</label>'
        f'<p class="quiz-why {kind}"><strong>{verdict}</strong> {mathjax(choice.why)}</p></div>'
    )
