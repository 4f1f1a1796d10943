"""Records come back as they were written, and a bad one is named: file, field, what is allowed."""

import json
import warnings
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minilab.data import shapes
from minilab.recipe import Recipe
from minilab.records import Record, load_record, named, record_of, save_record, store
from minilab.records.store import HERE, MEASURED
from minilab.training import Run, build_method, train

LISTS = ("history", "labels", "curves")


@pytest.fixture(scope="module")
def record() -> Record:
    recipe = Recipe("moco", encoder="micro", epochs=2, batch=16, queue=40, precision="float32", seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return record_of(train(recipe, shapes(concepts=2, train=64, test=20), progress=False))


def test_it_comes_back_as_it_was(record, tmp_path):
    save_record(record, tmp_path / "run.json")
    assert load_record(tmp_path / "run.json") == record


def test_the_file_has_the_fields_that_readers_use(record, tmp_path):
    save_record(record, tmp_path / "run.json")
    values = json.loads((tmp_path / "run.json").read_text())
    assert list(values) == ["recipe", "data", "seed", "versions", "device", "precision", *LISTS]
    assert values["recipe"]["queue"] == 40 and values["seed"] == 5
    assert values["data"]["name"] == "Shapes (2 concepts)" and values["data"]["images"] == 64
    assert len(values["data"]["fingerprint"]) >= 12 and set(values["versions"]) == {"minilab", "torch", "python"}
    assert [entry["epoch"] for entry in values["history"]] == [1, 2]
    assert all(set(MEASURED) <= set(entry) for entry in values["history"])


def test_the_last_figure_by_name(record):
    assert record.last("knn") == record.history[-1]["knn"]
    with pytest.raises(ValueError, match="'accuracy' is not in the history; allowed: epoch, loss"):
        record.last("accuracy")


def test_a_grid_gives_those_of_its_runs_that_are_recorded(record, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "RUNS", tmp_path)
    with pytest.raises(ValueError, match="no run of the grid 'queue' is recorded; `minilab sweep queue` makes them"):
        store.of_grid("queue")
    for name in ("moco-queue256-seed1", "moco-queue256-seed0", "simclr-seed0"):
        save_record(replace(record, recipe=replace(record.recipe, seed=int(name[-1]))), tmp_path / f"{name}.json")
    assert [found.recipe.seed for found in store.of_grid("queue")] == [0, 1]
    with pytest.raises(ValueError, match="grid is 'queues'; allowed: momentum"):
        store.of_grid("queues")


def test_a_run_with_no_epoch_has_no_record():
    recipe = Recipe("simclr", encoder="micro")
    run = Run(recipe, shapes(concepts=2, train=8, test=4), build_method(recipe), "float32")
    with pytest.raises(ValueError, match="no finished epoch"):
        record_of(run)


def broken(values: dict, path: str, value: object) -> dict:
    """`values` with the entry at the dotted `path` replaced, or taken out if `value` is `...`."""
    copy = json.loads(json.dumps(values))
    place = copy
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in parents:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return copy


@pytest.mark.fault
@pytest.mark.parametrize(
    "path, value, message",
    [
        ("recipe", ..., "recipe is None; allowed: a dict"),
        ("recipe.batch", 1, "batch is 1; allowed: a whole number"),
        ("recipe.quue", 1, "recipe has the unknown field 'quue'"),
        ("seed", 6, "seed is 6; allowed: the recipe's seed, 5"),
        ("data.fingerprint", ..., "data.fingerprint is None; allowed: a str"),
        ("data.images", "64", "data.images is '64'; allowed: a int"),
        ("history", [], "history is .*; allowed: one object an epoch"),
        ("history.1.knn", ..., r"history\[1\].knn is 'missing'; allowed: a finite number"),
        ("history.0.loss", "4", r"history\[0\].loss is '4'; allowed: a finite number"),
        ("history.0.extra", None, r"history\[0\].extra is None; allowed: a finite number"),
        ("history.0", 3, r"history\[0\] is 3; allowed: a JSON object"),
        ("device", 3, "device is 3; allowed: a str"),
        ("labels.3", -1, r"labels\[3\] is -1; allowed: a whole number, 0 or more"),
        ("curves.1", ..., "curves is .*; allowed: one object an epoch"),
        ("curves.1.points", ..., r"curves\[1\].points is None; allowed: a text"),
        ("curves.1.points", "AAA", r"curves\[1\].points: "),
        ("curves.1.points", "AAAA", r"curves\[1\].points: points hold 3 bytes; allowed: an even number"),
        ("curves.1.points", "AAAAAAAA", r"curves\[1\].points is 3; allowed: as many points as labels, 20"),
        ("curves.1.age", [1, "<b>"], r"curves\[1\].age is .*; allowed: a list of finite numbers"),
        ("curves.1.consistency", [], r"curves\[1\].consistency is \[\]; allowed: as many as there are ages, 2"),
    ],
)
def test_a_wrong_field_is_named(record, tmp_path, path, value, message):
    good = tmp_path / "good.json"
    save_record(record, good)
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(broken(json.loads(good.read_text()), path, value)))
    with pytest.raises(ValueError, match=f"record .*bad.json: {message}"):
        load_record(bad)


def test_not_a_number_is_refused_both_ways(record, tmp_path):
    path = tmp_path / "run.json"
    save_record(record, path)
    path.write_text(path.read_text().replace('"knn": ', '"knn": NaN, "was": ', 1))
    with pytest.raises(ValueError, match=r"history\[0\].knn is nan"):
        load_record(path)
    history = [{**record.history[0], "loss": float("nan")}]
    bad = Record(record.recipe, record.data, record.versions, record.device, record.precision, history, [], [])
    with pytest.raises(ValueError):
        save_record(bad, tmp_path / "nan.json")
    assert not (tmp_path / "nan.json").exists()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode), st.just(b"[" * 100_000)))
def test_any_other_bytes_are_a_named_error(tmp_path, data):
    path = tmp_path / "fuzz.json"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="record .*fuzz.json: "):
        load_record(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    field=st.sampled_from(["recipe", "data", "seed", "versions", "device", "precision", "history"]), value=json_values
)
def test_any_other_value_of_a_field_is_a_named_error_or_right(record, tmp_path, field, value):
    path = tmp_path / "fuzz.json"
    save_record(record, path)
    values = json.loads(path.read_text())
    values[field] = value
    path.write_text(json.dumps(values))
    try:
        assert isinstance(load_record(path), Record)
    except ValueError as error:
        assert "fuzz.json: " in str(error)


def test_every_shipped_record_reads_and_says_where_it_was_made():
    shipped = sorted(path.relative_to(HERE).with_suffix("").as_posix() for path in HERE.rglob("*.json"))
    assert {"first-simclr", "first-moco"} <= set(shipped)
    for name in shipped:
        record = named(name)
        assert len(record.history) == record.recipe.epochs
        assert record.device and record.versions["torch"]


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(ValueError, match="no record is called 'nothing'; there are: .*first-moco"):
        named("nothing")
