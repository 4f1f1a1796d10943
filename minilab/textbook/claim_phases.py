"""The checks that read the grid `phases`: gamma = 1 - m against Q/B, the age of MoCo's queue in steps.

They read the runs without batch norm at the end of the head, and say how many of them are recorded. kNN is the last
epoch's. A fast key encoder is one with gamma of at least `FAST`, a slow one with at most `SLOW`.
"""

from __future__ import annotations

from itertools import pairwise

from minilab.grids import grid
from minilab.textbook.findings import Finding, Read, from_runs, mean

SLOW, FAST = 0.05, 0.5
EDGE = (0.02, 0.05)  # of gamma, between which an old queue begins to fail
OLD = 16  # steps
BINS = (0.1, 1.0, 10.0)  # of gamma * Q / B


def _plane(read: Read) -> tuple[dict[tuple[int, float], float], str]:
    """kNN by (age of the queue in steps, gamma) without batch norm at the head's end, and how much is recorded."""
    records = [r for r in read("phases") if not r.recipe.head_norm]
    values: dict[tuple[int, float], list[float]] = {}
    for r in records:
        values.setdefault((r.recipe.queue // r.recipe.batch, 1 - r.recipe.momentum), []).append(r.last("knn"))
    cells = [cell for cell in grid("phases").cells if not cell.recipe.head_norm]
    return {place: mean(found) for place, found in values.items()}, f"{len(records)} of {len(cells)} runs recorded"


def _sides(read: Read) -> tuple[dict[int, tuple[float, float]], str]:
    """For each age with both: mean kNN of a fast key encoder, and of a slow one."""
    plane, how_many = _plane(read)
    sides = {}
    for age in sorted({age for age, _ in plane}):
        fast = [knn for (there, leak), knn in plane.items() if there == age and leak >= FAST]
        slow = [knn for (there, leak), knn in plane.items() if there == age and leak <= SLOW]
        if fast and slow:
            sides[age] = (mean(fast), mean(slow))
    return sides, how_many


@from_runs("phases-fast-fails")
def _phases_fast_fails(read: Read) -> Finding:
    sides, how_many = _sides(read)
    told = "; ".join(f"{fast:.3f} against {slow:.3f} (Q/B = {age})" for age, (fast, slow) in sides.items())
    text = f"kNN with γ at least {FAST} against at most {SLOW}: {told or 'not recorded yet'}; {how_many}"
    worst = sides[max(sides)] if sides else (0.0, 0.0)
    return Finding(text, bool(sides) and all(f < s for f, s in sides.values()) and worst[1] - worst[0] > 0.05)


@from_runs("phases-no-minimum")
def _phases_no_minimum(read: Read) -> Finding:
    """The framework asks for a longest enough queue; the runs ask for a short enough one."""
    sides, how_many = _sides(read)
    ages = sorted(sides)
    told = ", ".join(f"{sides[age][1]:.3f} ({age})" for age in ages)
    text = f"kNN with γ at most {SLOW} by Q/B: {told or 'not recorded yet'}; {how_many}"
    return Finding(text, len(ages) > 1 and sides[ages[0]][1] > max(sides[age][1] for age in ages) - 0.03)


@from_runs("phases-old-fails")
def _phases_old_fails(read: Read) -> Finding:
    sides, how_many = _sides(read)
    ages = sorted(sides)
    told = ", ".join(f"{sides[age][0]:.3f} ({age})" for age in ages)
    text = f"kNN with γ at least {FAST} by Q/B: {told or 'not recorded yet'}; {how_many}"
    return Finding(text, len(ages) > 1 and sides[ages[-1]][0] < sides[ages[0]][0] - 0.03)


@from_runs("phases-product")
def _phases_product(read: Read) -> Finding:
    plane, how_many = _plane(read)
    edges = (0.0, *BINS, float("inf"))
    bins = {
        low: mean(inside)
        for low, high in pairwise(edges)
        if (inside := [knn for (age, leak), knn in plane.items() if low <= leak * age * (1 + 1e-9) < high])
    }
    told = ", ".join(f"{knn:.3f} (from {low:g})" for low, knn in bins.items())
    values = list(bins.values())
    falls = len(values) > 2 and all(after < before + 0.02 for before, after in pairwise(values))
    return Finding(f"kNN by γ Q/B: {told or 'not recorded yet'}; {how_many}", falls and values[-1] < values[0] - 0.05)


@from_runs("phases-edge")
def _phases_edge(read: Read) -> Finding:
    """With an old queue gamma alone decides: every slower key encoder beats every faster one, whatever the age."""
    plane, how_many = _plane(read)
    slow = [knn for (age, leak), knn in plane.items() if age >= OLD and leak <= EDGE[0] * (1 + 1e-9)]
    fast = [knn for (age, leak), knn in plane.items() if age >= OLD and leak >= EDGE[1] * (1 - 1e-9)]
    if not slow or not fast:
        return Finding(f"not recorded yet; {how_many}", False)
    text = (
        f"kNN with queues of {OLD} steps and more: at least {min(slow):.3f} with γ at most {EDGE[0]}, "
        f"at most {max(fast):.3f} with γ at least {EDGE[1]}; {how_many}"
    )
    return Finding(text, min(slow) > max(fast) + 0.02)
