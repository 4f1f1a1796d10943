"""Pictures of a run, for the command line and the chapters: its curves, and what its features find alike."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from minilab import checks
from minilab.data import Images
from minilab.evaluation import extract
from minilab.losses import normalize
from minilab.recipe import Recipe
from minilab.records.store import Record


def nearest(bank: Tensor, queries: Tensor, count: int) -> Tensor:
    """Row numbers (M, count) of the `count` rows of `bank` (N, d) most alike each row of `queries` (M, d)."""
    checks.matrix("bank", bank)
    checks.matrix("queries", queries, dim=bank.shape[1])
    checks.whole("count", count, 1)
    return (normalize(queries) @ normalize(bank).T).topk(min(count, len(bank)), dim=1).indices


def draw_neighbours(
    axes: Any, encoder: nn.Module, images: Images, queries: int = 8, count: int = 6, bank: int = 5000
) -> float:
    """Draw one row a test image: the image, then its nearest training images, those of another class dimmed.

    Returns the share of such neighbours that are of the query's class, over the first 2,000 test
    images: the few that are shown would be too few to tell. `axes`: one matplotlib axes.
    """
    checks.kind("images", images, Images, "an Images")
    for name, number in (("queries", queries), ("count", count), ("bank", bank)):
        checks.whole(name, number, 1)
    train = extract(encoder, images.train[:bank])
    test, labels = images.test[:2000], images.test_labels[:2000]
    places = nearest(train, extract(encoder, test), count)
    alike = images.train_labels[places] == labels[:, None]  # (2000, count)
    share = float(alike.float().mean())
    chosen = _one_of_each(labels, queries)
    places, alike = places[chosen], alike[chosen]
    shown = images.train[places].float() / 255  # (queries, count, C, H, W)
    shown = torch.where(alike[..., None, None, None], shown, 0.4 * shown + 0.55)
    first = test[chosen].float()[:, None] / 255
    axes.imshow(_sheet(torch.cat([first, shown], dim=1)), interpolation="nearest")
    axes.set_axis_off()
    return share


def _one_of_each(labels: Tensor, count: int) -> Tensor:
    """Places of the first image of each class, in turn, `count` in all."""
    order = torch.argsort(labels, stable=True)
    by_class = [order[labels[order] == label] for label in labels.unique()]
    rounds = zip(*(places.tolist() for places in by_class), strict=False)
    return torch.tensor([place for turn in rounds for place in turn][:count])


def _sheet(images: Tensor) -> np.ndarray:
    """Images (rows, columns, C, H, W) in [0, 1] to one sheet (height, width, 3), white between them."""
    rows, columns, _, height, width = images.shape
    gap = 2
    sheet = torch.ones(rows * (height + gap) - gap, columns * (width + gap) + gap, 3)
    for row in range(rows):
        for column in range(columns):
            left = column * (width + gap) + (2 * gap if column else 0)  # the query stands apart
            top = row * (height + gap)
            image = images[row, column].permute(1, 2, 0).expand(height, width, 3)
            sheet[top : top + height, left : left + width] = image
    return sheet.numpy()


def draw_loss(axes: Any, history: list[dict[str, float]]) -> None:
    """Draw the loss of each epoch beside the loss of a network that knows nothing."""
    _check(history, "loss", "loss_reference")
    epochs = [entry["epoch"] for entry in history]
    axes.plot(epochs, [entry["loss"] for entry in history], marker="o", label="loss")
    axes.plot(epochs, [entry["loss_reference"] for entry in history], linestyle="--", label="log(negatives + 1)")
    axes.set(xlabel="epoch", ylabel="loss (nats)")
    axes.legend()


def draw_knn(axes: Any, history: list[dict[str, float]], chance: float | None = None) -> None:
    """Draw the kNN accuracy of each epoch, and that of a guess."""
    _check(history, "knn")
    axes.plot([entry["epoch"] for entry in history], [entry["knn"] for entry in history], marker="o", label="kNN")
    if chance is not None:
        axes.axhline(chance, linestyle=":", label="a guess")
    axes.set(xlabel="epoch", ylabel="kNN accuracy", ylim=(0, 1))
    axes.legend()


def draw_gauges(axes: Any, history: list[dict[str, float]]) -> None:
    """Draw spread and effective rank, each as a share of its first epoch's value."""
    _check(history, "spread", "effective_rank")
    epochs = [entry["epoch"] for entry in history]
    for name, marker in (("spread", "o"), ("effective_rank", "s")):
        axes.plot(epochs, [e[name] / max(history[0][name], 1e-9) for e in history], marker=marker, label=name)
    axes.set(xlabel="epoch", ylabel="relative to epoch 1")
    axes.set_ylim(bottom=0)
    axes.legend()


