"""Every page, in both themes, on a wide screen and on a phone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import PAGES, Visit

pytestmark = pytest.mark.browser

# Each piece of visible text whose contrast with what is painted behind it is under 4.5.
FAINT_TEXT = """() => {
  const canvas = document.createElement('canvas'); canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const rgba = colour => {
    context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].map(x => x / 255);
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = c => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) =>
    sum + weight * (c[i] <= 0.04045 ? c[i] / 12.92 : ((c[i] + 0.055) / 1.055) ** 2.4), 0);
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [1, 1, 1, 1]);
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest('script, style, mjx-assistive-mml')) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest('svg [id*="-cell-"]')) continue;  // on a coloured cell of a picture, by ink_on
    const style = getComputedStyle(element);
    const svg = element.closest('svg');
    const ground = behind(svg ? svg.parentElement : element);
    const ink = over(rgba(svg ? style.fill : style.color), ground);
    const [low, high] = [luminance(ink), luminance(ground)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) faint.push(contrast.toFixed(2) + ' ' + walker.currentNode.data.trim().slice(0, 60));
  }
  return faint;
}"""

# Pictures that a reader who cannot see them would miss.
NAMELESS_PICTURES = """() => [...document.querySelectorAll('main img, main svg:not(.svg-inline--fa)')]
  .filter(e => !e.closest('[aria-hidden=true], mjx-container'))
  .filter(e => ![e.getAttribute('alt'), e.getAttribute('aria-label'), e.querySelector('title')?.textContent]
    .some(name => (name || '').trim()))
  .map(e => e.outerHTML.slice(0, 120))"""

# Equations that MathJax has not drawn, and TeX that shows as text.
RAW_MATHS = r"""() => {
  const undrawn = [...document.querySelectorAll('main .math')].filter(e => !e.querySelector('mjx-container'));
  const text = document.querySelector('main').innerText;
  return undrawn.map(e => e.textContent).concat(text.match(/\\\(|\\\[|\\frac|\$\$/g) || []);
}"""

TWICE_USED_IDS = """() => {
  const ids = [...document.querySelectorAll('main [id]')].map(e => e.id);
  return ids.filter((id, i) => ids.indexOf(id) < i);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", [*PAGES, "search", "genindex"])
def test_page_is_whole(open_page: Callable[..., Visit], name: str, width: int, theme: str) -> None:
    visit = open_page(name, width, theme, reduced_motion="reduce")  # nothing is caught half faded
    page = visit.page
    assert page.locator("html").get_attribute("data-theme") == theme
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate(RAW_MATHS) == []
    assert page.evaluate(NAMELESS_PICTURES) == []
    assert page.evaluate(TWICE_USED_IDS) == []
    assert page.evaluate(FAINT_TEXT) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    visit.assert_clean()


def test_text_is_about_seventy_characters_wide(open_page: Callable[..., Visit]) -> None:
    page = open_page(PAGES[0], 1600).page
    widest = page.evaluate(
        """() => {
          const paragraph = document.querySelector('.bd-article > section > p');
          const probe = paragraph.cloneNode();
          probe.textContent = 'the quick brown fox jumps over the lazy dog and then some more ';
          probe.style.cssText = 'position: absolute; white-space: nowrap; width: auto';
          paragraph.after(probe);
          return paragraph.clientWidth / (probe.getBoundingClientRect().width / 63);
        }"""
    )
    assert 55 < widest < 85


def test_print_leaves_out_the_frame(open_page: Callable[..., Visit]) -> None:
    page = open_page(PAGES[0], theme="dark", reduced_motion="reduce").page
    page.emulate_media(media="print")
    assert not page.locator(".bd-sidebar-primary").is_visible()
    assert not page.locator(".clock").first.is_visible()
    assert page.locator("h1").first.is_visible()
    assert page.evaluate(FAINT_TEXT) == []


def test_the_menu_opens_on_a_phone(open_page: Callable[..., Visit]) -> None:
    visit = open_page(PAGES[0], 390)
    visit.page.locator("button.primary-toggle:visible").first.click()
    visit.page.get_by_role("link", name="Glossary").first.click()
    visit.page.wait_for_url("**/glossary.html")
    visit.assert_clean()


def test_the_first_address_leads_to_the_first_page(open_page: Callable[..., Visit]) -> None:
    visit = open_page(PAGES[0])
    visit.page.goto(visit.page.url.replace(f"{PAGES[0]}.html", ""))
    visit.page.wait_for_url(f"**/{PAGES[0]}.html")
