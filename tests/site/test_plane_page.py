"""The plane's script computes what minilab.spectra does, and shows the record of the chosen cell, with no kernel."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import script_alone
from playwright.sync_api import Browser, Locator, Page
from test_accessibility import grave_faults

from minilab.records import of_grid
from minilab.spectra.common_mode import common_mode, growth_rate
from minilab.spectra.phases import runaway_rate
from minilab.textbook.plane import HERE, axes, contents

pytestmark = pytest.mark.browser
MODEL = """async (given) => {
  const { default: widget } = await import("/plane.js");
  const el = document.body.appendChild(document.createElement("main"));
  widget.render({ model: { get: (name) => given[name] }, el });
}"""
SYSTEM = """async (cases) => {
  const { commonMode, growthRate, runawayRate } = await import("/plane.js");
  return cases.map(([leak, age, drive, steps]) => {
    const u = commonMode(leak, age, drive, steps);
    return { u, growth: growthRate(u), rate: runawayRate(leak, age, drive) };
  });
}"""


@pytest.fixture()
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """An empty page beside the plane's script."""
    with script_alone(browser, tmp_path, HERE / "plane.js", HERE / "plane.css") as page:
        yield page


@pytest.fixture()
def given() -> dict[str, Any]:
    """The recorded plane without the runs of T = 16 that have no final norm, but for the one at gamma = 1."""
    found = contents(of_grid("phases"), drive=0.2)
    left_out = [c for c in found["cells"] if c["age"] == 16 and not c["norm"] and c["leak"] != 1]
    return {**found, "cells": [cell for cell in found["cells"] if cell not in left_out]}


def test_random_systems_agree(page: Page) -> None:
    dice = random.Random(0)
    cases = [(1.0, 64, 1.0, 624), (0.001, 1, 0.02, 624), (1.0, 1, 1.0, 10)]
    cases += [
        (10 ** dice.uniform(-3, 0), dice.randint(1, 64), 10 ** dice.uniform(-2, 0), dice.randint(5, 300))
        for _ in range(100)
    ]
    for case, script in zip(cases, page.evaluate(SYSTEM, [list(case) for case in cases]), strict=True):
        right = common_mode(*case)
        assert script["u"] == pytest.approx(right, rel=1e-9, abs=1e-15), case
        assert script["growth"] == pytest.approx(growth_rate(right), rel=1e-6, abs=1e-9), case
        assert script["rate"] == pytest.approx(runaway_rate(*case[:3]), rel=1e-9, abs=1e-15), case
    assert {runaway_rate(*case[:3]) > 0 for case in cases} == {True, False}


def cell_of(given: dict[str, Any], leak: float, age: int, norm: bool) -> dict[str, Any] | None:
    return next((c for c in given["cells"] if (c["leak"], c["age"], c["norm"]) == (leak, age, norm)), None)


def texts(found: Locator) -> list[str]:
    inner: list[str] = found.all_inner_texts()
    return inner


def assert_run(page: Page, cell: dict[str, Any] | None) -> None:
    """The page has the history of this run, in the table and in the curves, or says that there is none."""
    if cell is None:
        assert page.locator(".plane-none").inner_text() == "This run is not recorded."
        assert page.locator(".plane-values").count() == 0 and page.locator(".plane svg").count() == 1
        return
    assert page.locator(".plane-none").count() == 0 and page.locator(".plane svg").count() == 3
    rows = [texts(row.locator("td")) for row in page.locator(".plane-values tbody tr").all()]
    values = list(zip(cell["knn"], cell["spread"], cell["cosine"], cell["loss"], strict=True))
    assert rows == [[f"{k:.3f}", f"{s:.3f}", f"{c:.3f}", f"{x:.2f}", f"{cell['chance']:.2f}"] for k, s, c, x in values]
    discs = (
        page.locator(".plane svg").first.locator("circle").evaluate_all("all => all.map(e => +e.getAttribute('cy'))")
    )
    scale = [(d - discs[0], k - cell["knn"][0]) for d, k in zip(discs, cell["knn"], strict=True)]
    slope = scale[-1][0] / scale[-1][1]
    assert slope < 0 and [d for d, _ in scale] == pytest.approx([slope * k for _, k in scale], abs=1e-6)


def assert_system(page: Page, steps: int, leak: float, age: int, drive: float) -> None:
    """The page has the predicted rate of this system, and what its curve does."""
    said = " ".join(texts(page.locator(".plane-sides > div").nth(1).locator("p")))
    u, rate = common_mode(leak, age, drive, steps), runaway_rate(leak, age, drive)
    assert f"κ = {drive:g}" in said
    found = re.search(r"Predicted growth: (\S+) a step", said)
    if rate:
        assert found and float(found[1]) == pytest.approx(rate, rel=6e-3)
    else:
        assert not found and f"up to 2 / κ = {2 / drive:.3g}" in said.replace(".00 ", " ").replace(".0 ", " ")
    slope = re.search(r"second half: (\S+) a step", said)
    assert slope and float(slope[1]) == pytest.approx(growth_rate(u), abs=6e-5)
    passed = next((step for step, value in enumerate(u) if abs(value) > 1), None)
    assert (f"after {passed} of the run's {steps}" if passed else f"below 1 for all {steps}") in said
    line = page.locator(".plane svg").last.locator("path[stroke*=queue-age]").get_attribute("d") or ""
    ends = 1 + next((step for step, value in enumerate(u) if abs(value) > 10), steps)
    assert line.count("L") + 1 == ends


