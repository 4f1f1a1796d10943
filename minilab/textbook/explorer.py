"""The explorer: a widget that lays two recorded runs side by side, epoch by epoch, with no kernel.

One widget for every grid: pass the grid's records and the field of the recipe that it varies.
"""

from __future__ import annotations

from dataclasses import fields
from html import escape
from pathlib import Path
from typing import Any

from minilab.checks import one_of
from minilab.data import CLASSES
from minilab.pictures import by_setting, draw_settings, table_of_settings
from minilab.recipe import Recipe
from minilab.records.store import Record

HERE = Path(__file__).parent
METHODS = {"simclr": "SimCLR", "moco": "MoCo"}
SHOWN = (
    "knn", "loss", "loss_reference", "loss_std", "spread", "effective_rank", "embedding_cosine", "key_cosine", "lag",
)  # fmt: skip


def explore(records: list[Record], field: str, label: str, first: tuple[str, str] | None = None) -> None:
    """Display the explorer of `records`, which differ in the recipe's `field`, and below it a still summary.

    `label`: the field in words. `first`: the two settings to start with, as the menus name them (else the least
    and the greatest). Where scripts are off, and in print, the summary is what remains: a figure and a table.
    Raises `ValueError` if there are fewer than two settings, or `first` names one that there is not.
    """
    from IPython.display import HTML, display  # only a notebook needs IPython

    display(widget(records, field, label, first))
    display(HTML(still(records, field, label)))


def widget(records: list[Record], field: str, label: str, first: tuple[str, str] | None = None) -> Any:
    """The widget alone: an `anywidget.AnyWidget`."""
    import anywidget
    import traitlets

    class Explorer(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = HERE / "explorer.js"
        _css = HERE / "explorer.css"
        title: Any = traitlets.Unicode().tag(sync=True)
        runs: Any = traitlets.List().tag(sync=True)
        labels: Any = traitlets.List().tag(sync=True)
        classes: Any = traitlets.List().tag(sync=True)
        first: Any = traitlets.List().tag(sync=True)

    return Explorer(**contents(records, field, label, first))


def contents(records: list[Record], field: str, label: str, first: tuple[str, str] | None = None) -> dict[str, Any]:
    """What the widget is given, as plain values: `title, runs, labels, classes, first`."""
    check(records, field)
    both = len({record.recipe.method for record in records}) > 1
    ordered = sorted(records, key=lambda r: (r.recipe.method != "simclr", getattr(r.recipe, field), r.recipe.seed))
    runs = [_run(record, field, both) for record in ordered]
    settings = list(dict.fromkeys(run["setting"] for run in runs))
    if len(settings) < 2:
        raise ValueError(f"the records have the settings {settings} of {field}; allowed: two or more")
    chosen = list(first) if first is not None else [settings[0], settings[-1]]
    for setting in chosen:
        if setting not in settings:
            raise ValueError(f"first names {setting!r}; allowed: {', '.join(settings)}")
    labels = ordered[0].labels
    if any(record.labels != labels for record in ordered):
        raise ValueError("the records map different images; allowed: records of one set of images")
    return {"title": label, "runs": runs, "labels": labels, "classes": _classes(ordered[0]), "first": chosen}


def check(records: list[Record], field: str) -> None:
    """Raise `ValueError` unless `field` is one of the recipe, and its values in `records` can be put in order."""
    one_of("field", field, tuple(each.name for each in fields(Recipe)))
    for record in records:
        one_of("method of a record", record.recipe.method, tuple(METHODS))
    kinds = {type(getattr(record.recipe, field)) for record in records}
    if len(kinds - {int, float}) + bool(kinds & {int, float}) > 1:
        raise ValueError(f"{field} is of several kinds in the records; allowed: all numbers, or all texts")
    if type(None) in kinds:
        raise ValueError(f"{field} is None in the records; allowed: a number, a text, or true and false")


def _run(record: Record, field: str, both: bool) -> dict[str, Any]:
    value = getattr(record.recipe, field)
    name = f"{value:,}" if isinstance(value, int) else str(value)
    return {
        "setting": f"{METHODS[record.recipe.method]}, {name}" if both else name,
        "seed": record.recipe.seed,
        "method": record.recipe.method,
        "history": [{key: entry[key] for key in SHOWN if key in entry} for entry in record.history],
        "curves": record.curves,
    }


def _classes(record: Record) -> list[str]:
    if record.data["name"].startswith("CIFAR-10"):
        return list(CLASSES)
    return [f"concept {number}" for number in range(max(record.labels) + 1)]


def still(records: list[Record], field: str, label: str) -> str:
    """The summary as HTML: last-epoch kNN of every setting, as a figure and a table."""
    from matplotlib import pyplot as plt

    from minilab.textbook.figures import figure_html
    from minilab.textbook.style import LINES

    check(records, field)
    methods = [method for method in METHODS if any(record.recipe.method == method for record in records)]
    values = {
        METHODS[method]: by_setting([record for record in records if record.recipe.method == method], field)
        for method in methods
    }
    figure, axis = plt.subplots(figsize=(4.6, 3.0))
    for method in methods:
        draw_settings(axis, values[METHODS[method]], label=METHODS[method], **LINES[method])
    axis.set(xlabel=label, ylabel="kNN accuracy")
    if len(methods) > 1:
        axis.legend()
    alt = f"kNN accuracy after the last epoch against {label}, for {' and '.join(values)}. The table has the values."
    caption = f"kNN after the last epoch against {label}: a dash for every seed, a line through the means."
    text = escape(table_of_settings(values, field))
    return (
        f"{figure_html(figure, alt, caption)}<details><summary>The same as a table</summary><pre>{text}</pre></details>"
    )
