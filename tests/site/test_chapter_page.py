"""What a reader does on a chapter: answers a quiz, runs the clock, unfolds an answer, goes to Colab."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape

import pytest
import yaml
from conftest import CHAPTERS, EXECUTED, PAGES, ROOT, Visit

from minilab.textbook.cards import Card, load_bank

pytestmark = pytest.mark.browser
every_chapter = pytest.mark.parametrize("name", CHAPTERS)
every_notebook = pytest.mark.parametrize("name", EXECUTED)


def cards_on(name: str) -> list[Card]:
    """The cards that a chapter's notebook asks, in their order."""
    cells = json.loads((ROOT / f"{name}.ipynb").read_text())["cells"]
    calls = "".join(text for cell in cells for text in cell["source"] if cell["cell_type"] == "code")
    asked = re.findall(r"quiz\(([^)]*)\)", calls)
    return [load_bank()[card] for call in asked for card in re.findall(r"[\"']([a-z0-9-]+)[\"']", call)]


@every_chapter
@pytest.mark.parametrize("scripts", [True, False])
def test_quiz_says_why_for_the_option_chosen(open_page: Callable[..., Visit], name: str, scripts: bool) -> None:
    page = open_page(name, java_script_enabled=scripts).page
    cards = cards_on(name)
    assert len(cards) >= 3
    for group, card in zip(page.locator(".quiz fieldset").all(), cards, strict=True):
        assert card.question[:40] in unescape(group.locator("legend").inner_text())
        reasons = group.locator(".quiz-why:visible")
        assert reasons.count() == 0
        for number, choice in enumerate(card.choices):
            group.locator("label").nth(number).click()
            shown = reasons.all_inner_texts()
            verdict = "Right." if choice.right else "Not quite."
            assert len(shown) == 1
            assert verdict in shown[0]
            if "\\(" not in choice.why:
                assert choice.why in shown[0]


@every_chapter
def test_quiz_works_with_the_keyboard_alone(open_page: Callable[..., Visit], name: str) -> None:
    page = open_page(name).page
    options = page.locator(".quiz fieldset").first.locator("input")
    options.first.focus()
    page.keyboard.press("Space")
    assert options.nth(0).is_checked()
    page.keyboard.press("ArrowDown")
    assert options.nth(1).is_checked()
    assert not options.nth(0).is_checked()
    assert options.nth(1).evaluate("e => getComputedStyle(e).outlineStyle") != "none"


@every_chapter
def test_clock_counts_pauses_and_starts_again(open_page: Callable[..., Visit], name: str) -> None:
    visit = open_page(name, clock=True)
    page = visit.page
    clock = page.locator(".clock").first
    target = int(clock.get_attribute("data-seconds") or 0)
    face, spoken = clock.locator(".clock-face"), clock.locator("[aria-live=polite]")
    assert face.inner_text() == f"0 s of about {target} s"

    start = clock.get_by_role("button").first
    start.focus()
    page.keyboard.press("Enter")
    assert start.evaluate("e => getComputedStyle(e).outlineStyle") != "none"
    page.clock.run_for(5_000)
    assert face.inner_text() == f"5 s of about {target} s"
    assert "runs" in spoken.inner_text()

    start.click()  # pause
    page.clock.run_for(60_000)
    assert face.inner_text() == f"5 s of about {target} s"

    start.click()  # go on, past the target
    before = face.evaluate("e => getComputedStyle(e).backgroundImage")
    page.clock.run_for(target * 1000)
    assert face.inner_text() == f"{target + 5} s of about {target} s"
    assert face.evaluate("e => getComputedStyle(e).backgroundImage") != before
    assert "passed" in spoken.inner_text()

    clock.get_by_role("button", name="Reset").click()
    assert face.inner_text() == f"0 s of about {target} s"
    visit.assert_clean()


@every_chapter
def test_clock_without_scripts_shows_nothing(open_page: Callable[..., Visit], name: str) -> None:
    page = open_page(name, java_script_enabled=False).page
    assert page.locator(".clock").first.evaluate("e => e.getBoundingClientRect().width") == 0


def test_clock_script_survives_odd_markup(open_page: Callable[..., Visit]) -> None:
    visit = open_page("book/glossary")  # a page with no clock
    visit.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<span class=clock data-seconds=soon></span>')")
    visit.page.add_script_tag(url="../_static/js/clock.js")
    assert visit.page.locator(".clock").inner_text() == ""
    visit.assert_clean()


@pytest.mark.parametrize("name", [PAGES[0], *CHAPTERS])
def test_answers_are_folded_and_open(open_page: Callable[..., Visit], name: str) -> None:
    page = open_page(name).page
    for answer in page.locator("details.answer").all():
        body = answer.locator(":scope > *:not(summary)").first
        assert not body.is_visible()
        answer.locator("summary").focus()
        page.keyboard.press("Enter")
        assert body.is_visible()


@every_notebook
def test_colab_button_opens_this_notebook(open_page: Callable[..., Visit], name: str) -> None:
    repository = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
    path = repository["url"].removeprefix("https://github.com/")
    wanted = f"https://colab.research.google.com/github/{path}/blob/{repository['branch']}/{name}.ipynb"
    page = open_page(name).page
    assert page.locator(".dropdown-launch-buttons a").get_attribute("href") == wanted
    assert page.locator("main section a", has_text="Colab").first.get_attribute("href") == wanted
    assert (ROOT / f"{name}.ipynb").is_file()


@every_notebook
def test_figures_follow_the_theme(open_page: Callable[..., Visit], name: str) -> None:
    if "figure-live" not in (ROOT / f"{name}.ipynb").read_text():
        pytest.skip("it has no figure, only a widget whose ink has a test of its own")
    inks = set()
    for theme in ("light", "dark"):
        text = open_page(name, theme=theme).page.locator("figure.figure-live svg text").first
        inks.add(text.evaluate("e => getComputedStyle(e).fill"))
    assert len(inks) == 2


@every_chapter
def test_motion_stops_where_it_is_not_wanted(open_page: Callable[..., Visit], name: str) -> None:
    page = open_page(name, reduced_motion="reduce").page
    length = page.locator(".clock-face").first.evaluate("e => parseFloat(getComputedStyle(e).transitionDuration)")
    assert length < 0.001
