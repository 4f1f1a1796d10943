"""Every exercise's check refuses the mistakes that are likely: two or more for each chapter, listed here."""

from __future__ import annotations

import re

import pytest
from test_chapters import CHAPTERS, cells, part

from minilab.textbook.sources import Chapter

EXERCISES = [chapter for chapter in CHAPTERS if not chapter.name.startswith("lookup/")]
# What stands in the place of the solution's body. `math` is there, as it is for the reader.
WRONG: dict[str, tuple[str, ...]] = {
    "basics/how-many": (
        "math.log(negatives) - loss",
        "math.log(negatives + 1) - loss",
        "max(0.0, math.log(negatives) - loss)",
    ),
    "basics/negatives": (
        "math.log((2 * batch - 2 if method == 'simclr' else queue))",
        "math.log(batch if method == 'simclr' else queue + 1)",
        "math.log(2 * batch - 1)",
    ),
    "basics/room-and-album": ("keys * dim * 4", "keys * dim", "keys * dim * bytes_a_number * 3 * 32 * 32"),
    "solid/in-batch": (
        "(row + batch, [r for r in range(2 * batch) if r not in (row, row + batch)])",
        "(row ^ 1, [r for r in range(2 * batch) if r not in (row, row ^ 1)])",
        "((row + batch) % (2 * batch), [r for r in range(2 * batch) if r != row])",
    ),
    "solid/key-encoder": ("queue / batch", "m * queue / batch", "(1 - m) * queue", "(1 - m) * batch / queue"),
    "solid/making-the-call": ("batch * (6 if method == 'simclr' else 6)", "batch * (4 if method == 'simclr' else 3)"),
    "solid/memory": (
        "batch // devices * bytes_of_view",
        "2 * batch // devices * bytes_of_view",
        "(2 if method == 'simclr' else 1) * batch * bytes_of_view",
    ),
    "solid/queue": ("rows + keys", "(keys + rows)[:size]", "(rows + keys)[:size]", "rows[len(keys):] + keys"),
    "deep/accumulation": (
        "2 * global_batch - 2",
        "2 * (global_batch // devices) - 2",
        "2 * (global_batch // chunks) - 2",
        "2 * (global_batch // (devices * chunks)) - 1",
    ),
    "deep/batch-norm": ("batch / groups / groups", "1 + (batch // groups - 1) / groups", "1"),
    "deep/beyond-negatives": ("math.log(batch - 1)", "-math.log(batch)", "-10.0"),
    "deep/directions": ("dim // 2", "dim", "max(2, (dim + 1) // 2)"),
    "deep/escape": (
        "math.log(1000) / (learning_rate * 2 * variance / temperature)",
        "math.log(1000) / (learning_rate * 2 * variance / temperature * negatives / (negatives + 1))",
        "1000 / (learning_rate * 2 * variance / temperature * negatives / (negatives + 1))",
    ),
    "deep/false-negatives": (
        "1 / len(counts)",
        "max(counts) / sum(counts)",
        "sum(c * c for c in counts) / sum(counts)",
    ),
    "deep/infinite-queue": (
        "math.exp(partner / temperature) / strangers / distance",
        "math.exp(partner / temperature) / math.expm1(distance)",
        "math.exp(partner) / strangers / math.expm1(distance)",
    ),
    "deep/low-pass": ("m", "m ** (batch / new_batch)", "1 - (1 - m) * new_batch / batch"),
    "deep/phases": ("2 / kappa", "2 / kappa * batch", "2 / kappa * batch * faster"),
    "deep/sharding": (
        "gradients[rank][rank * n : (rank + 1) * n]",
        "[sum(p[i] for p in gradients) / len(gradients) for i in range(rank * n, (rank + 1) * n)]",
        "[sum(p[i] for p in gradients) for i in range(n)]",
    ),
    "deep/time": (
        "queue",
        "min(queue, dim - 1)",
        "max(0, dim - 1 - 2 * batch - 2)",
        "max(0, dim - 1 - (2 * batch - 2))",
    ),
}


def test_every_exercise_has_two_wrong_solutions_or_more() -> None:
    assert set(WRONG) == {chapter.name for chapter in EXERCISES}
    assert all(len(set(wrong)) >= 2 for wrong in WRONG.values())


@pytest.mark.parametrize(
    ("chapter", "wrong"),
    [
        pytest.param(chapter, wrong, id=f"{chapter.name}: {wrong}")
        for chapter in EXERCISES
        for wrong in WRONG[chapter.name]
    ],
)
def test_a_wrong_solution_is_refused(chapter: Chapter, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    exercise = part(chapter, "Exercise")
    solution = re.search(r"```python\n(?:.*\n)*?def (\w+)(\(.*\)):", exercise)
    assert solution
    space: dict[str, object] = {}
    exec("import math\nfrom minilab.textbook import check", space)
    exec(f"def {solution[1]}{solution[2]}:\n    return {wrong}", space)
    exec([cell.source for cell in cells(chapter, "code") if cell.source in exercise][-1], space)
    assert "cases are right. First to look at:" in capsys.readouterr().out
