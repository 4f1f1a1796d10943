"""A page is light on a first visit, and can be read before any of its scripts has run."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest
from conftest import CHAPTERS, PAGES, Visit, until, watch
from playwright.sync_api import Browser, Response
from test_accessibility import WIDGETS_DRAWN

pytestmark = pytest.mark.browser
MOST_BYTES = 2_500_000
COMPRESSED = {".woff", ".woff2", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".ico"}  # gain nothing from gzip

# What there is to read, less what stays folded: the reasons of a quiz and the names of folded code.
UNREADABLE = """() => [...document.querySelectorAll('main section :is(h1, h2, h3, p, li, dd, table, figure, svg)')]
  .filter(e => !e.closest('.quiz-why, .admonition-title') && (e.textContent.trim() || e.matches('svg')))
  .filter(e => {
    const box = e.getBoundingClientRect();
    const wide = box.right > innerWidth && !e.closest('.figure-scroll, .pst-scrollable-table-container');
    return !e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || !box.width || !box.height || wide;
  })
  .map(e => e.outerHTML.slice(0, 120))"""


@cache
def zipped(body: bytes) -> int:
    """The length of `body` as a server would send it."""
    return len(gzip.compress(body, 6))


def transferred(response: Response) -> int:
    """The bytes of a response's body on the way."""
    body = response.body()
    return len(body) if PurePosixPath(urlsplit(response.url).path).suffix in COMPRESSED else zipped(body)


def first_visit(browser: Browser, url: str) -> dict[str, int]:
    """{address: bytes transferred} of all that a browser which has seen nothing yet loads for a page."""
    context = browser.new_context()
    page = watch(context).page
    responses: list[Response] = []
    page.on("response", lambda response: responses.append(response))  # Playwright cannot hold a bound built-in
    page.goto(url)
    until(page, WIDGETS_DRAWN)
    page.wait_for_load_state("networkidle")
    sizes = {response.url: transferred(response) for response in responses if response.url.startswith("http")}
    context.close()
    return sizes


@pytest.mark.parametrize("name", PAGES)
def test_a_first_visit_transfers_under_two_and_a_half_megabytes(browser: Browser, address: str, name: str) -> None:
    sizes = first_visit(browser, f"{address}/{name}.html")
    heaviest = sorted(sizes.items(), key=lambda item: -item[1])[:6]
    assert f"{address}/{name}.html" in sizes
    assert sum(sizes.values()) < MOST_BYTES, f"{sum(sizes.values()):,} bytes; the heaviest: {heaviest}"


@pytest.mark.parametrize("name", PAGES)
def test_it_reads_without_scripts_on_a_phone(open_page: Callable[..., Visit], name: str) -> None:
    page = open_page(name, 390, java_script_enabled=False).page
    answers = page.locator("details.answer")
    assert answers.count() >= (2 if name in CHAPTERS else 0), "the spoken answer and the solution"
    for answer in answers.all():
        answer.locator("summary").click()
    page.evaluate("document.querySelectorAll('.claim details').forEach(e => e.open = true)")  # each opens by itself
    assert page.locator("main section > h1").count() == 1
    assert page.evaluate(UNREADABLE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
