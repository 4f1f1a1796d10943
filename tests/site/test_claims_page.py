"""The claims in a real browser: each filter shows the right number, by mouse, by keyboard and with no script."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import ROOT, watch
from playwright.sync_api import Browser, Page
from test_accessibility import UNFOLD, grave_faults

from minilab.textbook import claims_page
from minilab.textbook.claims import load_claims
from minilab.textbook.claims_page import AXES, page_html, values
from minilab.textbook.findings import CHECKS, Finding

pytestmark = pytest.mark.browser
CLAIMS = load_claims()


@pytest.fixture(scope="module")
def html() -> Iterator[str]:
    """The page with the book's own style sheet; its checks all find the same, which takes no time."""
    with pytest.MonkeyPatch.context() as patch:
        stubs = {name: lambda read: Finding("0.480 to 0.497, 2 seeds each", True) for name in CHECKS}
        patch.setattr(claims_page, "CHECKS", stubs)
        body = page_html(CLAIMS)
    style = (ROOT / "book" / "site" / "css" / "book.css").read_text()
    dark = "body{margin:0 16px;background:var(--page);color:var(--ink)}a{color:var(--link)}"
    yield (
        f"<!doctype html><html lang=en data-theme=dark><meta name=viewport content='width=device-width'>"
        f"<title>Claims</title><style>{style}{dark}</style><main class=bd-article><h1>Claims</h1>{body}</main>"
    )


@pytest.fixture(params=[True, False], ids=["script on", "script off"])
def page(request: pytest.FixtureRequest, browser: Browser, html: str) -> Iterator[Page]:
    """The page at a phone's width, in the dark."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, java_script_enabled=request.param)
    visit = watch(context)
    visit.page.set_content(html)
    yield visit.page
    visit.assert_clean()
    context.close()


def shown(page: Page) -> int:
    return page.locator(".claim:visible").count()


def fitting(**chosen: str) -> int:
    return sum(all(value in values(claim, axis) for axis, value in chosen.items()) for claim in CLAIMS)


def choose(page: Page, axis: str, value: str) -> None:
    page.locator(f'[name="claims-{axis}"][value="{value}"]').check()


def test_all_are_shown_at_first(page: Page) -> None:
    assert shown(page) == len(CLAIMS) == 92


@pytest.mark.parametrize("axis", AXES)
def test_each_choice_shows_those_that_fit(page: Page, axis: str) -> None:
    for value in AXES[axis]:
        choose(page, axis, value)
        assert shown(page) == fitting(**{axis: value}) > 0, value
    choose(page, axis, "")
    assert shown(page) == len(CLAIMS)


def test_choices_are_taken_together_and_can_be_undone(page: Page) -> None:
    choices = {"verdict": "wrong", "tier": "deep", "method": "moco", "document": "framework"}
    for axis, value in choices.items():
        choose(page, axis, value)
    assert shown(page) == fitting(**choices) > 0
    choose(page, "document", "card")
    assert shown(page) == fitting(**{**choices, "document": "card"}) == 0
    page.get_by_role("button", name="Show all").click()
    assert shown(page) == len(CLAIMS)


def test_the_number_shown_is_said_above_the_list(page: Page) -> None:
    choose(page, "verdict", "blank")
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]  # what is read aloud
    said = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") == "StaticText"]
    assert f"{fitting(verdict='blank')} of 92 claims shown" in "".join(said)
    place, first = page.locator(".claims-shown").bounding_box(), page.locator(".claim:visible").first.bounding_box()
    assert place and first and place["y"] < first["y"]


def test_it_works_by_keyboard(page: Page) -> None:
    page.locator('[name="claims-verdict"][value=""]').focus()
    page.keyboard.press("ArrowRight")
    assert shown(page) == fitting(verdict="right")
    page.keyboard.press("Enter")  # submits no form
    assert shown(page) == fitting(verdict="right")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert shown(page) == fitting(verdict="right", tier="basics")
    for _ in range(4):  # method, document, the button, the first claim
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    first = page.locator(".claim:visible").first
    assert first.locator("details").get_attribute("open") is not None
    assert first.locator("details > p").first.is_visible()


def test_nothing_is_wider_than_a_phone(page: Page) -> None:
    widest = "nodes => Math.max(...nodes.map(node => node.getBoundingClientRect().right))"
    assert 300 < page.locator(".claims *").evaluate_all(widest) <= 390


def test_axe_finds_no_grave_fault_in_the_dark(browser: Browser, html: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.set_content(html)
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    faults = grave_faults(page)
    assert not faults, "\n".join(faults)
    context.close()
