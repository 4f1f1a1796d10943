"""Checks: each computes the size of an effect, from recorded runs or exactly, and says whether a verdict still stands.

A check is registered under a name, which `book/claims.yml` gives. It returns a `Finding`: the size in words, with its
spread and the number of runs, and whether what was found supports the verdict that names it. `claim_runs` and
`claim_sums` hold them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from minilab.records import Record, of_grid


@dataclass(frozen=True)
class Finding:
    """What a check found, and whether it supports the verdict."""

    text: str
    supported: bool


Read = Callable[[str], Sequence[Record]]  # the recorded runs of a grid, by its name
Check = Callable[[Read], Finding]
CHECKS: dict[str, Check] = {}


@functools.cache
def runs(grid: str) -> Sequence[Record]:
    """The recorded runs of a grid; none where none is recorded yet. An unknown name raises `ValueError`."""
    try:
        return of_grid(grid)
    except ValueError as fault:
        if "is recorded" not in str(fault):
            raise
        return ()


def from_runs(name: str) -> Callable[[Check], Check]:
    """Register a check that reads recorded runs."""

    def keep(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return keep


def exactly(name: str) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
    """Register a check that computes something and reads no run."""

    def keep(check: Callable[[], Finding]) -> Callable[[], Finding]:
        CHECKS[name] = lambda read: check()
        return check

    return keep


def mean(values: Iterable[float]) -> float:
    """The mean of one or more numbers; `ValueError` if there is none."""
    found = list(values)
    if not found:
        raise ValueError("values is []; allowed: one number or more")
    return sum(found) / len(found)


def seeds(values: Iterable[Sequence[float]]) -> str:
    """How many seeds the settings have: "1 seed each", "2 seeds each" or "1 to 3 seeds each"."""
    counts = sorted({len(found) for found in values})
    if not counts:
        raise ValueError("values is []; allowed: one setting or more")
    many = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return f"{many} seed{'' if counts[-1] == 1 else 's'} each"
