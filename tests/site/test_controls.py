"""The controls of the book's own pages move what they claim to: the records' numbers, the planner's sums, the queue."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import ceil
from typing import Any

import pytest
from conftest import EXECUTED, ROOT, Visit, until
from playwright.sync_api import Locator

from minilab.memory import Budget, device_bytes, largest_batch, recommend
from minilab.textbook.album import moved

pytestmark = pytest.mark.browser
WIDGETS = "application/vnd.jupyter.widget-state+json"
ROWS = {"kNN accuracy": ("knn", 3), "loss (nats)": ("loss", 2), "effective rank": ("effective_rank", 1)}
VERDICTS = {"simclr": "Start with SimCLR.", "moco": "Start with MoCo.", "neither": "Neither fits."}


def widgets(name: str, field: str) -> list[dict[str, Any]]:
    """What each widget with this field is given on a page, in no order."""
    metadata = json.loads((ROOT / f"{name}.ipynb").read_text())["metadata"]
    models = metadata.get("widgets", {}).get(WIDGETS, {"state": {}})["state"].values()
    return [model["state"] for model in models if field in model["state"]]


def pages_with(field: str) -> pytest.MarkDecorator:
    """Runs a test on every page that has a widget with this field."""
    executed = [name for name in EXECUTED if (ROOT / f"{name}.ipynb").is_file()]  # or no page would be built
    return pytest.mark.parametrize("name", [name for name in executed if widgets(name, field)])


@cache
def recorded() -> set[tuple[int, tuple[float, ...]]]:
    """The seed and the kNN of every recorded run."""
    records = [json.loads(path.read_text()) for path in (ROOT / "minilab" / "records").rglob("*.json")]
    return {(record["seed"], tuple(entry["knn"] for entry in record["history"])) for record in records}


def run_of(runs: list[dict[str, Any]], setting: str, seed: int) -> dict[str, Any]:
    """The run that the explorer has to show: with this seed, or else the setting's first."""
    of_setting = [run for run in runs if run["setting"] == setting]
    return next((run for run in of_setting if run["seed"] == seed), of_setting[0])


def assert_shown(box: Locator, runs: list[dict[str, Any]], settings: list[str], seed: int, epoch: int) -> None:
    """The explorer's table has the names and the numbers of these two runs at this epoch."""
    pair = [run_of(runs, setting, seed) for setting in settings]
    notes = ["" if run["seed"] == seed else f" (seed {run['seed']})" for run in pair]
    wanted = [f"{side}: {run['setting']}{note}" for side, run, note in zip("AB", pair, notes, strict=True)]
    assert box.get_by_role("columnheader").all_inner_texts() == wanted
    for label, (key, digits) in ROWS.items():
        cells = box.get_by_role("row", name=label).locator("td").all_inner_texts()
        values = [run["history"][min(epoch, len(run["history"])) - 1][key] for run in pair]
        assert [float(cell) for cell in cells] == pytest.approx(values, abs=0.51 * 10**-digits), label


@pages_with("runs")
def test_the_explorer_shows_the_records_of_what_is_chosen(open_page: Callable[..., Visit], name: str) -> None:
    page = open_page(name).page
    for given in widgets(name, "runs"):
        runs, settings = given["runs"], list(given["first"])
        for run in runs:
            assert (run["seed"], tuple(entry["knn"] for entry in run["history"])) in recorded(), run["setting"]
        seeds, epoch = sorted({run["seed"] for run in runs}), max(len(run["history"]) for run in runs)
        box = page.get_by_role("group", name=f"Explorer: {given['title']}")
        box.wait_for()
        assert_shown(box, runs, settings, runs[0]["seed"], epoch)
        settings.reverse()
        box.get_by_label("A, solid:").select_option(settings[0])
        box.get_by_label("B, dashed:").select_option(settings[1])
        assert_shown(box, runs, settings, runs[0]["seed"], epoch)
        box.get_by_label("Seed:").select_option(str(seeds[-1]))
        assert_shown(box, runs, settings, seeds[-1], epoch)
        box.get_by_label("Epoch:").fill("2")
        assert_shown(box, runs, settings, seeds[-1], 2)
        box.get_by_label("On the maps:").select_option(given["classes"][-1])
        assert box.get_by_role("img", name=f"in B, {given['classes'][-1]}.").count() == 1


@pages_with("budget")
def test_every_control_of_the_planner_gives_what_minilab_computes(open_page: Callable[..., Visit], name: str) -> None:
    page = open_page(name).page
    box = page.get_by_role("group", name="Budget planner")
    box.wait_for()
    budget = Budget(**widgets(name, "budget")[0]["budget"])

    def assert_planned() -> None:
        totals = [sum(device_bytes(budget, method).values()) / 1e9 for method in ("simclr", "moco")]
        most = [f"{largest_batch(budget, method):,}" for method in ("simclr", "moco")]
        row = box.get_by_role("row", name="in all").locator("td")
        assert [float(cell) for cell in row.all_inner_texts()] == pytest.approx(totals, abs=0.0051)
        assert box.get_by_role("row", name="most images a step").locator("td").all_inner_texts() == most
        assert box.locator(".planner-verdict").inner_text() == VERDICTS[recommend(budget)[0]]

    assert_planned()
    numbers = {
        "Images a step": {"batch": 64},
        "Image side": {"size": 96},
        "Accelerators": {"devices": 4},
        "Memory of each": {"gigabytes": 1.5},
        "Keys in the queue": {"queue": 4096},
        "Numbers in a key": {"dim": 4096},
    }
    for label, change in numbers.items():
        budget = replace(budget, **change)
        box.get_by_label(label).fill(str(*change.values()))
        assert_planned()
    budget = replace(budget, half=True)
    box.get_by_label("An activation takes").select_option("2")
    assert_planned()
    budget = replace(budget, network="tiny")
    box.get_by_label("Network").select_option("tiny")
    assert_planned()


@pages_with("start")
def test_the_queue_moves_by_step_by_choice_and_by_itself(open_page: Callable[..., Visit], name: str) -> None:
    page = open_page(name).page
    box = page.get_by_role("group", name="The queue in motion")
    box.wait_for()
    start = widgets(name, "start")[0]["start"]
    about, said = box.locator(".album-about"), box.locator(".album-said")
    box.get_by_role("button", name="One step").click()
    assert about.inner_text().startswith(f"Step 1. {100 * start['batch'] / start['keys']:.0f} % of the rows")
    assert "made 1 step ago" in said.inner_text()
    for keys, batch, m in ((1024, start["batch"], start["m"]), (1024, 64, start["m"]), (1024, 64, 0.9)):
        box.get_by_label("Keys K").select_option(str(keys))
        box.get_by_label("Images a step").select_option(str(batch))
        box.get_by_label("m:").select_option(str(m))
        box.get_by_role("button", name="Fill it").click()
        box.get_by_label("Look at a key").fill("39")
        oldest = ceil(keys / batch)
        assert about.inner_text().startswith(f"Step {oldest}. 100 % of the rows are real keys.")
        assert f"is {oldest} steps old" in about.inner_text()
        assert f"averages over about {1 / (1 - m):.0f}." in about.inner_text()
        assert f"made {oldest} steps ago" in said.inner_text()
        assert f"has closed {100 * moved(oldest, m):.0f} % of a gap" in said.inner_text()
    box.get_by_role("button", name="Play").click()
    until(page, "document.querySelector('.album-about').textContent.startsWith('Step 18.')")
    box.get_by_role("button", name="Pause").click()
    stopped = about.inner_text()
    page.wait_for_timeout(700)
    assert about.inner_text() == stopped
