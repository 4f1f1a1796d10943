"""The plane gets what is recorded and says what is not; its tables need no script."""

import json
import re
from dataclasses import replace

import pytest

from minilab.grids import grid
from minilab.records import Record
from minilab.spectra.phases import runaway_rate
from minilab.textbook.plane import HERE, axes, contents, still, widget


def made_up(momentum: float, age: int, norm: bool = False, knn: float = 0.3, seed: int = 0) -> Record:
    """A record of the grid's cell with numbers that tell the cells apart."""
    cells = [cell for cell in grid("phases").cells if cell.recipe.momentum == momentum]
    recipe = next(c.recipe for c in cells if c.recipe.queue == 64 * age and c.recipe.head_norm == norm)
    history = [
        {"epoch": n, "loss": 5.0 - n / 2, "loss_reference": 6.0, "knn": round(knn + n / 100, 3), "spread": 0.5 + n / 10,
         "embedding_cosine": 0.9 - n / 10}
        for n in (1, 2, 3, 4)
    ]  # fmt: skip
    data = {"name": "CIFAR-10 (JPEG copy)", "images": 10_000}
    curves = [{"points": ""}] * 4  # not drawn, so not read
    return Record(replace(recipe, seed=seed), data, {}, "cpu", "float32", history, [], curves)


def test_the_axes_are_the_grids():
    leaks, ages = axes()
    assert leaks == [1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001] and ages == [1, 4, 16, 64]


def test_cells_hold_what_is_recorded_and_no_more():
    found = contents([made_up(0.99, 4), made_up(0.0, 64, True, knn=0.1)], first=(0.01, 4))
    assert [(cell["leak"], cell["age"], cell["norm"]) for cell in found["cells"]] == [(0.01, 4, False), (1.0, 64, True)]
    first = found["cells"][0]
    assert first["knn"] == [0.31, 0.32, 0.33, 0.34] and first["chance"] == 6.0 and first["loss"][-1] == 3.0
    assert first["spread"][0] == 0.6 and first["cosine"][0] == 0.8
    assert found["steps"] == 624 and found["first"] == [0.01, 4] and 0.2 in found["drives"]
    assert len(json.dumps(found, allow_nan=False)) < 1500


def test_of_several_seeds_the_lowest_is_shown():
    records = [made_up(0.5, 1, knn=0.5, seed=2), made_up(0.5, 1, knn=0.2), made_up(0.5, 1, knn=0.6, seed=1)]
    assert [cell["knn"][0] for cell in contents(records)["cells"]] == [0.21]


def test_a_drive_of_its_own_joins_the_slider():
    assert contents([made_up(0.5, 1)], drive=0.23)["drives"].count(0.23) == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([],), r"records is \[\]; allowed: one run of the grid 'phases' or more"),
        (([made_up(0.5, 1)], 1.5), "drive is 1.5; allowed: above 0, at most 1"),
        (([made_up(0.5, 1)], 0.2, (0.3, 4)), r"first is \(0.3, 4\); allowed: one of"),
        (([made_up(0.5, 1)], 0.2, (0.5, 5)), r"first is \(0.5, 5\); allowed: one of"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        contents(*arguments)


@pytest.mark.parametrize("change", [{"momentum": 0.7}, {"batch": 128}, {"method": "simclr"}, {"epochs": 2}])
def test_runs_of_another_grid_are_refused(change):
    other = made_up(0.5, 1)
    with pytest.raises(ValueError, match="allowed: runs of the grid 'phases', equally long"):
        contents([made_up(0.5, 4), replace(other, recipe=replace(other.recipe, **change))])


def test_the_tables_have_the_runs_and_say_what_is_not_recorded():
    html = still([made_up(0.99, 4), made_up(0.0, 64, True, knn=0.1)], drive=0.4)
    parts = re.sub("<[^>]*>", "", html).split("\n\n")
    rows = [{line.split()[0]: line.split()[1:] for line in part.splitlines()[2:]} for part in parts]
    assert rows[0]["0.01"] == ["-", "0.340", "-", "-"] and rows[0]["1"] == ["-"] * 4
    assert rows[1]["1"] == ["-", "-", "-", "0.140"] and rows[2]["0.01"] == ["-", "-3.00", "-", "-"]
    assert [float(cell) for cell in rows[4]["0.05"]] == pytest.approx(
        [runaway_rate(0.05, age, 0.4) for age in (1, 4, 16, 64)], abs=6e-5
    )
    assert "not recorded" in parts[5] and max(map(len, html.splitlines()[1:-1])) <= 46


def test_the_widget_has_a_script_a_style_and_the_cells():
    made = widget([made_up(0.5, 1)])
    assert "export default" in str(made._esm) and ".plane" in str(made._css) and len(made.cells) == 1


def test_the_script_writes_text_and_never_markup():
    script = (HERE / "plane.js").read_text()
    assert not any(word in script for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval("))
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "")
