"""Reads and writes recorded runs.

A record is a JSON object: `recipe`, `data` (name, images, test_images, fingerprint), `seed`,
`versions` (minilab, torch, python), `device`, `precision`, `history`: a list with one object an epoch, and
`curves`, as long: what `minilab.probes` measured then, with the `points` of a map of the first test images,
whose classes are `labels`.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import minilab
from minilab.files import written_aside
from minilab.grids import grid
from minilab.probes import POINTS, decode_points
from minilab.recipe import Recipe
from minilab.training import Run

HERE = Path(__file__).parent
RUNS = HERE / "runs"  # those of the grids
MEASURED = (
    "epoch", "loss", "loss_reference", "knn", "spread", "effective_rank", "alignment", "uniformity",
    "seconds", "images_per_second",
)  # fmt: skip
FIELDS = {
    "recipe": dict, "data": dict, "seed": int, "versions": dict, "device": str, "precision": str,
    "history": list, "labels": list, "curves": list,
}  # fmt: skip
PRINTABLE = "a text without control characters"
CLASSES = 100_000  # more than any data set has; what reads a record makes a name for each
DATA = {"name": str, "images": int, "test_images": int, "fingerprint": str}


@dataclass(frozen=True)
class Record:
    """What a run was, where it ran, and what it measured."""

    recipe: Recipe
    data: dict[str, Any]
    versions: dict[str, str]
    device: str
    precision: str
    history: list[dict[str, float]]
    labels: list[int]
    curves: list[dict[str, Any]]

    def last(self, name: str) -> float:
        """The last epoch's figure called `name`. An unknown name raises `ValueError`."""
        if not isinstance(name, str) or name not in self.history[-1]:
            raise ValueError(f"{name!r} is not in the history; allowed: {', '.join(self.history[-1])}")
        return self.history[-1][name]


def record_of(run: Run) -> Record:
    """The record of a run that has finished at least one epoch."""
    if not run.history:
        raise ValueError("the run has no finished epoch; allowed: one or more")
    images = run.images
    data = {
        "name": images.name,
        "images": len(images.train),
        "test_images": len(images.test),
        "fingerprint": images.fingerprint,
    }
    versions = {"minilab": minilab.__version__, "torch": torch.__version__, "python": platform.python_version()}
    device = next(run.method.parameters()).device
    labels = images.test_labels[:POINTS].tolist()
    history = [{name: _short(value) for name, value in entry.items()} for entry in run.history]
    return Record(run.recipe, data, versions, describe_device(device), run.precision, history, labels, run.curves)


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.6g}")  # more digits than any run repeats elsewhere


