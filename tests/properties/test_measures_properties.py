"""Evaluation, gauges, pictures, grids, optimisers: right beside loops for good input, refused by name for other."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from strategies import (
    NO_TEMPERATURE,
    NO_TENSORS,
    Door,
    covers,
    exempt,
    few,
    many,
    no_labels,
    no_matrix,
    no_number,
    no_text,
    no_whole,
    one,
    other_than,
    refusals,
    refused,
    some,
)
from torch import Tensor, nn

from minilab import bench, evaluation, fit, geometry, grids, optimizers, pictures, precision
from minilab.encoder import ENCODERS
from minilab.images import Images
from minilab.recipe import METHODS, PRECISIONS, Recipe
from minilab.records import Record
from minilab.shapes import shapes
from minilab.training import build_method


@st.composite
def clouds(draw: st.DrawFn, rows: int | None = None, dim: int | None = None, least: int = 1) -> Tensor:
    """Finite features (N, d), float64."""
    shape = rows or draw(st.integers(least, 12)), dim or draw(st.integers(1, 6))
    dice = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    return torch.randn(shape, generator=dice, dtype=torch.float64) * draw(st.sampled_from([1e-3, 1.0, 100.0]))


def unit(rows: Tensor) -> list[list[float]]:
    return [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in rows.tolist()]


# --- evaluation


@covers(evaluation.knn)
@some
@given(st.data())
def test_knn_votes_as_the_loop_does(data: st.DataObject) -> None:
    bank, dim = data.draw(st.integers(1, 10)), data.draw(st.integers(1, 5))
    asked, k, temperature = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 14)), data.draw(st.floats(1e-2, 10))
    rows, queries = data.draw(clouds(bank, dim)), data.draw(clouds(asked, dim))
    labels = data.draw(st.lists(st.integers(0, 3), min_size=bank, max_size=bank))
    right = data.draw(st.lists(st.integers(0, 9), min_size=asked, max_size=asked))
    expected, sure = 0, True
    for query, label in zip(unit(queries), right, strict=True):
        cosines = [sum(a * b for a, b in zip(query, row, strict=True)) for row in unit(rows)]
        order = sorted(range(bank), key=lambda i: -cosines[i])
        votes: Counter[int] = Counter()
        for i in order[:k]:
            votes[labels[i]] += math.exp((cosines[i] - cosines[order[0]]) / temperature)
        best = sorted(votes.values(), reverse=True)
        sure &= len(best) < 2 or best[0] - best[1] > 1e-6  # with d = 1, many cosines are equal
        sure &= k >= bank or cosines[order[k - 1]] - cosines[order[k]] > 1e-9
        expected += max(votes, key=votes.__getitem__) == label
    found = evaluation.knn(rows, torch.tensor(labels), queries, torch.tensor(right), k, temperature)
    assert 0 <= found <= 1 and (not sure or found == expected / asked)


@covers(evaluation.linear_probe)
@few
@given(st.integers(2, 4), st.integers(2, 12), st.integers(0, 2**31), st.sampled_from([torch.float32, torch.float64]))
def test_a_line_is_found_where_there_is_one(classes: int, each: int, seed: int, kind: torch.dtype) -> None:
    dice = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat(each)
    features = 10 * torch.eye(classes, dtype=kind)[labels] + torch.randn(len(labels), classes, generator=dice).to(kind)
    assert evaluation.linear_probe(features, labels, features, labels, 1e-6) == 1.0
    assert evaluation.linear_probe(features, labels, features, (labels + 1) % classes, 1e-6) == 0.0


@covers(evaluation.extract, evaluation.evaluate)
@few
@given(st.integers(1, 9), st.integers(2, 6), st.integers(1, 20), st.integers(2, 20), st.integers(1, 20))
def test_features_come_out_the_same_in_any_batch_and_nothing_is_left_changed(
    train: int, test: int, bank: int, asked: int, batch: int
) -> None:
    images = shapes(2, train, test, size=8)
    encoder = build_method(Recipe("simclr", encoder="micro")).encoder.train()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    features = evaluation.extract(encoder, images.train, batch=batch)
    assert features.shape == (train, 64) and features.dtype == torch.float32
    assert torch.allclose(features, evaluation.extract(encoder, images.train), atol=1e-5)
    found = evaluation.evaluate(encoder, images, bank, asked)
    queries, labels = evaluation.extract(encoder, images.test[:asked]), images.test_labels[:asked]
    assert found["knn"] == evaluation.knn(features[:bank], images.train_labels[:bank], queries, labels)
    assert found["spread"] == pytest.approx(geometry.spread(queries), abs=1e-4)
    assert encoder.training and all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


@covers(geometry.spread, geometry.effective_rank, geometry.alignment, geometry.uniformity)
@some
@given(st.data())
def test_gauges_equal_the_loop_and_do_not_see_lengths_or_rotations(data: st.DataObject) -> None:
    features = data.draw(clouds(least=2))
    count, dim = features.shape
    partners = data.draw(clouds(count, dim))
    z, other = unit(features), unit(partners)
    columns = list(zip(*z, strict=True))
    deviations = [math.sqrt(sum((x - sum(c) / count) ** 2 for x in c) / count) for c in columns]
    assert geometry.spread(features) == pytest.approx(sum(deviations) / dim * math.sqrt(dim), abs=1e-6)
    squares = [math.dist(a, b) ** 2 for a, b in zip(z, other, strict=True)]
    assert geometry.alignment(features, partners) == pytest.approx(sum(squares) / count, abs=1e-6)
    terms = [math.exp(-2 * math.dist(z[i], z[j]) ** 2) for i in range(count) for j in range(i + 1, count)]
    assert geometry.uniformity(features) == pytest.approx(math.log(sum(terms) / len(terms)), abs=1e-6)
    rank = geometry.effective_rank(features)
    assert 1 - 1e-9 <= rank <= min(count, dim) + 1e-9
    values = np.linalg.svd(np.array(z), compute_uv=False)
    shares = [value / values.sum() for value in values if value > 0]
    assert rank == pytest.approx(math.exp(-sum(share * math.log(share) for share in shares)), abs=1e-6)
    lengths = torch.rand(count, 1, dtype=torch.float64) + 0.5
    turn = torch.linalg.qr(torch.randn(dim, dim, dtype=torch.float64)).Q
    assert geometry.effective_rank(features * lengths @ turn) == pytest.approx(rank, abs=1e-6)
    assert geometry.uniformity(features * lengths @ turn) == pytest.approx(geometry.uniformity(features), abs=1e-6)


# --- optimisers and precision


@covers(optimizers.schedule)
@many
@given(st.data())
def test_the_schedule_rises_to_1_and_falls_to_0(data: st.DataObject) -> None:
    steps = data.draw(st.integers(1, 10**6))
    warmup = data.draw(st.one_of(st.floats(0, steps), st.integers(0, steps)))
    step, later = sorted([data.draw(st.integers(0, steps)), data.draw(st.integers(0, steps))])
    first, second = optimizers.schedule(step, steps, warmup), optimizers.schedule(later, steps, warmup)
    assert 0 <= first <= 1 and (first <= second + 1e-12 if later <= warmup else True)
    assert first >= second - 1e-12 if step >= warmup else True
    assert optimizers.schedule(warmup, steps, warmup) == 1
    assert optimizers.schedule(steps, steps, warmup) == (1 if warmup == steps else 0)


@covers(optimizers.LARS, optimizers.LARS.step, optimizers.build_optimizer)
@few
@given(st.data())
def test_lars_moves_as_the_formula_says(data: st.DataObject) -> None:
    momentum, trust = data.draw(st.floats(0, 1)), data.draw(st.floats(1e-6, 1))
    decay, rate, adapt = data.draw(st.floats(0, 1)), data.draw(st.floats(0, 10)), data.draw(st.booleans())
    start = data.draw(clouds(3, 2)) * data.draw(st.sampled_from([0, 1]))
    weights, expected, velocity = nn.Parameter(start.clone()), start.clone(), torch.zeros(3, 2).double()
    group = {"params": [weights], "lr": rate, "weight_decay": decay, "adapt": adapt}
    optimizer = optimizers.LARS([group], momentum, trust)
    for _ in range(3):
        weights.grad = data.draw(clouds(3, 2)) * data.draw(st.sampled_from([0, 1]))
        direction = weights.grad + decay * expected
        size, pull = float(expected.norm()), float(direction.norm())
        if adapt and size and pull:
            direction = direction * (trust * size / pull)
        velocity = momentum * velocity + direction
        expected = expected - rate * velocity
        optimizer.step()
        assert torch.allclose(weights.data, expected, rtol=1e-6, atol=1e-9)
    plain = optimizers.LARS([nn.Parameter(torch.ones(2))])  # no groups: as if adapt were set
    plain.param_groups[0]["params"][0].grad = torch.ones(2)
    plain.step()
    layers = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    layers[0].bias.requires_grad_(False)
    built = optimizers.build_optimizer(layers, Recipe("simclr", optimizer="lars", weight_decay=decay))
    kinds = [(len(group["params"]), group["weight_decay"], group["adapt"]) for group in built.param_groups]
    assert kinds == [(1, decay, True), (2, 0.0, False)]
    sgd = optimizers.build_optimizer(layers, Recipe("simclr", weight_decay=decay))
    assert sgd.param_groups[0]["weight_decay"] == decay and len(sgd.param_groups[0]["params"]) == 3


@covers(precision.choose_precision)
@few
@given(st.sampled_from([name for name in PRECISIONS if name != "auto"]), st.sampled_from(list(ENCODERS)))
def test_a_precision_that_is_asked_for_is_taken(wanted: str, encoder: str) -> None:
    assert precision.choose_precision(wanted, encoder, 3, (32, 32), torch.device("cpu")) == wanted


# --- what fits, and grids


@covers(fit.check_fit)
@some
@given(st.integers(2, 40), st.integers(1, 40), st.integers(1, 4), st.integers(1, 3), st.integers(1, 60))
def test_a_recipe_fits_or_is_refused_by_the_field(batch: int, train: int, channels: int, test: int, queue: int) -> None:
    pixels, labels = torch.zeros(train, channels, 2, 2, dtype=torch.uint8), torch.zeros(train, dtype=torch.int64)
    images = Images("i", pixels, labels, pixels[:1].repeat(test, 1, 1, 1), labels[:1].repeat(test), ("a",))
    recipe = Recipe("moco", batch=batch, queue=queue)
    wrong = [("channels", channels in (2, 4)), ("test", test < 2), ("batch", batch > train)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        field = next((name for name, is_wrong in wrong if is_wrong), None)
        if field:
            refused(fit.check_fit, recipe, images, named=field)
        else:
            fit.check_fit(recipe, images)
            assert bool(told) == (queue > train - batch)


@covers(grids.grid, grids.Grid, grids.Cell)
@few
@given(st.sampled_from(list(grids.GRIDS)), st.integers(1, 10**7), st.integers(1, 64))
def test_names_of_cells_are_apart(name: str, images: int, concepts: int) -> None:
    cells = grids.grid(name).cells
    assert len({cell.name for cell in cells}) == len(cells) == len(set(map(repr, cells)))
    other = [grids.Cell(cell.recipe, "shapes", images, concepts).name for cell in cells[:3]]
    assert len(set(other)) == len(other) and not set(other) & {cell.name for cell in cells if cell.images != images}


# --- pictures and the bench's table


@covers(pictures.nearest)
@some
@given(st.data())
def test_the_nearest_are_the_loop_s(data: st.DataObject) -> None:
    bank, queries = data.draw(clouds(dim=4)), data.draw(clouds(dim=4))
    count = data.draw(st.integers(1, 15))
    found = pictures.nearest(bank, queries, count)
    assert found.shape == (len(queries), min(count, len(bank)))
    for query, places in zip(unit(queries), found.tolist(), strict=True):
        cosines = [sum(a * b for a, b in zip(query, row, strict=True)) for row in unit(bank)]
        expected = sorted(cosines, reverse=True)[:count]
        assert [cosines[place] for place in places] == pytest.approx(expected, abs=1e-6)
        assert len(set(places)) == len(places)


FIGURES = ("loss", "loss_reference", "knn", "spread", "effective_rank")


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, float]]:
    count = draw(st.integers(1, 5))
    return [{"epoch": n + 1} | {name: draw(st.floats(0, 10)) for name in FIGURES} for n in range(count)]


@covers(pictures.draw_loss, pictures.draw_knn, pictures.draw_gauges, pictures.picture_of_history)
@few
@given(histories(), st.none() | st.floats(0, 1))
def test_curves_hold_the_history(history: list[dict[str, float]], chance: float | None) -> None:
    drawn = [(pictures.draw_loss, ("loss", "loss_reference")), (pictures.draw_gauges, ("spread", "effective_rank"))]
    for draw, names in drawn:
        axes = Figure().subplots()
        draw(axes, history)
        for line, name in zip(axes.lines, names, strict=True):
            assert line.get_xdata().tolist() == [entry["epoch"] for entry in history]
            whole = max(history[0][name], 1e-9) if draw is pictures.draw_gauges else 1
            assert line.get_ydata() == pytest.approx([entry[name] / whole for entry in history])
    axes = Figure().subplots()
    pictures.draw_knn(axes, history, chance)
    assert axes.lines[0].get_ydata().tolist() == [entry["knn"] for entry in history]
    assert len(axes.lines) == (1 if chance is None else 2)
    figure = pictures.picture_of_history(Recipe("moco"), "some data", history)
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss (nats)", "kNN accuracy", "relative to epoch 1"]


SETTINGS = st.one_of(st.none(), st.integers(1, 10**6), st.floats(0, 1), st.sampled_from(["sgd", "lars"]))
VALUES = st.dictionaries(SETTINGS, st.lists(st.floats(0, 1), min_size=1, max_size=3), min_size=1, max_size=5)


@covers(pictures.draw_settings, pictures.table_of_settings)
@few
@given(VALUES, VALUES)
def test_settings_are_drawn_and_told_each_once(first: dict[Any, list[float]], second: dict[Any, list[float]]) -> None:
    axes = Figure().subplots()
    pictures.draw_settings(axes, first, "a label")
    means = [sum(seeds) / len(seeds) for seeds in first.values()]
    assert axes.lines[0].get_ydata() == pytest.approx(means)
    assert [len(line.get_ydata()) for line in axes.lines[1:]] == [len(seeds) for seeds in first.values()]
    lines = pictures.table_of_settings({"one": first, "two": second}, "setting").splitlines()
    assert len(lines) == 1 + len({*first, *second})
    assert sum(line.count("n=") for line in lines) == len(first) + len(second)


def record(**recipe: Any) -> Record:
    entry = {"epoch": 1, "knn": 0.5, "loss": 1.0}
    return Record(Recipe("moco", epochs=1, **recipe), {}, {}, "cpu", "float32", [entry], [0], [{}])


@covers(pictures.by_setting)
@few
@given(st.lists(st.sampled_from([None, 16, 32, 128]), min_size=1, max_size=8))
def test_records_are_sorted_by_any_field(chunks: list[int | None]) -> None:
    found = pictures.by_setting([record(chunk=chunk) for chunk in chunks], "chunk")
    assert {chunk: len(values) for chunk, values in found.items()} == Counter(chunks)
    numbers = [chunk for chunk in found if chunk is not None]
    assert numbers == sorted(numbers) and list(found)[: len(numbers)] == numbers


@covers(bench.table)
@few
@given(st.data())
def test_the_table_has_every_figure(data: st.DataObject) -> None:
    number = st.floats(0.001, 10**6)
    row = lambda: {  # noqa: E731
        "images_per_second": data.draw(number), "limit_images_per_second": data.draw(number),
        "fraction_of_limit": data.draw(number), "precision": "float32", "milliseconds": {"step": data.draw(number)},
    }  # fmt: skip
    figures = {
        **{method: row() for method in METHODS},
        "views_per_second": data.draw(number), "queue_step_ratio": {"65536": data.draw(number)},
        "peak_megabytes": {"moco by queue": {"1024": data.draw(number)}},
        "knn": {"seconds": data.draw(number), "megabytes": data.draw(number)},
    }  # fmt: skip
    text = bench.table(json.loads(json.dumps(figures)))
    assert all(method in text for method in METHODS) and f"{figures['views_per_second']:,.0f} views/s" in text
    for part in figures:
        refused(bench.table, {name: value for name, value in figures.items() if name != part}, named="figures")


exempt(bench.bench, "measures for minutes; test_bench.py runs its parts, wrong arguments are refused below")
exempt(pictures.draw_neighbours, "draws what it sees; test_pictures.py holds its share, refusals below")
exempt(pictures.picture_of_run, "puts draw_neighbours beside draw_knn; test_pictures.py draws it, refusals below")


# --- refusals

NETWORK = build_method(Recipe("simclr", encoder="micro")).encoder
NO_NETWORK, NO_SET, NO_RECIPE = other_than(nn.Module), other_than(Images), other_than(Recipe)
INFINITE = one(torch.full((4, 4), math.nan), torch.tensor([[math.inf] * 4] * 4))
NO_FEATURES = st.one_of(no_matrix(), INFINITE)


def classified() -> dict[str, Any]:
    rows, labels = torch.eye(4), torch.tensor([0, 1, 0, 1])
    return {"bank": rows, "bank_labels": labels, "queries": rows, "labels": labels}


CLASSIFIED = {
    "bank": NO_FEATURES.filter(lambda x: not isinstance(x, Tensor) or x.dim() != 2 or x.shape[1] != 0),
    "bank_labels": st.one_of(no_labels(4), one(torch.tensor([-1, 0, 0, 0]), torch.tensor([0, 0, 0, 2**40]))),
    "queries": st.one_of(no_matrix(1, 4), INFINITE, one(torch.ones(4, 4).double())),
    "labels": no_labels(4),
}
test_evaluation_refusals = refusals(
    Door(evaluation.knn, classified, {**CLASSIFIED, "k": no_whole(1), "temperature": NO_TEMPERATURE}),
    Door(evaluation.linear_probe, classified, {**CLASSIFIED, "weight_decay": no_number(0, 1e6)}),
    Door(evaluation.extract, lambda: {"encoder": NETWORK, "images": torch.zeros(2, 3, 8, 8).byte()},
         {"encoder": NO_NETWORK, "batch": no_whole(1),
          "images": one(*NO_TENSORS, torch.ones(3), torch.zeros(0, 3, 8, 8), torch.zeros(2, 2, 8, 8))}),
    Door(evaluation.evaluate, lambda: {"encoder": NETWORK, "images": shapes(2, 3, 3, size=8)},
         {"encoder": NO_NETWORK, "images": st.one_of(NO_SET, st.builds(shapes, st.just(2), st.just(2), st.just(1))),
          "bank": no_whole(1).filter(lambda x: x is not None), "test": no_whole(2).filter(lambda x: x is not None)}),
)  # fmt: skip
NO_CLOUD = st.one_of(
    INFINITE, one(*NO_TENSORS, torch.ones(4), torch.ones(1, 4), torch.ones(4, 0), torch.ones(4, 4) * 1j)
)
test_geometry_refusals = refusals(
    *(Door(gauge, dict, {"features": NO_CLOUD}) for gauge in (geometry.spread, geometry.effective_rank)),
    Door(geometry.uniformity, dict, {"features": NO_CLOUD}),
    Door(geometry.alignment, lambda: {"features": torch.eye(4), "partners": torch.eye(4)},
         {"features": NO_CLOUD, "partners": st.one_of(NO_CLOUD, one(torch.ones(4, 3)))}),
)  # fmt: skip
test_optimizer_refusals = refusals(
    Door(optimizers.schedule, lambda: {"step": 1, "steps": 10, "warmup": 2},
         {"step": no_number(0, 10), "steps": no_number(2), "warmup": no_number(0, 10)}),
    Door(optimizers.build_optimizer, lambda: {"method": NETWORK, "recipe": Recipe("simclr")},
         {"method": st.one_of(NO_NETWORK, st.builds(nn.ReLU)), "recipe": NO_RECIPE}),
    Door(lambda **wrong: optimizers.LARS([torch.ones(2)], **wrong), dict,
         {"momentum": no_number(0, 1), "trust": no_number(0, low_too=True)}),
    Door(optimizers.LARS([torch.ones(2)]).step, dict, {"closure": one(len, 1, "x")}),
    Door(precision.choose_precision, lambda: {"wanted": "float32", "encoder": "micro", "channels": 3, "size": (8, 8),
                                              "device": torch.device("cpu")},
         {"wanted": no_text(*PRECISIONS), "device": one(None, 1, "cpu"), "encoder": no_text(*ENCODERS),
          "channels": no_whole(1), "size": one(None, 8, (8,), (8, 0), (8, 8.0), "88", [8, 8])},
         {"wanted": "precision"}),
)  # fmt: skip
test_grid_refusals = refusals(
    Door(fit.check_fit, lambda: {"recipe": Recipe("simclr", batch=2), "images": shapes(2, 2, 2)},
         {"recipe": NO_RECIPE, "images": NO_SET}),
    Door(grids.grid, dict, {"name": no_text(*grids.GRIDS)}, {"name": "grid"}),
    Door(grids.Grid, lambda: {"question": "Why?"},
         {"question": other_than(str), "cells": one(None, 1, "x", [1], (), {})}),
    Door(grids.Cell, lambda: {"recipe": Recipe("simclr")},
         {"recipe": NO_RECIPE, "source": no_text(*grids.SOURCES), "images": no_whole(1, 10**7),
          "concepts": no_whole(1, 64)}),
)  # fmt: skip
ENTRY = {"epoch": 1, **dict.fromkeys(FIGURES, 1.0)}
NO_HISTORY = one(None, 1, "x", [], {}, [1], (ENTRY,))
AXES = Figure().subplots()
NO_VALUES = one(None, 1, "x", [1.0], {"a": []}, {"a": 1.0}, {"a": None})
test_picture_refusals = refusals(
    Door(pictures.nearest, lambda: {"bank": torch.ones(4, 4), "queries": torch.ones(2, 4), "count": 1},
         {"bank": no_matrix(), "queries": no_matrix(1, 4), "count": no_whole(1)}),
    *(Door(draw, lambda: {"axes": AXES}, {"history": NO_HISTORY})
      for draw in (pictures.draw_loss, pictures.draw_knn, pictures.draw_gauges)),
    *(Door(draw, lambda: {"axes": AXES}, {"history": one([{**ENTRY, name: None}], [{**ENTRY, name: "x"}])},
           {"history": name})
      for draw, name in ((pictures.draw_loss, "loss"), (pictures.draw_knn, "knn"), (pictures.draw_gauges, "spread"))),
    Door(pictures.picture_of_history, lambda: {"recipe": Recipe("moco"), "data": "x", "history": [ENTRY]},
         {"recipe": NO_RECIPE, "history": NO_HISTORY}),
    Door(pictures.picture_of_run,
         lambda: {"recipe": Recipe("moco"), "images": shapes(2, 3, 3), "encoder": NETWORK, "history": [ENTRY]},
         {"recipe": NO_RECIPE, "images": NO_SET, "encoder": NO_NETWORK, "history": NO_HISTORY}),
    Door(pictures.draw_neighbours, lambda: {"axes": AXES, "encoder": NETWORK, "images": shapes(2, 3, 3)},
         {"encoder": NO_NETWORK, "images": NO_SET, "queries": no_whole(1), "count": no_whole(1), "bank": no_whole(1)}),
    Door(pictures.by_setting, lambda: {"records": [record()], "field": "queue"},
         {"records": one(None, 1, "x", [1], record()), "field": no_text(*Recipe("moco").to_dict()),
          "figure": st.text().filter(lambda text: text not in ("epoch", "knn", "loss"))}),
    Door(pictures.draw_settings, lambda: {"axes": AXES}, {"values": NO_VALUES}),
    Door(pictures.table_of_settings, lambda: {"columns": {"one": {1: [1.0]}}, "head": "h"},
         {"columns": one(None, 1, "x", [1]), "head": other_than(str)}),
    Door(lambda one: pictures.table_of_settings({"one": one}, "h"), dict, {"one": NO_VALUES}),
    Door(bench.bench, dict,
         {"encoder": no_text(*ENCODERS), "batch": no_whole(2, 10**6), "precision": no_text(*PRECISIONS)}),
    Door(bench.table, dict, {"figures": other_than()}),
)  # fmt: skip
