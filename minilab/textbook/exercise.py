"""The check behind an exercise: it shows the first cases that fail, with what was given and expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minilab.checks import shown

SHOWN = 2  # failing cases: enough to think, not enough to fit the answer to the cases


def check(function: Callable[..., Any], cases: Sequence[tuple[tuple[Any, ...], Any]]) -> bool:
    """Call `function` on each case's arguments, print how many answers are right, and return whether all are.

    `cases`: pairs of arguments and expected answer. Numbers may differ by one part in a million.
    Raises `ValueError` if there are no cases; whatever the function does is an answer.
    """
    if not cases:
        raise ValueError("cases is empty; allowed: one or more, for no answer is right of none")
    wrong = [line for arguments, expected in cases if (line := _complaint(function, arguments, expected))]
    if not wrong:
        print(f"All {len(cases)} cases are right.")
        return True
    print(f"{len(cases) - len(wrong)} of {len(cases)} cases are right. First to look at:")
    for line in wrong[:SHOWN]:
        print(f"  {line}")
    return False


def _complaint(function: Callable[..., Any], arguments: tuple[Any, ...], expected: Any) -> str:
    """What is wrong with one answer; empty if nothing is."""
    call = f"{getattr(function, '__name__', 'the function')}({', '.join(map(repr, arguments))})"
    try:
        given = function(*arguments)
    except Exception as error:  # a reader's function may raise anything; that is an answer too
        return f"{call} raised {type(error).__name__}: {error}; expected {expected!r}"
    if given is ...:
        return f"{call} is not written yet; expected {expected!r}"
    return "" if _is_right(given, expected) else f"{call} gave {shown(given)}; expected {expected!r}"


def _is_right(given: Any, expected: Any) -> bool:
    try:
        if isinstance(given, (int, float)) and isinstance(expected, (int, float)):
            return math.isclose(given, expected, rel_tol=1e-6)
        return bool(given == expected)
    except Exception:  # a number that no float can hold; arrays, whose == is not one answer
        return False
