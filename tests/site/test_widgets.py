"""A page with widgets, built as the book is, moves with no kernel and asks nothing of other sites."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import book_of, watch
from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SOURCE = r'''# Widgets

```{code-cell} ipython3
import anywidget
import ipywidgets as widgets
import traitlets
from IPython.display import display

steps = widgets.IntSlider(min=0, max=2, description=r"\(k\)")
svg = '<svg role="img" aria-label="step {}" width="40" height="40"><rect width="{}0" height="9"/></svg>'
pictures = widgets.Stack([widgets.HTML(svg.format(i, i + 1)) for i in range(3)], selected_index=0)
widgets.jslink((steps, "value"), (pictures, "selected_index"))
display(widgets.VBox([steps, widgets.Play(max=2), pictures]))
```

```{code-cell} ipython3
class Doubled(anywidget.AnyWidget):
    _esm = """export default { render({ model, el }) {
      const draw = () => { el.className = "doubled"; el.textContent = 2 * model.get("value"); };
      model.on("change:value", draw); draw(); } };"""
    value = traitlets.Int(1).tag(sync=True)

doubled = Doubled()
widgets.jslink((steps, "value"), (doubled, "value"))
display(doubled)
```
'''


@pytest.fixture(scope="module")
def widget_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A book of one page, with the configuration and the scripts of the real one."""
    with book_of("widgets", SOURCE, tmp_path_factory.mktemp("book")) as url:
        yield url


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_linked_widgets_move_and_stay_on_the_site(browser: Browser, widget_site: str, theme: str) -> None:
    context = browser.new_context(color_scheme=theme)  # type: ignore[arg-type]
    visit = watch(context)
    page = visit.page
    page.goto(widget_site)
    picture = page.locator(".widget-html svg:visible")
    picture.wait_for()
    assert picture.get_attribute("aria-label") == "step 0"
    assert page.locator(".doubled").inner_text() == "0"
    slider = page.get_by_role("slider").first
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.locator(".widget-html svg[aria-label='step 2']:visible").wait_for()
    assert page.locator(".doubled").inner_text() == "4"
    page.locator(".widget-slider mjx-container").first.wait_for()
    assert page.locator(".jupyter-widgets.widget-play button i.fa").first.is_visible()
    page.wait_for_load_state("networkidle")
    visit.assert_clean()
    context.close()