def test_clicking_a_cell_shows_its_run_and_its_system(page: Page, given: dict[str, Any]) -> None:
    page.evaluate(MODEL, given)
    leaks, ages = axes()
    assert_run(page, cell_of(given, 1.0, 16, False))
    assert_system(page, 624, 1.0, 16, 0.2)
    for row, column in ((6, 1), (2, 2), (9, 3), (0, 0)):
        page.locator(".plane-grid tbody tr").nth(row).locator("button").nth(column).click()
        cell = cell_of(given, leaks[row], ages[column], False)
        title = page.locator(".plane-title").inner_text()
        assert f"γ = {leaks[row]:g} (m = {1 - leaks[row]:g}), T = {ages[column]} steps, without a final" in title
        assert title.endswith("Not recorded.") is (cell is None)
        assert_run(page, cell)
        assert_system(page, 624, leaks[row], ages[column], 0.2)
        assert page.locator(".plane-grid button[aria-pressed=true]").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_arrow_keys_walk_the_plane(page: Page, given: dict[str, Any]) -> None:
    page.evaluate(MODEL, given)
    assert page.locator(".plane-grid button[tabindex='0']").count() == 1
    page.locator(".plane-grid button[tabindex='0']").focus()
    walks = {
        "ArrowDown": (0.5, 16),
        "ArrowLeft": (0.5, 4),
        "End": (0.5, 64),
        "ArrowRight": (0.5, 64),
        "ArrowUp": (1, 64),
    }
    for key, (leak, age) in {**walks, "Home": (1, 1)}.items():
        page.keyboard.press(key)
        assert page.locator(".plane-title").inner_text().startswith(f"γ = {leak:g} (m = {1 - leak:g}), T = {age} ")
        assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
        assert_run(page, cell_of(given, leak, age, False))


def grid_texts(page: Page) -> list[str]:
    return texts(page.locator(".plane-grid button"))


def test_the_cells_hold_what_is_chosen_and_the_gaps_are_told(page: Page, given: dict[str, Any]) -> None:
    page.evaluate(MODEL, given)
    leaks, ages = axes()
    writes = {
        "kNN accuracy": lambda cell: f"{cell['knn'][-1]:.3f}",
        "spread of the features": lambda cell: f"{cell['spread'][-1]:.2f}",
        "cosine of two images": lambda cell: f"{cell['cosine'][-1]:.2f}",
        "loss − log(K + 1)": lambda cell: f"{cell['loss'][-1] - cell['chance']:+.2f}".replace("-", "−"),
    }
    for norm in ("without", "with"):
        page.get_by_label("Final batch norm").select_option(norm)
        for words, write in writes.items():
            page.get_by_label("In the cells").select_option(words)
            cells = [cell_of(given, leak, age, norm == "with") for leak in leaks for age in ages]
            assert grid_texts(page) == [write(cell) if cell else "–" for cell in cells]
    page.get_by_label("Final batch norm").select_option("without")
    missing = page.get_by_role("button", name="γ = 0.1 (m = 0.9), T = 16: not recorded")
    assert missing.count() == 1 and missing.inner_text() == "–"


def test_the_final_norm_changes_the_run_and_is_told_beside_the_system(page: Page, given: dict[str, Any]) -> None:
    made = dict(given["cells"][0], leak=1.0, age=16, norm=True, knn=[0.111, 0.222, 0.333, 0.444])
    page.evaluate(MODEL, {**given, "cells": [c for c in given["cells"] if not c["norm"]] + [made]})
    assert page.locator(".plane-norm").count() == 0
    page.get_by_label("Final batch norm").select_option("with")
    assert_run(page, made)
    assert page.locator(".plane-norm").count() == 1 and "with a final" in page.locator(".plane-title").inner_text()
    assert_system(page, 624, 1.0, 16, 0.2)
    page.get_by_label("Final batch norm").select_option("without")
    assert_run(page, cell_of(given, 1.0, 16, False))


def test_the_drive_changes_the_system_and_leaves_the_run(page: Page, given: dict[str, Any]) -> None:
    page.evaluate(MODEL, given)
    slider = page.get_by_label("Drive κ")
    slider.focus()
    for key, drive in {"End": 1.0, "Home": 0.02, "ArrowRight": 0.03}.items():
        page.keyboard.press(key)
        assert slider.get_attribute("aria-valuetext") == page.locator(".plane output").inner_text() == f"{drive:g}"
        assert_system(page, 624, 1.0, 16, drive)
        assert_run(page, cell_of(given, 1.0, 16, False))


@pytest.mark.parametrize("ground, ink", [("#fdfdfb", "#1d2126"), ("#15191e", "#e2e5e8")])
def test_axe_finds_no_grave_fault(page: Page, given: dict[str, Any], ground: str, ink: str) -> None:
    page.evaluate(MODEL, given)
    page.evaluate(
        "([ground, ink]) => Object.assign(document.body.style, { background: ground, color: ink })", [ground, ink]
    )
    assert grave_faults(page) == []
    page.get_by_role("button", name="γ = 0.1 (m = 0.9), T = 16: not recorded").click()
    assert grave_faults(page) == []
