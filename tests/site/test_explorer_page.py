"""The explorer on a published page: it moves by keyboard with no kernel, and without scripts a summary stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import ROOT, book_of, watch
from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SOURCE = """# Explorer

```{{code-cell}} ipython3
import sys
sys.path.insert(0, {tests!r})
from test_explorer import record
from minilab.textbook import explore, use_book_style

use_book_style()
explore([record(momentum=m, seed=s, knn=m / 2 + s / 10) for m in (0.0, 0.5, 0.9) for s in (0, 1)],
        "momentum", "momentum coefficient m", ("0.0", "0.9"))
```
"""


@pytest.fixture(scope="module")
def explorer_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A book of one page with an explorer, with the configuration and the scripts of the real one."""
    with book_of(
        "explorer", SOURCE.format(tests=str(ROOT / "tests" / "textbook")), tmp_path_factory.mktemp("book")
    ) as url:
        yield url


def values(page: Page) -> dict[str, list[str]]:
    """The explorer's table: the row's name to A's and B's value."""
    rows = page.locator(".explorer tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}


@pytest.mark.parametrize("width, theme", [(1300, "light"), (390, "dark")])
def test_it_moves_by_keyboard_with_no_kernel(browser: Browser, explorer_site: str, width: int, theme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
    visit = watch(context)
    page = visit.page
    page.goto(explorer_site)
    page.locator(".explorer svg").first.wait_for()
    assert values(page)["kNN accuracy"] == ["0.020", "0.470"]

    epoch = page.get_by_label("Epoch:")
    epoch.focus()
    page.keyboard.press("ArrowLeft")
    assert values(page)["kNN accuracy"] == ["0.010", "0.460"]
    assert page.locator(".explorer output").inner_text() == "1 of 2"

    page.get_by_label("A, solid:").select_option("0.5")
    assert values(page)["kNN accuracy"] == ["0.260", "0.460"]
    page.get_by_label("Seed:").select_option("1")
    assert values(page)["kNN accuracy"] == ["0.360", "0.560"]
    page.get_by_label("On the maps:").select_option("cat")
    assert page.get_by_role("img", name="in B, cat.").count() == 1

    assert page.locator(".explorer svg[role=img]").count() == 7
    assert all(name for name in page.locator(".explorer svg").evaluate_all("l => l.map(e => e.ariaLabel)"))
    ink = page.locator(".explorer svg text").first.evaluate("e => getComputedStyle(e).fill")
    assert ink == page.locator("main p").first.evaluate("e => getComputedStyle(e).color")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.wait_for_load_state("networkidle")
    visit.assert_clean()
    context.close()


def test_without_scripts_a_figure_and_a_table_remain(browser: Browser, explorer_site: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(explorer_site)
    assert page.locator(".explorer").count() == 0
    assert page.get_by_role("img", name="kNN accuracy after the last epoch against momentum").is_visible()
    page.get_by_text("The same as a table").click()
    assert "0.520 (0.470-0.570, n=2)" in page.locator("details pre").inner_text()
    context.close()
