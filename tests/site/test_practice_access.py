"""The practice page by keyboard alone, in each state, in both themes, with hostile cards and without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import Visit, serving, watch
from playwright.sync_api import Browser, Page
from practice_site import (
    BANK,
    HOSTILE,
    NOON,
    card,
    history,
    interview,
    lay_out,
    practice,
    press,
    put,
    question,
    reviews,
)
from test_accessibility import grave_faults
from test_pages import FAINT_TEXT, RAW_MATHS, TWICE_USED_IDS

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """A function that opens the page with what `practice` takes."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(practice(browser, tmp_path, **options))


def test_by_keyboard_alone(opened: Open) -> None:
    page = opened(cards=BANK[:1], viewport={"width": 1000, "height": 800}).page
    focused = "document.activeElement.textContent || document.activeElement.id"

    def reach(name: str) -> None:
        """Press Tab until the control with this name or id has the focus."""
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate(focused).startswith(name):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"{name} has the focus and does not show it"
                return
        raise AssertionError(f"{name} is not reached by Tab")

    reach("Start the drill")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "p-question"
    reach("Cannot speak now?")
    page.keyboard.press("Enter")
    reach("p-choice-0")
    page.keyboard.press("ArrowDown")
    assert page.locator(".p-item .p-why").first.is_hidden(), "moving among the options gives nothing away"
    reach("Check")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.className") == "p-verdict"
    while not page.evaluate(focused).startswith("Show the answer"):
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "p-answer"
    for i in range(3):
        reach(f"p-points-{i}")
        page.keyboard.press("Space")
    reach("p-flags-0")
    reach("the mechanism")
    reach("Good")
    page.keyboard.press("Enter")
    assert reviews(page) == {"queue-what": [[NOON, 3]]}
    assert page.evaluate("document.activeElement.textContent") == "This sitting"


def test_hostile_text_is_shown_and_does_not_run(opened: Open) -> None:
    page = opened(cards=[BANK[5], card("leads", follow_ups=["hostile-one"])]).page
    press(page, "Start the drill")
    assert question(page) == f"Hostile {HOSTILE} question"
    page.locator("summary").first.click()
    page.locator("#p-choice-0").check()
    press(page, "Check")
    press(page, "Show the answer")
    assert page.locator(".p-back").inner_text().count("onerror") >= 5
    page.get_by_text("Sources").click()
    assert page.locator("a[href^=javascript]").count() == 0
    press(page, "Progress")
    press(page, "Mock interview")
    page.get_by_label("Begin with").select_option("leads")
    press(page, "Start the interview")
    press(page, "Show the answer")
    press(page, "Go deeper")
    press(page, "Show the answer")
    page.locator(".p-flags input").check()
    press(page, "That was")
    press(page, "See the report")
    assert page.locator("#practice-page img, #practice-page script").count() == 0


def states(page: Page) -> Iterator[str]:
    """Takes the page through its states, and names each."""
    yield "drill start"
    press(page, "Start the drill")
    page.locator("summary").first.click()
    yield "card"
    page.locator("#p-choice-1").check()
    press(page, "Check")
    press(page, "Show the answer")
    page.locator(".p-flags input").first.check()
    page.get_by_text("What the buttons mean").click()
    page.get_by_text("Sources").click()
    page.get_by_label("Show Hard").check()
    yield "revealed"
    press(page, "Stop for now")
    yield "dialog"
    page.get_by_role("button", name="Stop", exact=True).click()
    yield "summary"
    interview(page)
    yield "mock"
    press(page, "Show the answer")
    press(page, "Go deeper")
    page.evaluate("MathJax.startup.promise")
    assert page.evaluate(RAW_MATHS) == [], "the formulas of a new card are drawn"
    press(page, "I am stuck")
    page.locator(".p-flags input").first.check()
    yield "mock revealed"
    press(page, "I was stuck")
    yield "between chains"
    press(page, "See the report")
    yield "report"
    press(page, "Progress")
    press(page, "Reset everything")
    press(page, "Keep it")
    yield "progress"


@pytest.mark.slow
@pytest.mark.parametrize("width, theme", [(390, "light"), (390, "dark"), (1000, "light"), (1000, "dark")])
def test_every_state_is_whole_and_open_to_all(opened: Open, width: int, theme: str) -> None:
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": 800},
        "color_scheme": theme,
        "reduced_motion": "reduce",
    }
    page = opened(theme=theme, init_script=put(history(queue_what=[(-9, 3)])), **options).page
    seen = []
    for state in states(page):
        seen.append(state)
        assert grave_faults(page) == [], state
        assert page.evaluate(TWICE_USED_IDS) == [], state
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{state} scrolls sideways"
        if state != "dialog":  # what lies behind it is meant to be faint
            assert page.evaluate(FAINT_TEXT) == [], state
    assert len(seen) == 10


def test_reduced_motion_stills_the_page(opened: Open) -> None:
    page = opened(reduced_motion="reduce").page
    press(page, "Start the drill")
    moving = (
        "[...document.querySelectorAll('*')].filter(e => parseFloat(getComputedStyle(e).transitionDuration) > 0).length"
    )
    assert page.evaluate(moving) == 0


def test_without_cards_it_says_why(browser: Browser, tmp_path: Path) -> None:
    lay_out(tmp_path, BANK)
    (tmp_path / "_static" / "practice" / "bank.json").unlink()
    context = browser.new_context()
    visit = watch(context)
    with serving(tmp_path) as url:
        visit.page.goto(f"{url}/book/practice.html")
        visit.page.wait_for_selector("[role=alert]")
        assert "the server answered 404" in visit.page.locator("[role=alert]").inner_text()
    context.close()


def test_without_scripts_it_points_to_the_quizzes(browser: Browser, tmp_path: Path) -> None:
    lay_out(tmp_path, BANK)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    with serving(tmp_path) as url:
        page.goto(f"{url}/book/practice.html")
        assert "needs JavaScript" in page.locator("#practice-page").inner_text()
    context.close()