def describe_device(device: torch.device) -> str:
    """A device in words: the GPU's name, or the processor and how many threads torch uses on it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {platform.machine()}, {torch.get_num_threads()} threads"


def save_record(record: Record, path: str | Path) -> None:
    """Write `record` to `path` as JSON, aside and then renamed. Raises `OSError` naming the path.

    What could not be read again is not written: `ValueError` naming the field.
    """
    values = {**asdict(record), "seed": record.recipe.seed}
    _parse(values)
    with written_aside(path) as file:
        file.write(_lines({name: values[name] for name in FIELDS}).encode())


def _lines(values: dict[str, Any]) -> str:
    """JSON with a line for each field, and for each epoch in a field: small, and a change is easy to see."""
    lines = []
    for name, value in values.items():
        rows = [json.dumps(row, allow_nan=False) for row in value] if name in ("history", "curves") else []
        text = "[\n  " + ",\n  ".join(rows) + "\n ]" if rows else json.dumps(value, allow_nan=False)
        lines.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load_record(path: str | Path) -> Record:
    """The record in `path`. Raises `ValueError` naming file, field and what is allowed."""
    try:
        values = json.loads(Path(path).read_bytes(), object_pairs_hook=_object)
        return _parse(values)
    except (ValueError, OverflowError) as error:  # JSON and UTF-8 errors are ValueErrors
        raise ValueError(f"record {path}: {error}") from error
    except RecursionError as error:
        raise ValueError(f"record {path}: lists or objects are nested too deeply; allowed: a few levels") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a name that stands in it twice is a `ValueError`, for one of the two values would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice} is given twice; allowed: once")
    return found


def named(name: str) -> Record:
    """A record that ships with minilab, by its name without `.json`; unknown names list what there is."""
    known = {path.relative_to(HERE).with_suffix("").as_posix(): path for path in sorted(HERE.rglob("*.json"))}
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"no record is called {name!r}; there are: {', '.join(known) or 'none'}")
    return load_record(known[name])


def of_grid(name: str) -> list[Record]:
    """The recorded runs of a grid, in its order; those that are missing are left out.

    Raises `ValueError` if there is no grid of this name, or none of its runs is recorded.
    """
    paths = [RUNS / f"{cell.name}.json" for cell in grid(name).cells]
    records = [load_record(path) for path in paths if path.exists()]
    if not records:
        raise ValueError(f"no run of the grid {name!r} is recorded; `minilab sweep {name}` makes them")
    return records


def _parse(values: Any) -> Record:
    _expect(isinstance(values, dict), "the file", values, "a JSON object")
    for name, kind in FIELDS.items():
        _expect(isinstance(values.get(name), kind), name, values.get(name), f"a {kind.__name__}")
    recipe = Recipe.from_dict(values["recipe"])
    _expect(values["seed"] == recipe.seed, "seed", values["seed"], f"the recipe's seed, {recipe.seed}")
    for name, kind in DATA.items():
        _check_data(f"data.{name}", values["data"].get(name), kind)
    for name in ("device", "precision"):
        _expect(values[name].isprintable(), name, values[name], PRINTABLE)
    for name, value in values["versions"].items():
        _expect(isinstance(value, str) and value.isprintable(), f"versions.{name}", value, PRINTABLE)
    _expect(bool(values["history"]), "history", [], "one object an epoch, at least one")
    for index, entry in enumerate(values["history"]):
        _check_entry(f"history[{index}]", entry, index + 1)
    for index, label in enumerate(values["labels"]):
        right = type(label) is int and 0 <= label < CLASSES
        _expect(right, f"labels[{index}]", label, f"a whole number, 0 or more and below {CLASSES:,}")
    _expect(len(values["curves"]) == len(values["history"]), "curves", values["curves"], "one object an epoch")
    for index, curve in enumerate(values["curves"]):
        _check_curve(f"curves[{index}]", curve, len(values["labels"]))
    return Record(recipe, *(values[name] for name in FIELDS if name not in ("recipe", "seed")))


def _check_curve(where: str, curve: Any, labels: int) -> None:
    _expect(isinstance(curve, dict), where, curve, "a JSON object")
    points = curve.get("points")
    _expect(isinstance(points, str), f"{where}.points", points, "a text that minilab.probes made")
    try:
        there = len(decode_points(points))
    except ValueError as error:
        raise ValueError(f"{where}.points: {error}") from error
    _expect(there == labels, f"{where}.points", there, f"as many points as labels, {labels}")
    ages, cosines = curve.get("age", []), curve.get("consistency", [])
    for name, values in (("age", ages), ("consistency", cosines)):
        numbers = isinstance(values, list) and all(_is_number(value) for value in values)
        _expect(numbers, f"{where}.{name}", values, "a list of finite numbers")
    _expect(len(ages) == len(cosines), f"{where}.consistency", cosines, f"as many as there are ages, {len(ages)}")


def _check_data(name: str, value: Any, kind: type) -> None:
    _expect(type(value) is kind, name, value, f"a {kind.__name__}")
    if kind is str:
        _expect(value.isprintable(), name, value, PRINTABLE)
    else:
        _expect(value >= 1, name, value, "a whole number, 1 or more")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _check_entry(where: str, entry: Any, epoch: int) -> None:
    _expect(isinstance(entry, dict), where, entry, "a JSON object")
    for name in MEASURED:
        _expect(name in entry, f"{where}.{name}", "missing", "a finite number")
    for name, value in entry.items():
        _expect(_is_number(value), f"{where}.{name}", value, "a finite number")
    _expect(entry["epoch"] == epoch and type(entry["epoch"]) is int, f"{where}.epoch", entry["epoch"], f"{epoch}")


def _expect(right: bool, name: str, value: Any, allowed: str) -> None:
    if not right:
        shown = repr(value)
        raise ValueError(f"{name} is {shown if len(shown) < 80 else shown[:77] + '...'}; allowed: {allowed}")
