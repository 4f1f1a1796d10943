"""axe-core finds no serious and no critical fault on any page: on a desktop in the light, on a phone in the dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from conftest import PAGES, Visit, until
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

# Whether each widget that the page announces has been drawn.
WIDGETS_DRAWN = """() => [...document.querySelectorAll('script[type="application/vnd.jupyter.widget-view+json"]')]
  .every(script => script.parentElement.querySelector('[role=group]'))"""

# Opens every folded answer, and has the reason shown of one choice in each question.
UNFOLD = """() => {
  document.querySelectorAll('details').forEach(fold => fold.open = true);
  document.querySelectorAll('.quiz input').forEach(choice => choice.click());
}"""

# Each place where a rule of some weight is broken: its weight, the rule, the element, and what axe says of it.
GRAVE_FAULTS = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ['violations'] });
  return violations.filter(rule => ['serious', 'critical'].includes(rule.impact)).flatMap(rule =>
    rule.nodes.map(node => `${rule.impact} ${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}"""


def grave_faults(page: Page) -> list[str]:
    """What axe-core finds on the page as it stands."""
    page.evaluate(Path(AXE_FILE_PATH).read_text(encoding="utf-8"))  # the page's policy forbids a script tag
    faults: list[str] = page.evaluate(GRAVE_FAULTS)
    return faults


@pytest.mark.parametrize("width, theme", [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", [*PAGES, "search", "genindex"])
def test_axe_finds_no_grave_fault(open_page: Callable[..., Visit], name: str, width: int, theme: str) -> None:
    page = open_page(name, width, theme, reduced_motion="reduce").page
    until(page, WIDGETS_DRAWN)
    page.evaluate(UNFOLD)
    faults = grave_faults(page)
    assert not faults, "\n".join(faults)
