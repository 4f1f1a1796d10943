"""The check behind an exercise: it shows the first cases that fail, with what was given and expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

SHOWN = 2  # failing cases: enough to think, not enough to fit the answer to the cases


def check(function: Callable[..., Any], cases: Sequence[tuple[tuple[Any, ...], Any]]) -> bool:
    """Call `function` on each case's arguments, print how many answers are right, and return whether all are.

    `cases`: pairs of arguments and expected answer. Numbers may differ by one part in a million.
    """
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
    call = f"{function.__name__}({', '.join(map(repr, arguments))})"
    try:
        given = function(*arguments)
    except Exception as error:  # a reader's function may raise anything; that is an answer too
        return f"{call} raised {type(error).__name__}: {error}; expected {expected!r}"
    if given is ...:
        return f"{call} is not written yet; expected {expected!r}"
    numbers = isinstance(given, (int, float)) and isinstance(expected, (int, float))
    if math.isclose(given, expected, rel_tol=1e-6) if numbers else given == expected:
        return ""
    return f"{call} gave {given!r}; expected {expected!r}"
