"""The softmax explorer's script computes what minilab.spectra.repulsion does, and moves on a page with no kernel."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import script_alone
from playwright.sync_api import Browser, Locator, Page
from test_accessibility import grave_faults

from minilab.spectra.repulsion import Contrast, contrast
from minilab.textbook.softmax import HERE, contents, decode, encode

pytestmark = pytest.mark.browser
MODEL = """async (given) => {
  const { default: widget } = await import("/softmax.js");
  const el = document.body.appendChild(document.createElement("main"));
  widget.render({ model: { get: (name) => given[name] }, el });
}"""
CONTRAST = """async (cases) => {
  const { contrast, decode } = await import("/softmax.js");
  const all = cases.map(([text, tau]) => ({ ...decode(text), tau }));
  return all.map(({ positive, negatives, tau }) => contrast(positive, negatives, tau));
}"""


@pytest.fixture()
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """An empty page beside the explorer's script."""
    with script_alone(browser, tmp_path, HERE / "softmax.js", HERE / "softmax.css") as page:
        yield page


def cloud(count: int, seed: int = 1) -> list[float]:
    dice = random.Random(seed)
    return [math.tanh(dice.gauss(0.1, 0.3)) for _ in range(count)]


def cases(count: int) -> list[tuple[float, list[float], float]]:
    """Random inputs after the extremes: the lowest tau, one negative, all cosines equal, opposite ends."""
    dice = random.Random(0)
    extremes = [
        (0.3, [0.3] * 50, 0.01),
        (0.3, [0.3] * 50, 1.0),
        (1.0, [-1.0], 0.01),
        (-1.0, [1.0], 0.01),
        (1.0, [1.0] * 4096, 0.01),
        (0.5, [0.2], 1.0),
    ]
    sizes = [dice.choice([1, 2, 31, 300]) for _ in range(count - len(extremes))]
    usual = [
        (dice.uniform(-1, 1), [dice.uniform(-1, 1) for _ in range(size)], 10 ** dice.uniform(-2, 0)) for size in sizes
    ]
    return extremes + usual


def test_a_hundred_random_inputs_agree(page: Page) -> None:
    given = cases(100)
    found = page.evaluate(CONTRAST, [[encode(plus, minus), tau] for plus, minus, tau in given])
    for (plus, minus, tau), script in zip(given, found, strict=True):
        right = contrast(*decode(encode(plus, minus)), tau)
        assert script["shares"] == pytest.approx(right.shares.tolist(), rel=1e-9, abs=1e-300)
        assert script["forces"] == pytest.approx(right.forces.tolist(), rel=1e-9, abs=1e-300)
        for name, value in (
            ("positive", right.positive),
            ("pull", right.pull),
            ("pullAlong", right.pull_along),
            ("loss", right.loss),
            ("effective", right.effective),
        ):
            assert script[name] == pytest.approx(value, rel=1e-9, abs=1e-300), (name, plus, len(minus), tau)
        assert script["entropy"] == pytest.approx(right.entropy, rel=1e-9, abs=1e-12)


def number(text: str) -> float:
    """A number as the page writes it: 1,024 or 2.4 · 10⁻⁹."""
    digits, _, power = text.replace(",", "").partition(" · 10⁻")
    return float(digits) * 10.0 ** -int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")) or 0)


def cell(page: Page, row: str, column: int = 0) -> str:
    return page.locator(".softmax-values").get_by_role("row", name=row).locator("td").nth(column).inner_text()


def assert_shown(page: Page, given: dict[str, Any], tau: float, size: int) -> Contrast:
    """The page has the figures of this tau and of the first `size` negatives."""
    plus, minus = decode(given["cosines"])
    right = contrast(plus, minus[:size], tau)
    forces = right.forces[sorted(range(size), key=lambda i: -minus[i])]
    wanted = {
        "entropy of the negatives": right.entropy,
        "effective negatives": right.effective,
        "loss, nats": right.loss,
        "share of the positive": right.positive,
        "pull of the positive": right.pull,
        "that pull along": right.pull_along,
        "push of the hardest": float(forces[0]),
        "all pushes": float(forces.sum()),
    }
    for row, value in wanted.items():
        assert number(cell(page, row)) == pytest.approx(value, rel=6e-3), row
    assert number(cell(page, "loss, nats", 1).split("= ")[1]) == pytest.approx(math.log(size + 1), rel=6e-3)
    assert number(cell(page, "entropy", 1).split("= ")[1]) == pytest.approx(math.log(size), rel=6e-3)
    assert page.locator(".softmax-said").inner_text().startswith(f"At τ = {tau:g} the {size:,} negative")
    return right


