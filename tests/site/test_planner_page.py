"""The planner's script computes what minilab.memory does, and moves on a page with no kernel."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from conftest import script_alone
from playwright.sync_api import Browser, Page

from minilab.memory import NETWORKS, Budget, device_bytes, largest_batch, recommend
from minilab.textbook.planner import HERE, START

pytestmark = pytest.mark.browser
networks = {name: asdict(network) for name, network in NETWORKS.items()}
MODEL = """async ([networks, budget]) => {
  const { default: widget } = await import("/planner.js");
  const el = document.body.appendChild(document.createElement("div"));
  widget.render({ model: { get: (name) => ({ networks, budget })[name] }, el });
}"""


@pytest.fixture()
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """An empty page beside the planner's script."""
    with script_alone(browser, tmp_path, HERE / "planner.js", HERE / "planner.css") as page:
        yield page


def budgets(count: int) -> list[Budget]:
    dice = random.Random(0)
    return [
        Budget(
            network=dice.choice(list(NETWORKS)),
            size=dice.choice([32, 96, 160, 224, dice.randint(8, 1024)]),
            devices=dice.choice([1, 2, 8, dice.randint(1, 512)]),
            gigabytes=dice.choice([8, 11.5, 24, 80, round(dice.uniform(0.5, 200), 2)]),
            half=dice.random() < 0.5,
            batch=dice.choice([2, 32, 256, 4096, dice.randint(2, 100_000)]),
            queue=dice.choice([1, 4096, 65_536, dice.randint(1, 2**24)]),
            dim=dice.choice([64, 128, 256]),
        )
        for _ in range(count)
    ]


def test_a_hundred_random_budgets_agree(page: Page) -> None:
    cases = budgets(100)
    found = page.evaluate(
        """async ([networks, budgets]) => {
          const { deviceBytes, largestBatch, recommend } = await import("/planner.js");
          const both = (budget) => ["simclr", "moco"].map((method) =>
            [deviceBytes(budget, networks, method), largestBatch(budget, networks, method)]);
          return budgets.map((budget) => [...both(budget), recommend(budget, networks)]);
        }""",
        [networks, [asdict(case) for case in cases]],
    )
    for case, (simclr, moco, advice) in zip(cases, found, strict=True):
        for method, (kinds, largest) in (("simclr", simclr), ("moco", moco)):
            assert kinds == device_bytes(case, method), case
            assert largest == largest_batch(case, method), case
        assert advice == list(recommend(case)), case
    assert {recommend(case)[0] for case in cases} == {"simclr", "moco", "neither"}  # the cases reach every branch


def test_every_control_changes_what_it_claims_to(page: Page) -> None:
    page.evaluate(MODEL, [networks, asdict(START)])
    cell = page.locator(".planner tbody tr")

    def total() -> list[str]:
        return cell.filter(has_text="in all").locator("td").all_inner_texts()

    assert page.locator(".planner-verdict").inner_text() == "Start with SimCLR."
    changes = {
        "Images a step": 64,
        "Image side": 96,
        "Accelerators": 4,
        "Keys in the queue": 4096,
        "Numbers in a key": 8192,
    }
    for label, value in changes.items():
        before = total()
        page.get_by_label(label).fill(str(value))
        assert total() != before, label
    before = total()
    page.get_by_label("An activation takes").select_option("2")
    assert total() != before
    before = total()
    page.get_by_label("Network").select_option("tiny")
    assert total() != before
    assert page.locator(".planner-verdict").inner_text() == "Start with MoCo."
    page.get_by_label("Memory of each").fill("1")
    assert page.locator(".planner-verdict").inner_text() == "Neither fits."
    assert cell.filter(has_text="in 90 % of 1 GB").locator("td").all_inner_texts() == ["does not fit"] * 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("value", ["", "0", "-3", "2.5"])
def test_a_number_that_makes_no_sense_is_told(page: Page, value: str) -> None:
    page.evaluate(MODEL, [networks, asdict(START)])
    page.get_by_label("Images a step").fill(value)
    assert page.locator(".planner-wrong").inner_text() == "Images a step, N: a number from 2 to 1,048,576."
    assert page.locator(".planner table").count() == 0
    page.get_by_label("Images a step").fill("512")
    assert page.locator(".planner table").count() == 1