def by_setting(records: list[Record], field: str, figure: str = "knn") -> dict[Any, list[float]]:
    """The last epoch's `figure` of each record, by the value of the recipe's `field`: one number a seed, sorted."""
    checks.one_of("field", field, tuple(item.name for item in fields(Recipe)))
    if not isinstance(records, list) or not all(isinstance(record, Record) for record in records):
        checks.refuse("records", records, "a list of Record")
    found: dict[Any, list[float]] = {}
    for record in records:
        checks.one_of("figure", figure, tuple(record.history[-1]))
        found.setdefault(getattr(record.recipe, field), []).append(record.last(figure))
    return {setting: sorted(found[setting]) for setting in sorted(found, key=_place)}


def draw_settings(axes: Any, values: dict[Any, list[float]], label: str | None = None, **line: Any) -> None:
    """Draw a line through the means of `by_setting`, with a small mark for every seed; settings evenly spaced."""
    _check_settings("values", values)
    places = range(len(values))
    axes.plot(places, [float(np.mean(seeds)) for seeds in values.values()], label=label, **line)
    for place, seeds in zip(places, values.values(), strict=True):
        axes.plot([place] * len(seeds), seeds, "_", color=line.get("color", "black"), markersize=9)
    axes.set_xticks(places, [f"{setting:,}" if isinstance(setting, int) else str(setting) for setting in values])


def table_of_settings(columns: dict[str, dict[Any, list[float]]], head: str) -> str:
    """`by_setting` of several kinds of run as text: mean, then least to greatest over the seeds, and how many."""
    checks.kind("columns", columns, dict, "a dictionary of what by_setting returns")
    checks.kind("head", head, str, "a text")
    for name, values in columns.items():
        _check_settings(name, values)
    settings = sorted({setting for values in columns.values() for setting in values}, key=_place)
    lines = [f"{head:>10s}  " + "  ".join(f"{name:^24s}" for name in columns)]
    for setting in settings:
        cells = [_mean_and_spread(values.get(setting, [])) for values in columns.values()]
        shown = f"{setting:,}" if isinstance(setting, int) else str(setting)
        lines.append(f"{shown:>10s}  " + "  ".join(f"{cell:^24s}" for cell in cells))
    return "\n".join(lines)


def _mean_and_spread(seeds: list[float]) -> str:
    if not seeds:
        return "-"
    return f"{np.mean(seeds):.3f} ({min(seeds):.3f}-{max(seeds):.3f}, n={len(seeds)})"


def picture_of_history(recipe: Recipe, data: str, history: list[dict[str, float]]) -> Figure:
    """Three panels: loss, kNN and gauges by epoch. What `minilab show` draws."""
    checks.kind("recipe", recipe, Recipe, "a Recipe")
    _check(history, "knn", "loss", "loss_reference", "spread", "effective_rank")
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    loss, knn, gauges = figure.subplots(1, 3)
    draw_loss(loss, history)
    draw_knn(knn, history)
    draw_gauges(gauges, history)
    figure.suptitle(f"{recipe.method}, {data}: kNN {history[-1]['knn']:.3f} after {len(history)} epochs")
    return figure


def picture_of_run(recipe: Recipe, images: Images, encoder: nn.Module, history: list[dict[str, float]]) -> Figure:
    """What a run learned: its curves, and test images beside the training images it finds most alike."""
    checks.kind("recipe", recipe, Recipe, "a Recipe")
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.35))
    share = draw_neighbours(right, encoder, images)
    draw_knn(left, history, 1 / len(images.classes))
    left.set_title(f"{recipe.method} on {images.name}", fontsize=10)
    right.set_title(
        f"A test image and its nearest training images: {share:.0%} share its class (others faded)", fontsize=10
    )
    return figure


def _place(setting: Any) -> tuple[str, Any]:
    """For sorting settings of several types, such as a chunk of 32 and none: numbers, then the rest by its name."""
    return ("", setting) if isinstance(setting, (int, float)) else (type(setting).__name__, str(setting))


def _check(history: list[dict[str, float]], *names: str) -> None:
    """Raise `ValueError` unless `history` has one entry or more, each with its epoch and these figures."""
    good = isinstance(history, list) and history and all(isinstance(entry, dict) for entry in history)
    if not good:
        checks.refuse("history", history, "a list of one dictionary an epoch, one or more")
    for entry in history:
        for name in ("epoch", *names):
            checks.number(name, entry.get(name), -checks.MOST)


def _check_settings(name: str, values: dict[Any, list[float]]) -> None:
    good = isinstance(values, dict) and all(isinstance(seeds, list) and seeds for seeds in values.values())
    if not good:
        checks.refuse(name, values, "a dictionary of settings, each with the figures of one seed or more")