def heights(bars: Locator) -> list[float]:
    return [float(height) for height in bars.evaluate_all("all => all.map(e => e.getAttribute('height'))")]


def test_temperature_and_number_change_every_figure_by_keyboard(page: Page) -> None:
    given = contents(0.7, cloud(1000), temperature=0.1)
    page.evaluate(MODEL, given)
    assert_shown(page, given, 0.1, 1000)
    tau, size = page.get_by_label("Temperature"), page.get_by_label("Negatives K")
    tau.focus()
    page.keyboard.press("Home")
    assert_shown(page, given, 0.01, 1000)
    assert tau.get_attribute("aria-valuetext") == "0.01"
    page.keyboard.press("ArrowRight")
    assert_shown(page, given, 0.015, 1000)
    page.keyboard.press("End")
    assert_shown(page, given, 1.0, 1000)
    size.focus()
    page.keyboard.press("ArrowLeft")
    assert_shown(page, given, 1.0, 512)
    page.keyboard.press("Home")
    assert_shown(page, given, 1.0, 1)
    assert size.get_attribute("aria-valuetext") == "1"
    page.keyboard.press("ArrowRight")
    assert_shown(page, given, 1.0, 2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_bars_and_the_strip_have_the_shares(page: Page) -> None:
    given = contents(0.7, cloud(200), temperature=0.1)
    page.evaluate(MODEL, given)
    plus, minus = decode(given["cosines"])
    right = contrast(plus, minus, 0.1)
    order = sorted(range(200), key=lambda i: -minus[i])
    for place, values in enumerate((right.shares, right.forces)):
        drawn, top = heights(page.locator(".softmax svg").nth(place).locator("rect")), values[order[:30]]
        assert len(drawn) == 30
        assert [h / max(drawn) for h in drawn] == pytest.approx((top / top.max()).tolist(), abs=1e-6)
    widths = page.locator(".softmax-strip span").evaluate_all("all => all.map(e => parseFloat(e.style.width))")
    hardest, rest = float(right.shares[order[:30]].sum()), float(right.shares[order[30:]].sum())
    assert widths == pytest.approx([100 * right.positive, 100 * hardest, 100 * rest], abs=0.01)
    assert sum(widths) == pytest.approx(100, abs=0.01)
    said = page.locator(".softmax-key li").all_inner_texts()
    assert said == [
        f"positive {100 * right.positive:.1f} %",
        f"30 hardest negatives {100 * hardest:.1f} %",
        f"the other 170 {100 * rest:.1f} %",
    ]
    page.get_by_text("The hardest negatives as numbers").click()
    first = page.locator(".softmax-hardest tbody tr").first.locator("td").all_inner_texts()
    assert first[0] == f"{minus[order[0]]:.3f}" and number(first[1]) == pytest.approx(
        float(right.shares[order[0]]), rel=6e-3
    )


def test_one_negative_and_the_lowest_temperature_are_shown_whole(page: Page) -> None:
    given = contents(1.0, [-1.0], temperature=0.01)
    page.evaluate(MODEL, given)
    assert cell(page, "entropy") == "0" and cell(page, "effective") == "1"
    assert number(cell(page, "loss, nats")) == pytest.approx(math.exp(-200), rel=0.03)
    assert page.locator(".softmax svg").first.locator("rect").count() == 1
    assert "NaN" not in page.locator("main").inner_text()


@pytest.mark.parametrize("ground, ink", [("#fdfdfb", "#1d2126"), ("#15191e", "#e2e5e8")])
def test_axe_finds_no_grave_fault(page: Page, ground: str, ink: str) -> None:
    page.evaluate(MODEL, contents(0.7, cloud(100)))
    page.evaluate(
        "([ground, ink]) => Object.assign(document.body.style, { background: ground, color: ink })", [ground, ink]
    )
    page.evaluate("document.querySelector('details').open = true")
    assert grave_faults(page) == []
