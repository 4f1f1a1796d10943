"""The plane of momentum and queue age: a widget that lays a recorded run beside the linear system, with no kernel."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from minilab.checks import shown
from minilab.grids import grid
from minilab.records.store import Record
from minilab.spectra.phases import runaway_rate

HERE = Path(__file__).parent
DRIVES = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
FIRST = (1.0, 16)  # gamma and T of the cell that is open at the start
SHOWN = {"knn": "knn", "spread": "spread", "cosine": "embedding_cosine", "loss": "loss"}  # of a record's history


def plane(records: list[Record], drive: float = 0.2, first: tuple[float, int] = FIRST) -> None:
    """Display the plane of the grid `phases`, and below it a folded table, which needs no script.

    `records`: those of its runs that are recorded; cells without one say so. `drive`: where kappa starts, per step.
    `first`: gamma and T of the cell to open. Raises `ValueError` if a record is not of the grid, there is none, or
    drive or first is not on its axis.
    """
    from IPython.display import HTML, display  # only a notebook needs IPython

    display(widget(records, drive, first))
    display(HTML(still(records, drive)))


def widget(records: list[Record], drive: float = 0.2, first: tuple[float, int] = FIRST) -> Any:
    """The widget alone: an `anywidget.AnyWidget`."""
    import anywidget
    import traitlets

    class Plane(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = HERE / "plane.js"
        _css = HERE / "plane.css"
        cells: Any = traitlets.List().tag(sync=True)
        leaks: Any = traitlets.List().tag(sync=True)
        ages: Any = traitlets.List().tag(sync=True)
        steps: Any = traitlets.Int().tag(sync=True)
        drives: Any = traitlets.List().tag(sync=True)
        drive: Any = traitlets.Float().tag(sync=True)
        first: Any = traitlets.List().tag(sync=True)

    return Plane(**contents(records, drive, first))


def contents(records: list[Record], drive: float = 0.2, first: tuple[float, int] = FIRST) -> dict[str, Any]:
    """What the widget is given, as plain values: `cells, leaks, ages, steps, drives, drive, first`."""
    leaks, ages = axes()
    _check_drive(drive)
    if len(first) != 2 or first[0] not in leaks or first[1] not in ages:
        raise ValueError(f"first is {first!r}; allowed: one of {leaks} and one of {ages}")
    return {
        "cells": [_cell(record) for record in _chosen(records).values()],
        "leaks": leaks,
        "ages": ages,
        "steps": _steps(records[0]),
        "drives": sorted({*DRIVES, float(drive)}),
        "drive": float(drive),
        "first": list(first),
    }


def _check_drive(drive: float) -> None:
    if isinstance(drive, bool) or not isinstance(drive, (int, float)) or not 0 < drive <= 1:
        raise ValueError(f"drive is {shown(drive)}; allowed: above 0, at most 1")


def axes() -> tuple[list[float], list[int]]:
    """Values of gamma = 1 - m, largest first, and of the queue's age T = K / N in steps, of the grid `phases`."""
    places = [_place(cell.recipe) for cell in grid("phases").cells]
    return sorted({leak for leak, _, _ in places}, reverse=True), sorted({age for _, age, _ in places})


def _place(recipe: Any) -> tuple[float, int, bool]:
    """gamma, T and whether there is a final batch norm."""
    return round(1 - recipe.momentum, 6), recipe.queue // recipe.batch, recipe.head_norm


def _chosen(records: list[Record]) -> dict[tuple[float, int, bool], Record]:
    """One record for each place, that of the lowest seed; `ValueError` if one is of no place or there are none."""
    allowed = {(cell.recipe.method, cell.recipe.batch, *_place(cell.recipe)) for cell in grid("phases").cells}
    if not records:
        raise ValueError("records is []; allowed: one run of the grid 'phases' or more")
    for record in records:
        place = (record.recipe.method, record.recipe.batch, *_place(record.recipe))
        if place not in allowed or _steps(record) != _steps(records[0]):
            raise ValueError(f"records holds {record.recipe}; allowed: runs of the grid 'phases', equally long")
    ordered = sorted(records, key=lambda record: record.recipe.seed, reverse=True)
    return {_place(record.recipe): record for record in ordered}


def _steps(record: Record) -> int:
    return int(record.recipe.epochs * (record.data["images"] // record.recipe.batch))


def _cell(record: Record) -> dict[str, Any]:
    leak, age, norm = _place(record.recipe)
    history = {name: [entry[key] for entry in record.history] for name, key in SHOWN.items()}
    return {"leak": leak, "age": age, "norm": norm, "chance": record.history[-1]["loss_reference"], **history}


def still(records: list[Record], drive: float = 0.2) -> str:
    """kNN and loss minus log(K + 1) of every run at its end, and the predicted growth rate, as folded HTML."""
    _check_drive(drive)
    leaks, ages = axes()
    chosen = _chosen(records)
    lines: list[str] = []
    for title, value in (
        ("kNN accuracy", lambda record: f"{record.last('knn'):.3f}"),
        (
            "loss - log(K + 1)",
            lambda record: f"{record.last('loss') - record.last('loss_reference'):.2f}",
        ),
    ):
        for norm in (False, True):
            lines += [f"{title}, {'with' if norm else 'without'} a final norm", _head(ages)]
            for leak in leaks:
                found = [chosen.get((leak, age, norm)) for age in ages]
                cells = [value(record) if record else "-" for record in found]
                lines.append(_line(leak, cells))
            lines.append("")
    lines += [f"predicted growth a step, kappa = {drive:g}", _head(ages)]
    lines += [_line(leak, [f"{runaway_rate(leak, age, drive):.4f}" for age in ages]) for leak in leaks]
    lines += ["", "After the last epoch; -: not recorded.", "gamma = 1 - m; T = K / N, in steps."]
    return f"<details><summary>The plane as tables</summary><pre>{escape(chr(10).join(lines))}</pre></details>"


def _head(ages: list[int]) -> str:
    return f"{'gamma':>7s}" + "".join(f"{f'T = {age}':>9s}" for age in ages)


def _line(leak: float, cells: list[str]) -> str:
    return f"{leak:7g}" + "".join(f"{cell:>9s}" for cell in cells)
