"""The queue in motion on a page with no kernel: by keyboard, by value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import script_alone
from playwright.sync_api import Browser, Page

from minilab.textbook.album import HERE, START, moved

pytestmark = pytest.mark.browser
MODEL = """async (start) => {
  const { default: widget } = await import("/album.js");
  const el = document.body.appendChild(document.createElement("div"));
  widget.render({ model: { get: () => start }, el });
}"""


@pytest.fixture()
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A page with nothing but the queue, at a phone's width."""
    with script_alone(browser, tmp_path, HERE / "album.js", HERE / "album.css") as page:
        page.evaluate(MODEL, START)
        yield page


def test_it_fills_ages_and_says_so(page: Page) -> None:
    said, about = page.locator(".album-said"), page.locator(".album-about")
    assert said.inner_text() == "Row 1 from the newest: still a random vector."
    assert about.inner_text().startswith("Step 0. 0 % of the rows are real keys.")
    page.get_by_role("button", name="One step").focus()
    page.keyboard.press("Enter")
    assert "Step 1. 6 % of the rows" in about.inner_text()
    assert "made 1 step ago" in said.inner_text()
    page.get_by_role("button", name="Fill it").click()
    assert "Step 16. 100 % of the rows" in about.inner_text()
    cursor = page.get_by_label("Look at a key")
    cursor.focus()
    page.keyboard.press("End")
    assert "made 16 steps ago" in said.inner_text()
    assert f"closed {100 * moved(16, 0.99):.0f} % of a gap" in said.inner_text()
    page.get_by_label("m:").select_option("0.9")
    page.get_by_role("button", name="Fill it").click()
    assert f"closed {100 * moved(16, 0.9):.0f} % of a gap" in said.inner_text()
    page.get_by_label("Images a step").select_option("64")
    assert "is 64 steps old" in about.inner_text() and about.inner_text().startswith("Step 0.")
    page.get_by_label("Keys K").select_option("65536")
    assert "is 1,024 steps old" in about.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_play_runs_until_the_queue_has_turned_over_and_can_be_paused(page: Page) -> None:
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.album-about').textContent.startsWith('Step 3.')")
    page.get_by_role("button", name="Pause").click()
    before = page.locator(".album-about").inner_text()
    page.wait_for_timeout(700)
    assert page.locator(".album-about").inner_text() == before
