"""Records: what is written comes back, whatever it holds; what could not come back is refused by its field."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import covers, few, many, refused, some

from minilab.data import shapes
from minilab.probes import encode_points
from minilab.recipe import Recipe
from minilab.records import store
from minilab.records.store import DATA, MEASURED, Record, load_record, named, of_grid, record_of, save_record
from minilab.training import Run, build_method

NUMBER = st.one_of(st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False))
WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=20)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any record that a run could leave, and stranger ones."""
    epochs, points = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    history = [{name: draw(NUMBER) for name in MEASURED} | {"epoch": n + 1} for n in range(epochs)]
    for entry in history:
        entry.update(draw(st.dictionaries(st.text(max_size=8).filter(lambda x: x not in MEASURED), NUMBER, max_size=2)))
    ages = draw(st.lists(NUMBER, max_size=3))
    text = encode_points(
        torch.tensor(draw(st.lists(st.tuples(*[st.floats(-1, 1)] * 2), min_size=points, max_size=points)))
    )
    curves: list[dict[str, Any]] = [{"points": text, "age": ages, "consistency": ages} for _ in range(epochs)]
    data = {name: draw(WORDS) if kind is str else draw(st.integers(1, 10**6)) for name, kind in DATA.items()}
    labels = draw(st.lists(st.integers(0, 999), min_size=points, max_size=points))
    recipe = Recipe(draw(st.sampled_from(["simclr", "moco"])), seed=draw(st.integers(0, 99)))
    return Record(recipe, data, {"torch": draw(WORDS)}, draw(WORDS), "float32", history, labels, curves)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@covers(store.Record, save_record, load_record, Record.last)
@some
@given(record=records())
def test_a_record_comes_back(record: Record, folder: Path) -> None:
    save_record(record, folder / "run.json")
    assert load_record(folder / "run.json") == record
    assert json.loads((folder / "run.json").read_text())["seed"] == record.recipe.seed
    assert [path.name for path in folder.iterdir()] == ["run.json"]
    for name in record.history[-1]:
        assert record.last(name) == record.history[-1][name]
    for name in ("accuracy!", None, 3, []):
        refused(record.last, name, named="is not in the history")


WRONG = st.sampled_from([None, math.nan, math.inf, -math.inf, True, "x", [], {}, 10**400, b"x"])


@many
@given(record=records(), data=st.data())
def test_a_wrong_value_is_refused_by_its_field_and_nothing_is_written(record: Record, data: Any, folder: Path) -> None:
    changed = copy.deepcopy(record)
    kind = data.draw(st.sampled_from(["history", "labels", "data", "age", "epoch"]))
    bad = data.draw(WRONG)
    if kind == "history":
        changed.history[-1]["knn"] = bad
    elif kind == "epoch":
        changed.history[-1]["epoch"] = data.draw(st.integers(4, 9) | WRONG)
    elif kind == "labels":
        changed.labels[0] = data.draw(st.sampled_from([-1, 10**9]) | WRONG)
    elif kind == "data":
        changed.data["images"] = data.draw(st.sampled_from([0, -1]) | WRONG)
    else:
        changed.curves[0]["age"] = [bad]
        changed.curves[0]["consistency"] = [bad]
    before = {path: path.read_bytes() for path in folder.iterdir()}
    refused(save_record, changed, folder / "run.json", named=kind if kind != "age" else "curves[0].age")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@covers(record_of, store.describe_device)
@few
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3), st.integers(0, 9))
def test_the_record_of_a_run_has_six_digits_of_each_figure(values: list[float], seed: int) -> None:
    recipe = Recipe("simclr", encoder="micro", seed=seed)
    images = shapes(concepts=2, train=8, test=4)
    run = Run(recipe, images, build_method(recipe), "float32")
    refused(record_of, run, named="the run has no finished epoch")
    for value in values:
        run.history.append({"epoch": len(run.history) + 1, "loss": value})
    found = record_of(run)
    assert found.recipe == recipe and found.data["images"] == 8 and found.labels == images.test_labels.tolist()
    for entry, value in zip(found.history, values, strict=True):
        assert entry["loss"] == pytest.approx(value, rel=1e-5)
    assert found.device == store.describe_device(torch.device("cpu")) and found.device.startswith("cpu, ")


@covers(named, of_grid)
@some
@given(st.one_of(st.text(), st.none(), st.integers(), st.lists(st.text(), max_size=1)))
def test_a_name_that_no_record_has_lists_what_there_is(name: Any) -> None:
    with pytest.raises(ValueError, match="no record is called"):
        named(name)
    refused(of_grid, name, named="grid is")


def test_a_name_that_a_record_has_gives_it() -> None:
    found = named("runs/moco-queue256-seed0")
    assert found.recipe.queue == 256 and found in of_grid("queue")
